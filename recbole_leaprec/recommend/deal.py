"""Distributes rows over files by user. Rows may come in any order; all rows of a user go to one file, in their order.

Memory does not grow with the number of rows: only some are held, until there are enough to write a piece to each file.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.ipc

from recbole_leaprec.recommend.catalogue import coded
from recbole_leaprec.recommend.histories import USER

ROWS = 1_000_000
"""How many rows are held before they are written."""


def part_file(folder: Path, kind: str, number: int) -> Path:
    return folder / f"{kind}-{number:05}.arrow"


def deal(rows: Iterable[tuple[pa.Array, dict[str, np.ndarray]]], folder: Path, kind: str, count: int) -> None:
    """Distribute rows, each a user with numbers, over `count` files."""
    with Dealer(folder, kind, count) as dealer:
        for users, columns in rows:
            dealer.add(users, columns)


def read_part(path: Path) -> tuple[pa.Array, np.ndarray, dict[str, np.ndarray]]:
    """`(users of a part, index of each row's user, other columns)`."""
    with pa.ipc.open_stream(path) as stream:
        table = stream.read_all().unify_dictionaries().combine_chunks()
    user, names = coded(_array(table, USER))
    return names, user, {name: _array(table, name).to_numpy() for name in table.column_names if name != USER}


class Dealer:
    """Takes rows, each a user with numbers, and writes `count` files.

    They have Arrow's stream format: it has no table of contents that would grow in memory.
    """

    def __init__(self, folder: Path, kind: str, count: int):
        self._folder, self._kind, self._count = folder, kind, count
        self._waiting: list[pa.Table] = []
        self._rows = 0
        self._schema: pa.Schema | None = None
        self._writers: dict[int, pa.ipc.RecordBatchStreamWriter] = {}

    def __enter__(self) -> Dealer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if error is None:
                self._flush()
                for which in range(self._count):
                    if which not in self._writers and self._schema is not None:
                        self._write(which, self._schema.empty_table())
        finally:
            for writer in self._writers.values():
                writer.close()

    def add(self, users: pa.Array, columns: dict[str, np.ndarray]) -> None:
        """Add rows, each with a user."""
        number, names = coded(users)
        table = pa.table({USER: pa.DictionaryArray.from_arrays(pa.array(number), names), **columns})
        self._schema = table.schema
        self._waiting.append(table)
        self._rows += len(table)
        if self._rows >= ROWS:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        table = pa.concat_tables(self._waiting).unify_dictionaries().combine_chunks()
        self._waiting, self._rows = [], 0
        number, names = coded(_array(table, USER))
        part = _part_of(names, self._count)
        # The users of a part get consecutive numbers. Then each file needs only one slice of the names.
        by_part = np.argsort(part, kind="stable")
        begin = np.searchsorted(part[by_part], np.arange(self._count + 1))
        names, place = names.take(pa.array(by_part)), np.empty(len(by_part), np.int32)
        place[by_part] = np.arange(len(by_part), dtype=np.int32)
        order = np.argsort(part[number], kind="stable")
        rows = np.concatenate([[0], np.bincount(part[number], minlength=self._count).cumsum()])
        table, number = table.take(pa.array(order)), place[number[order]]
        for which in np.flatnonzero(np.diff(rows)).tolist():
            own = slice(rows[which], rows[which + 1])
            users = pa.DictionaryArray.from_arrays(
                pa.array(number[own] - np.int32(begin[which])), names.slice(begin[which], begin[which + 1] - begin[which])
            )
            self._write(which, table.slice(own.start, own.stop - own.start).set_column(0, USER, users))

    def _write(self, which: int, rows: pa.Table) -> None:
        if which not in self._writers:
            self._writers[which] = pa.ipc.new_stream(part_file(self._folder, self._kind, which), rows.schema)
        self._writers[which].write_table(rows)


def _part_of(names: pa.Array, count: int) -> np.ndarray:
    """The part of each user, by a hash of the name. The numbers are 16 bits wide, which sort fast."""
    return (pd.util.hash_array(names.to_numpy(zero_copy_only=False)) % count).astype(np.uint16)


def _array(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)
