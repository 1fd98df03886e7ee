"""A table in memory with the interface of a table in a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from recbole_leaprec.convert.bad_lines import BadLines
from recbole_leaprec.convert.tables import Table


class ArrowTable(Table):
    """A table whose rows are in memory; `name` is used in messages."""

    def __init__(self, rows: pa.Table, name: str):
        self.path, self.columns, self._rows = Path(name), list(rows.column_names), rows

    def rows_about(self) -> int:
        return len(self._rows)

    def batches(
        self, columns: Sequence[str], bad: BadLines, show_progress: bool = True, coded: Sequence[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        yield from self._rows.select(list(columns)).combine_chunks().to_batches()
