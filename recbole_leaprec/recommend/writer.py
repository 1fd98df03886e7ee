"""Writes files of lists batch by batch: Parquet, CSV, or a TREC run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from recbole_leaprec.common.files import written_whole

FORMATS = (".parquet", ".csv", ".trec")
TITLE = "title"
COLUMNS = {
    "user": pa.string(), "rank": pa.int32(), "item": pa.string(), TITLE: pa.string(), "score": pa.float32(), "skl": pa.float64(),
}  # fmt: skip
"""The columns of a file of lists, in order. `title` is only there if items have titles."""
ROWS = 100_000
"""Rows are always written in groups of this many, so the same lists always give the same file."""


def check_out(path: str | Path) -> Path:
    """The path of a new file of lists; ValueError if lists cannot be written there."""
    path = Path(path)
    if path.suffix not in FORMATS:
        raise ValueError(f"--out must end in {', '.join(FORMATS)}, got {str(path)!r}")
    if path.exists():
        raise ValueError(f"{path} exists already; remove it, or name another (--out)")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"--out: there is no folder {path.absolute().parent}")
    return path


def list_schema(titles: bool) -> pa.Schema:
    return pa.schema([(name, kind) for name, kind in COLUMNS.items() if titles or name != TITLE])


def as_table(rows: pd.DataFrame, schema: pa.Schema) -> pa.Table:
    """The rows of lists as a table, without the columns for counts."""
    return pa.Table.from_pandas(rows[schema.names], schema=schema, preserve_index=False)


@contextmanager
def open_writer(path: Path, titles: bool = False) -> Iterator[Writer]:
    """A writer for a file of lists. At the end the file is complete, or does not exist."""
    with written_whole(path) as scratch:
        kind = {".parquet": ParquetWriter, ".csv": CsvWriter, ".trec": TrecWriter}[path.suffix]
        writer = kind(scratch, list_schema(titles))
        try:
            yield writer
            writer.flush()
        finally:
            writer.close()


class Writer:
    """Collects rows, and writes them in groups of `ROWS`."""

    def __init__(self, schema: pa.Schema):
        self._schema = schema
        self._pending: list[pa.Table] = []
        self._rows = 0

    def write(self, rows: pd.DataFrame) -> None:
        self._pending.append(as_table(rows, self._schema))
        self._rows += len(rows)
        if self._rows >= ROWS:
            together = pa.concat_tables(self._pending).combine_chunks()
            whole = self._rows - self._rows % ROWS
            for start in range(0, whole, ROWS):
                self._write_group(together.slice(start, ROWS))
            self._pending, self._rows = [together.slice(whole)], self._rows - whole

    def flush(self) -> None:
        """Write the last rows, which do not fill a group."""
        if self._rows:
            self._write_group(pa.concat_tables(self._pending).combine_chunks())

    def _write_group(self, table: pa.Table) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class ParquetWriter(Writer):
    def __init__(self, path: Path, schema: pa.Schema):
        super().__init__(schema)
        self._file = pa.parquet.ParquetWriter(path, schema)

    def _write_group(self, table: pa.Table) -> None:
        self._file.write_table(table)

    def close(self) -> None:
        self._file.close()


class CsvWriter(Writer):
    def __init__(self, path: Path, schema: pa.Schema):
        super().__init__(schema)
        self._file = pa.csv.CSVWriter(path, schema, write_options=pa.csv.WriteOptions(quoting_style="needed"))

    def _write_group(self, table: pa.Table) -> None:
        self._file.write_table(table)

    def close(self) -> None:
        self._file.close()


class TrecWriter(Writer):
    """Writes lines `user Q0 item rank score tag`. The score is 1/rank, since programs that read runs sort by score.

    With twelve digits, any two ranks that COLUMNS can hold have different scores.
    """

    TAG = "leaprec"

    def __init__(self, path: Path, schema: pa.Schema):
        super().__init__(schema)
        self._file = open(path, "w", encoding="utf-8")  # noqa: SIM115, closed by close

    def _write_group(self, table: pa.Table) -> None:
        columns = [table.column(name).to_pylist() for name in ("user", "item", "rank")]
        for token in (*columns[0], *columns[1]):
            if token.split() != [token]:
                raise ValueError(
                    f"a TREC run cannot hold {token!r}: it has spaces between its columns; write .parquet or .csv (--out)"
                )
        self._file.writelines(
            f"{user} Q0 {item} {rank} {1 / rank:.12g} {self.TAG}\n" for user, item, rank in zip(*columns, strict=True)
        )

    def close(self) -> None:
        self._file.close()
