"""Writes files as a whole or not at all, and locks folders for one process."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if sys.platform != "win32":  # on Windows folders are not locked: two processes may share one
    import fcntl

if TYPE_CHECKING:
    import pandas as pd


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A scratch path to write to. It becomes `path` at the end, as a whole or not at all."""
    scratch = path.with_name(path.name + ".part")
    try:
        yield scratch
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)


def check_checkpoint(path: str | Path) -> None:
    """Raise ValueError if there is no file at `path`."""
    if Path(path).is_dir():
        raise ValueError(f"checkpoint {path} is a folder; name the model.pth in it")
    if not Path(path).is_file():
        raise ValueError(f"checkpoint {path} does not exist; it is the model.pth in a run's folder")


def check_spec(path: str | Path) -> None:
    """Raise ValueError if there is no study file at `path`."""
    if not Path(path).is_file():
        raise ValueError(f"--spec: there is no file {path}; one comes with the plugin, properties/study/ml-100k.yaml")


def write_json(path: Path, content: Any) -> None:
    with written_whole(path) as scratch:
        scratch.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def write_yaml(path: Path, content: Any, sort_keys: bool = True) -> None:
    with written_whole(path) as scratch:
        scratch.write_text(yaml.safe_dump(content, sort_keys=sort_keys), encoding="utf-8")


def write_csv(path: Path, table: pd.DataFrame) -> None:
    with written_whole(path) as scratch:
        table.to_csv(scratch, index=False)


def new_folder(name: str) -> Path:
    """Make a new folder under output/ with the time in its name. No two processes get the same one."""
    stem = f"output/{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder, number = Path(stem), 1
    while True:
        try:
            folder.mkdir(parents=True)
            return folder
        except FileExistsError:  # another one was made in the same second
            number += 1
            folder = Path(f"{stem}-{number}")


@contextmanager
def taken(folder: Path) -> Iterator[None]:
    """Lock a folder until the end of the `with` block or of this process.

    The folder is made if needed, and removed again if it is still empty.

    Raises:
        ValueError: another process has locked it.
    """
    made = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with _held(folder, f"{folder} is being written to by another command; name another folder"):
            yield
    finally:
        remove_empty(made)


@contextmanager
def scratch_folder(out: Path) -> Iterator[Path]:
    """An empty folder beside `out` that exists while `out` is made. Remains of a killed process are removed first.

    Raises:
        ValueError: another process is making `out`.
    """
    folder = out.absolute().with_name(f".{out.name}.scratch")
    folder.mkdir(exist_ok=True)
    with _held(folder, f"{out} is being written by another command; name another"):
        scratch = folder / "new"
        shutil.rmtree(scratch, ignore_errors=True)
        try:
            scratch.mkdir()
            yield scratch
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _held(folder: Path, otherwise: str) -> Iterator[None]:
    """Lock a folder until the block or this process ends. If another process has it, raise ValueError(`otherwise`)."""
    if sys.platform == "win32":
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if isinstance(error, BlockingIOError):  # any other error means a file system without locks
            os.close(descriptor)
            raise ValueError(otherwise) from error
    try:
        yield
    finally:
        os.close(descriptor)


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove empty folders, given deepest first, and stop at the first that is not empty."""
    for folder in folders:
        if any(folder.iterdir()):
            return
        folder.rmdir()


def check_unused(folder: Path, names: Iterable[str], option: str = "output_dir") -> None:
    """Raise ValueError if the folder, which `option` names, already holds one of these names."""
    for name in names:
        if (folder / name).exists():
            raise ValueError(f"{option}: {folder} holds a {name} already; name another folder")


def distinct_names(folders: Sequence[Path]) -> dict[str, Path]:
    """The folders by name. Names are ends of paths, just long enough to be different.

    Example:
        >>> list(distinct_names([Path("/a/run"), Path("/b/run")]))
        ['a/run', 'b/run']
    """
    depth = 1
    while len({folder.parts[-depth:] for folder in folders}) < len({*folders}):
        depth += 1
    return {"/".join(folder.parts[-depth:]): folder for folder in folders}
