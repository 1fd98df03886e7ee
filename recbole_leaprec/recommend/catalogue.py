"""Items by token and by id, with their categories."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from recbole_leaprec.convert.tables import as_text
from recbole_leaprec.core.categories import ItemCategories

ITEM, CATEGORIES = "item", "categories"
_NAMES = b"names"


@dataclass(frozen=True)
class Catalogue:
    """Items with the ids 1, 2, ..., in the order of their rows. Of items with equal scores, the lower id is preferred.

    Attributes:
        names: the names of the categories.
        tokens: the tokens of the items.
        members: the categories of each item.
    """

    names: list[str]
    tokens: list[str]
    members: list[list[int]]

    @classmethod
    def of(cls, items: pd.DataFrame) -> Catalogue:
        """The catalogue of a table. An item in several rows has the categories of all.

        Raises:
            ValueError: a column is missing, a row has no item, or no item has a category.
        """
        check_columns(items, (ITEM, CATEGORIES), "items")
        lists = [[] if value is None or isinstance(value, float) else list(value) for value in items[CATEGORIES]]
        names = sorted({str(name) for own in lists for name in own})
        if not names:
            raise ValueError("items: no item has any category, and there is nothing to calibrate")
        tokens = text_of(items[ITEM])
        if tokens.null_count:
            raise ValueError(f"items: {tokens.null_count} rows have no {ITEM}; leave them out")
        index = {name: number for number, name in enumerate(names)}
        members: dict[str, list[int]] = {}
        for token, own in zip(tokens.to_pylist(), lists, strict=True):
            members.setdefault(token, []).extend(index[str(name)] for name in own)
        return cls(names, list(members), list(members.values()))

    @cached_property
    def categories(self) -> ItemCategories:
        return ItemCategories(self.names, [[], *self.members])

    @cached_property
    def token_of_id(self) -> pa.Array:
        """The token of each id, `[I]`; null at 0."""
        return pa.array([None, *self.tokens], pa.string())

    def write(self, path: Path) -> None:
        """Write a file from which workers in other processes read the catalogue."""
        table = pa.table({ITEM: self.tokens, CATEGORIES: pa.array(self.members, pa.list_(pa.int32()))})
        pa.parquet.write_table(table.replace_schema_metadata({_NAMES: json.dumps(self.names)}), path)

    @classmethod
    def read(cls, path: Path) -> Catalogue:
        table = pa.parquet.read_table(path)
        return cls(
            json.loads(table.schema.metadata[_NAMES]), table.column(ITEM).to_pylist(), table.column(CATEGORIES).to_pylist()
        )


class ItemIds:
    """The ids of a catalogue's items. Other items that are found while rows are read get the ids after them."""

    def __init__(self, catalogue: Catalogue):
        self._catalogue = catalogue
        self._ids = {token: number for number, token in enumerate(catalogue.tokens, 1)}
        self._more: dict[str, int] = {}

    @property
    def unknown(self) -> list[str]:
        """Items that are not in the catalogue."""
        return list(self._more)

    def of(self, tokens: pa.Array) -> np.ndarray:
        """The ids of tokens, `[N]`; 0 for items that are not in the catalogue, and for missing ones."""
        number, different = coded(tokens)
        return np.array([*(self._ids.get(token, 0) for token in different.to_pylist()), 0], np.int32)[number]

    def of_all(self, tokens: pa.Array) -> np.ndarray:
        """The ids of tokens, `[N]`; items that are not in the catalogue get new ids; 0 for missing ones."""
        number, different = coded(tokens)
        ids = [self._ids.get(token) or self._id_of_other(token) for token in different.to_pylist()]
        return np.array([*ids, 0], np.int32)[number]

    def _id_of_other(self, token: str) -> int:
        return self._more.setdefault(token, len(self._ids) + len(self._more) + 1)

    def catalogue(self) -> Catalogue:
        """The catalogue with the other items added, which have no category."""
        if not self._more:
            return self._catalogue
        own = self._catalogue
        return Catalogue(own.names, [*own.tokens, *self._more], [*own.members, *([] for _ in self._more)])


def coded(values: pa.Array) -> tuple[np.ndarray, pa.Array]:
    """`(number of each value's text, -1 if it is missing; the different texts)`."""
    values = values if pa.types.is_dictionary(values.type) else as_text(values).dictionary_encode()
    index, different = values.indices.fill_null(-1).to_numpy(), as_text(values.dictionary)
    # A dictionary may also hold texts of rows that are not in this array.
    used = np.zeros(len(different) + 1, dtype=bool)
    used[index] = True
    kept = np.flatnonzero(used[:-1])
    number = np.full(len(used), -1, np.int32)
    number[kept] = np.arange(len(kept), dtype=np.int32)
    return number[index], different.take(pa.array(kept))


def text_of(values: pd.Series) -> pa.Array:
    """A column of ids of any type as text; null for missing ones."""
    try:
        found = pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # values of several types
        return pa.array([None if missing else str(v) for v, missing in zip(values, values.isna(), strict=True)], pa.string())
    return as_text(found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found)


def check_columns(frame: pd.DataFrame, columns: Sequence[str], what: str) -> None:
    missing = [column for column in columns if column not in frame]
    if missing:
        raise ValueError(
            f"{what} needs the columns {', '.join(columns)}, and lacks {', '.join(missing)}; it has {', '.join(map(str, frame))}"
        )
