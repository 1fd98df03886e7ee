"""Files that are there as a whole or not at all, and names for folders."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    import pandas as pd


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A place to write to that becomes `path` at the end: all of it or nothing."""
    scratch = path.with_name(path.name + ".part")
    try:
        yield scratch
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)


def check_checkpoint(path: str | Path) -> None:
    """ValueError if there is no file at `path`."""
    if Path(path).is_dir():
        raise ValueError(f"checkpoint {path} is a folder; name the model.pth in it")
    if not Path(path).is_file():
        raise ValueError(f"checkpoint {path} does not exist; it is the model.pth in a run's folder")


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
