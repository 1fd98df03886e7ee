"""Reads tables in CSV, TSV or Parquet files, some rows at a time."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from recbole_leaprec.common.did_you_mean import did_you_mean
from recbole_leaprec.common.reading import reading
from recbole_leaprec.convert.bad_lines import BadLines
from recbole_leaprec.convert.streams import open_bytes

ROWS = 2**16
BLOCK = 2**21
"""Bytes of a CSV file that are read at a time."""

LONGEST = 2**26
"""Bytes of the longest row. A longer one has a quote that is not closed."""

DELIMITERS = ("\t", ",", ";", "|")

ATOMIC = re.compile(r"(.+):(token|token_seq|float|float_seq)")
"""A column name in the header of an atomic file: `<field>:<type>`. Atomic files are read as tables, too."""


NO_QUOTES = 'if quotes are part of names, as in 24" screen, `leaprec data csv` reads them with --quotes=False'


class Table:
    """A table in a file. Its first row must hold the names of the columns.

    Attributes:
        columns: the names of the columns, in order, without the types of an atomic file.
        types: the types by column name, for an atomic file.
        lines_are_rows: whether each row read so far was one line, and none was skipped.
    """

    def __init__(self, path: str | Path, delimiter: str | None = None, encoding: str = "utf-8", quotes: bool = True):
        """
        Args:
            delimiter: the sign between the columns of a text file; None for the most frequent one of the first line.
            quotes: whether a text may be in quotes; if not, quotes are part of the text.

        Raises:
            ValueError: there is no such file, or it is not one of these kinds.
        """
        self.types: dict[str, str] = {}
        self.lines_are_rows = True
        self.path, self._encoding, self._quote = Path(path), encoding, '"' if quotes else False
        self._utf8 = _is_utf8(encoding)
        self._parquet = self.path.suffix in (".parquet", ".pq")
        if not self.path.is_file():
            raise ValueError(f"there is no file {str(path)!r}")
        if self._parquet:
            self._delimiter = ""
            try:
                self.columns = list(pa.parquet.read_schema(self.path).names)
            except (OSError, pa.ArrowInvalid) as error:
                raise ValueError(f"{path} is not a Parquet file, or damaged: {error}") from error
        else:
            header = self._first_line()
            self._delimiter = delimiter or max(DELIMITERS, key=header.count)
            self.columns = self._names(header)
            typed = [ATOMIC.fullmatch(name) for name in self.columns]
            if all(typed):
                self.types = {match[1]: match[2] for match in typed if match}
                self.columns = [match[1] for match in typed if match]
        twice = {name for name in self.columns if self.columns.count(name) > 1}
        if twice:
            raise ValueError(f"{path}: there are two columns {sorted(twice)[0]!r}")

    def _first_line(self) -> str:
        with open_bytes(self.path, show_progress=False) as file:
            start = file.read(2**20)
        if start.startswith(b"PK\x03\x04"):
            raise ValueError(f"{self.path} is a zip or Excel file: save the table as CSV")
        try:
            text = codecs.getincrementaldecoder(self._encoding)().decode(start.split(b"\n", 1)[0] if self._utf8 else start)
            return text.split("\n", 1)[0].removeprefix("\ufeff").rstrip("\r")
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.path} cannot be read as {self._encoding} (--encoding): {error}") from error

    def _names(self, line: str) -> list[str]:
        if not line.strip():
            raise ValueError(f"{self.path}: the first line is empty, and should hold the names of the columns")
        options = pa.csv.ParseOptions(delimiter=self._delimiter, quote_char=self._quote)
        with reading(self.path, "a table whose first line can be read"):
            read = pa.csv.read_csv(pa.py_buffer((line + "\n").encode()), parse_options=options)
        return list(read.column_names)

    def rows_about(self) -> int:
        """The number of rows of a Parquet file; for a text file, a rough estimate from its size, packed or not."""
        if self._parquet:
            return pa.parquet.read_metadata(self.path).num_rows
        return self.path.stat().st_size // (4 if self.path.suffix == ".gz" else 16)

    def check(self, column: str, option: str) -> str:
        """The name `column`; ValueError with the nearest name if the table has no such column."""
        if column not in self.columns:
            raise ValueError(
                f"{self.path} has no column {column!r} (--{option}){did_you_mean(column, self.columns)} "
                f"Its columns are {', '.join(self.columns)}"
            )
        return column

    def batches(
        self, columns: Sequence[str], bad: BadLines, show_progress: bool = True, coded: Sequence[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        """These columns, some rows at a time. Columns of a text file are text; only empty values count as missing.

        Args:
            coded: columns that may come dictionary-encoded, which is faster.
        """
        if self._parquet:
            try:
                yield from parquet_batches(self.path, columns, ROWS, coded)
            except (OSError, pa.ArrowInvalid) as error:
                raise ValueError(f"{self.path} is damaged ({error}): get it again") from error
            return
        self.lines_are_rows = True
        with open_bytes(self.path, show_progress) as file:
            try:
                yield from self._csv(file, list(columns), bad)
            except UnicodeDecodeError as error:
                raise ValueError(f"{self.path} cannot be read as {self._encoding} (--encoding): {error}") from error
            except pa.ArrowInvalid as error:
                hint = (
                    "; say which encoding it has (--encoding; tables that Excel has saved are often in cp1252)"
                    if "UTF8" in str(error).upper()
                    else ""
                )
                raise ValueError(f"{self.path} cannot be read: {error}{hint}") from error

    def head(self, columns: Sequence[str]) -> pa.RecordBatch | None:
        """These columns of the first rows; None if there are no rows."""
        ignored = BadLines(self.path, most=10**9)
        return next(iter(self.batches(columns, ignored, show_progress=False)), None)

    def _csv(self, file: IO[bytes], columns: list[str], bad: BadLines) -> Iterator[pa.RecordBatch]:
        """The rows of the file, one block after the other. pyarrow's own reader of whole files leaves threads behind."""
        line = 1
        for block in self._whole_rows(file):
            first = line

            def skip(row: pa.csv.InvalidRow, first: int = first) -> str:
                bad.add(
                    first + (row.number or 1) - 1, f"{row.actual_columns} columns and not {row.expected_columns}", row.text
                )
                return "skip"

            table = pa.csv.read_csv(
                pa.BufferReader(block),
                read_options=pa.csv.ReadOptions(
                    column_names=self.columns, skip_rows=1 if line == 1 else 0, use_threads=False, block_size=len(block) + 1
                ),
                parse_options=pa.csv.ParseOptions(
                    delimiter=self._delimiter, quote_char=self._quote, newlines_in_values=True,
                    invalid_row_handler=skip if _is_text(block) else None,  # pyarrow can only pass text to the handler
                ),
                convert_options=pa.csv.ConvertOptions(
                    column_types=dict.fromkeys(self.columns, pa.string()), include_columns=columns, strings_can_be_null=True,
                    null_values=[""], quoted_strings_can_be_null=True,
                ),
            )  # fmt: skip
            lines = block.count(b"\n") + (not block.endswith(b"\n"))
            self.lines_are_rows &= table.num_rows + (line == 1) == lines
            line += lines
            yield from table.combine_chunks().to_batches()

    def _whole_rows(self, file: IO[bytes]) -> Iterator[bytes]:
        """UTF-8 blocks of the file. Each ends with a row: at a line break with an even number of quotes before it."""
        decoder = None if self._utf8 else codecs.getincrementaldecoder(self._encoding)()
        rest, line = b"", 1
        while True:
            read = file.read(BLOCK)
            block = read if decoder is None else decoder.decode(read, final=not read).encode()
            if line == 1 and not rest:
                block = block.removeprefix(codecs.BOM_UTF8)
            rest += block
            if not read:
                break
            if end := _last_end(rest) if self._quote else rest.rfind(b"\n") + 1:
                yield rest[:end]
                line += rest[:end].count(b"\n")
                rest = rest[end:]
            if len(rest) > LONGEST:
                raise ValueError(f"{self.path}, line {line:,} or later: a quote is opened and not closed again; {NO_QUOTES}")
        if self._quote and rest.count(b'"') % 2:
            opened = line + rest[: rest.rfind(b'"')].count(b"\n")
            raise ValueError(f"{self.path}: a quote is opened and never closed, in line {opened:,} or before; {NO_QUOTES}")
        if rest.strip():
            yield rest


