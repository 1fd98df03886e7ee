"""A run's folder: result.json, config.yaml, model.pth, and the log."""

from __future__ import annotations

import itertools
import json
import logging
import logging.handlers
import os
import platform
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from recbole.utils.logger import RemoveColorFilter
from tqdm import tqdm

import recbole_leaprec

PACKAGE_LOGGER = "recbole_leaprec"


def check_folder(config) -> None:
    """ValueError if `output_dir` cannot be the folder of a new run."""
    folder = config["output_dir"] and Path(config["output_dir"])
    if not folder:
        return
    if (folder / "result.json").exists() or (folder / "model.pth").exists():
        raise ValueError(f"output_dir {folder} already holds a run; name another, or remove it first")
    existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        raise ValueError(f"output_dir {folder} cannot be made: {existing} is not a folder that can be written to")


def make_folder(config) -> Path:
    """The folder of a run: `output_dir`, or a new one under output/."""
    if config["output_dir"] is not None:
        folder = Path(config["output_dir"])
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    stem = f"output/{config['model']}-{config['dataset']}-{time.strftime('%Y%m%d-%H%M%S')}"
    for number in itertools.count(1):
        folder = Path(stem if number == 1 else f"{stem}-{number}")
        try:
            folder.mkdir(parents=True)
            return folder
        except FileExistsError:  # another run of the same second
            continue


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A place to write to that becomes `path` at the end: all of it or nothing."""
    scratch = path.with_name(path.name + ".part")
    try:
        yield scratch
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)


def write_json(path: Path, content: Any) -> None:
    with written_whole(path) as scratch:
        scratch.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def write_yaml(path: Path, content: Any, sort_keys: bool = True) -> None:
    with written_whole(path) as scratch:
        scratch.write_text(yaml.safe_dump(content, sort_keys=sort_keys), encoding="utf-8")


def write_csv(path: Path, table: pd.DataFrame) -> None:
    with written_whole(path) as scratch:
        table.to_csv(scratch, index=False)


def check_unused(folder: Path, names: Iterable[str]) -> None:
    """ValueError if one of these is in the folder already."""
    for name in names:
        if (folder / name).exists():
            raise ValueError(f"output_dir {folder} holds a {name} already; name another")


def distinct_names(folders: Sequence[Path]) -> dict[str, Path]:
    """Each folder by as much of its path, from the end, as tells it from the others.

    Example:
        >>> list(distinct_names([Path("/a/run"), Path("/b/run")]))
        ['a/run', 'b/run']
    """
    depth = 1
    while len({folder.parts[-depth:] for folder in folders}) < len({*folders}):
        depth += 1
    return {"/".join(folder.parts[-depth:]): folder for folder in folders}


def versions() -> dict[str, str]:
    """What a result was made with."""
    packages = ("recbole", "torch", "numpy", "pandas")
    return {
        "recbole-leaprec": recbole_leaprec.__version__,  # also from a checkout that is not installed
        "python": platform.python_version(),
        **{package: version(package) for package in packages},
    }


class _TqdmHandler(logging.StreamHandler):
    """Writes above a progress bar instead of into it."""

    def emit(self, record):
        tqdm.write(self.format(record), file=sys.stderr)


class RunLog:
    """Log lines of a run: on the terminal at once, and in a file as soon as the run has a folder."""

    def __init__(self, held: logging.handlers.MemoryHandler):
        self._held = held
        self._file: logging.FileHandler | None = None

    def write_to(self, path: Path) -> None:
        self._file = logging.FileHandler(path, encoding="utf-8")
        self._file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s  %(message)s"))
        self._file.addFilter(RemoveColorFilter())
        self._held.setTarget(self._file)
        self._held.flush()

    def close(self) -> None:
        self._held.close()
        if self._file:
            self._file.close()


@contextmanager
def run_log(config) -> Iterator[RunLog]:
    """Log a run. The terminal shows the plugin's lines and RecBole's warnings, or, without progress bars, all lines."""
    root = logging.getLogger()
    level = getattr(logging, str(config["state"] or "INFO").upper(), logging.INFO)
    terminal = _TqdmHandler()
    terminal.setFormatter(logging.Formatter("%(asctime)s  %(message)s", "%H:%M:%S"))
    if config["show_progress"] and level != logging.DEBUG:
        terminal.addFilter(lambda record: record.levelno >= logging.WARNING or record.name.startswith(PACKAGE_LOGGER))
    held = logging.handlers.MemoryHandler(capacity=1, flushLevel=logging.DEBUG)
    handlers, before = (terminal, held), root.level
    root.setLevel(level)
    for handler in handlers:
        handler.setLevel(level)
        root.addHandler(handler)
    log = RunLog(held)
    try:
        yield log
    finally:
        for handler in handlers:
            root.removeHandler(handler)
        log.close()
        root.setLevel(before)
