"""A folder of lists, with one file of lists per source file. Interrupted work on it can go on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from recbole_leaprec.common.parquet_folder import Folder
from recbole_leaprec.recommend.writer import FORMATS, ROWS

STARTED, FINISHED = "_leaprec.json", "_SUCCESS"
"""Two files: the settings, written before the first lists, and a mark that the folder is finished."""

_COUNTED = b"leaprec"


def fingerprint(content: Any) -> str:
    """A short hash of anything that JSON can hold."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=sorted).encode()).hexdigest()[:16]


def file_fingerprint(path: str | Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


class ListFolder:
    """A folder of lists. Each file has the name of its source file, and is written completely or not at all.

    So a file may be made several times, also by a worker that was thought dead: no user gets two lists, and finished
    files stay.
    """

    def __init__(self, folder: Folder, settings: Mapping[str, Any]):
        """`settings` hold everything that the lists depend on, as values that JSON can hold.

        Raises:
            ValueError: the folder holds other files, finished lists, or lists that were begun with other settings.
        """
        self.folder, self._settings = folder, dict(settings)
        found = folder.all_files()
        if FINISHED in found:
            raise ValueError(f"{folder.text} holds finished lists already; name another folder, or remove it (--out)")
        if STARTED in found:
            self._check_same(json.loads(folder.read(STARTED)))
        elif found:
            raise ValueError(f"{folder.text} is not empty: it holds {next(iter(found))}; name another folder (--out)")

    @classmethod
    def at(cls, where: str | Path, settings: Mapping[str, Any]) -> ListFolder:
        if Path(where).suffix in FORMATS:
            raise ValueError(f"--out: out of a folder of files a folder of them is made, got the file {str(where)!r}")
        return cls(Folder.at(where, "out"), settings)

    def _check_same(self, begun: dict[str, Any]) -> None:
        now = json.loads(json.dumps(self._settings))
        for key in {**begun, **now}:
            if begun.get(key) != now.get(key):
                raise ValueError(
                    f"{self.folder.text} holds lists that were begun with another {key}: {begun.get(key)!r}, and now {now.get(key)!r}; "
                    "start with the same to go on, or name another folder (--out)"
                )

    def begin(self) -> None:
        self.folder.write_whole(STARTED, json.dumps(self._settings, indent=2).encode())

    def missing(self, names: Mapping[str, Any]) -> list[str]:
        """The names without a file of lists."""
        there = self.folder.files()
        return [name for name in names if name not in there]

    def finish(self, names: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Mark the folder as finished; returns the counts of each file."""
        counted = [
            json.loads(footer.schema.metadata[_COUNTED]) for footer in self.folder.footers(names).values()
        ]  # reading the footers also checks that each file is whole
        self.folder.clean()
        self.folder.write_whole(FINISHED, b"")
        return counted


def packed(lists: pa.Table, counted: Mapping[str, Any]) -> bytes:
    """The content of a file of lists, with the counts made on the way."""
    sink = pa.BufferOutputStream()
    table = lists.replace_schema_metadata({_COUNTED: json.dumps(dict(counted))})
    pa.parquet.write_table(table, sink, row_group_size=ROWS)
    return sink.getvalue().to_pybytes()
