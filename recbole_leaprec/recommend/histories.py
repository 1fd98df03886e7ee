"""Histories to make lists for: those of all users of the dataset, or of a file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from recbole_leaprec.common.reading import read_all, reading
from recbole_leaprec.convert.tables import parquet_batches
from recbole_leaprec.data import SequenceDataset

USER, ITEMS = "user", "items"
LEAVE_OUT = "leave_out"
"""An optional column: items that the user's list must not hold, in the same form as the history."""
COLUMNS = f"{USER} and {ITEMS} (the item tokens, oldest first: a list, or a text with spaces between them)"


_HOLD_ITEMS = (
    pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list, pa.types.is_string, pa.types.is_large_string,
    pa.types.is_null, pa.types.is_floating,
)  # fmt: skip
"""Types that a column of histories may have; the last two if all values are missing."""


def of_dataset(dataset: SequenceDataset, size: int) -> Iterator[pd.DataFrame]:
    """All users of the dataset with their whole histories, `size` users at a time, in the dataset's order."""
    sequences = dataset.sequences
    users, items = dataset.field2id_token[dataset.uid_field], dataset.field2id_token[dataset.iid_field]
    tokens, offsets = items[sequences.items.numpy()], sequences.offsets.tolist()
    for start in range(1, len(users), size):  # user 0 is padding
        ids = range(start, min(start + size, len(users)))
        yield pd.DataFrame({USER: [users[u] for u in ids], ITEMS: [list(tokens[offsets[u] : offsets[u + 1]]) for u in ids]})


def of_file(path: str | Path, size: int) -> Iterator[pd.DataFrame]:
    """The rows of a Parquet or CSV file, at most `size` at a time. The whole file is never in memory."""
    path = check_file(path)
    if path.suffix == ".parquet":
        names = [name for name in (USER, ITEMS, LEAVE_OUT) if name in pa.parquet.read_schema(path).names]
        batches: Iterable[pa.RecordBatch] = parquet_batches(path, names, size)
    else:
        batches = _csv(path)
    frames = (batch.to_pandas(ignore_metadata=True) for batch in batches)
    for frame in read_all(path, _OURS, frames):
        check_users(frame, path)
        for start in range(0, len(frame), size):
            yield frame.iloc[start : start + size]


def check_file(path: str | Path) -> Path:
    """The path of a file of histories; ValueError if it is not one."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"histories file {path} does not exist (--histories)")
    if path.suffix not in (".parquet", ".csv"):
        raise ValueError(f"histories file {path}: must be .parquet or .csv, with columns {COLUMNS}")
    with reading(path, _OURS):
        schema = pa.parquet.read_schema(path) if path.suffix == ".parquet" else _csv(path).schema
    check_schema(schema, path)
    return path


_OURS = "a file of histories that can be read"


def check_users(rows: pd.DataFrame, path: str | Path) -> None:
    """ValueError if a row has no user."""
    if (rows[USER].isna() | (rows[USER] == "")).any():
        raise ValueError(f"histories file {path} has a row without a user")


def check_schema(schema: pa.Schema, path: str | Path) -> None:
    """ValueError if a file with this schema cannot hold histories."""
    for name in (USER, ITEMS, LEAVE_OUT):
        if schema.names.count(name) > 1:
            raise ValueError(f"histories file {path}: there are two columns {name!r}")
    if missing := {USER, ITEMS} - set(schema.names):
        raise ValueError(
            f"histories file {path} has no column {', '.join(sorted(missing))}; it has {', '.join(schema.names)}, and needs {COLUMNS}"
        )
    for name in (name for name in (ITEMS, LEAVE_OUT) if name in schema.names):
        kind = schema.field(name).type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        if not any(check(kind) for check in _HOLD_ITEMS):
            raise ValueError(
                f"histories file {path}: {name} has values of type {kind}; it needs {COLUMNS}, a row for each user and not for each item"
            )


def _csv(path: Path) -> pa.csv.CSVStreamingReader:
    return pa.csv.open_csv(
        path, convert_options=pa.csv.ConvertOptions(column_types=dict.fromkeys((USER, ITEMS, LEAVE_OUT), pa.string()))
    )


def split_items(value: str | Iterable[Any] | float | None) -> list[str]:
    """The item tokens of one history, from a list or from a text with spaces; an empty list if it is missing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):  # missing values in pandas
        return []
    if isinstance(value, float):
        raise ValueError(f"the history {value} is a number: it must hold {COLUMNS.partition('(')[2].rstrip(')')}")
    if not isinstance(value, str):
        return [str(token) for token in value]
    if value.lstrip().startswith("["):
        raise ValueError(
            f"the history {value[:40]!r} looks like a printed list: write the item tokens with spaces between them, or use Parquet"
        )
    return value.split()