def parquet_batches(path: Path, columns: Sequence[str], rows: int, coded: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
    """These columns of a Parquet file, `rows` rows at a time. Text columns in `coded` come dictionary-encoded.

    Nothing is read ahead: pyarrow would keep all bytes that it has read until the end of the file.
    """
    schema = pa.parquet.read_schema(path)
    for column in columns:
        kind = schema.field(column).type
        if pa.types.is_nested(kind) and (not is_list(kind) or pa.types.is_nested(kind.value_type)):
            raise ValueError(f"{path}: column {column!r} holds {kind}, which is no text, no number and no list of them")
    texts = [column for column in coded if not pa.types.is_nested(schema.field(column).type)]
    file = pa.parquet.ParquetFile(path, read_dictionary=texts, pre_buffer=False)
    for batch in file.iter_batches(batch_size=rows, columns=list(columns)):
        batch.validate(full=True)  # reading does not check that texts are UTF-8
        yield batch


def _last_end(text: bytes) -> int:
    """The position after the last line break that is not inside quotes; 0 if there is none.

    Example:
        >>> _last_end(b'a,b\\n"c\\nd",e')
        4
    """
    signs = np.frombuffer(text, dtype=np.uint8)
    quoted = np.cumsum(signs == ord('"'), dtype=np.int32) % 2
    ends = np.flatnonzero((signs == ord("\n")) & (quoted == 0))
    return int(ends[-1]) + 1 if len(ends) else 0


def _is_utf8(encoding: str) -> bool:
    try:
        return codecs.lookup(encoding).name in ("utf-8", "ascii", "utf-8-sig")
    except LookupError as error:
        raise ValueError(f"encoding: {error}; try utf-8, latin-1 or utf-16") from error


def _is_text(block: bytes) -> bool:
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


def is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def as_text(values: pa.Array) -> pa.Array:
    """Ids as text. Whole numbers that pandas has turned into floats, such as 42.0, become whole again."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_floating(values.type):
        numbers = (None if one is None else float(one) for one in values.to_pylist())
        return pa.array(
            [None if v is None or v != v else str(int(v)) if v.is_integer() else repr(v) for v in numbers], pa.string()
        )
    try:
        return values.cast(pa.string())
    except pa.ArrowNotImplementedError as error:
        raise ValueError(f"a column holds {values.type}, which is no text and no number: {error}") from error


def is_missing(values: pa.Array) -> np.ndarray:
    """Which values are missing, `[N]`. Nan counts as missing: `as_text` makes no text of it."""
    if pa.types.is_dictionary(values.type) and pa.types.is_floating(values.type.value_type):
        values = values.dictionary_decode()
    if not values.null_count and not pa.types.is_floating(values.type):
        return np.zeros(len(values), dtype=bool)
    return values.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)


def as_numbers(values: pa.Array) -> np.ndarray:
    """The values as numbers `[N]`; nan for a value that is no number."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if not (
        pa.types.is_string(values.type) or pa.types.is_large_string(values.type) or pa.types.is_string_view(values.type)
    ):
        return values.cast(pa.float64()).to_numpy(zero_copy_only=False)
    texts = pd.Series(values.to_pylist(), dtype=object).str.replace(r"^\s*(-?\d+),(\d+)\s*$", r"\1.\2", regex=True)  # 4,5
    return pd.to_numeric(texts, errors="coerce").to_numpy(dtype=float)
