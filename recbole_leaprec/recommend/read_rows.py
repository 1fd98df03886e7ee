"""Reads files of candidates, histories and preferences some rows at a time: users, and the other columns as numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recbole_leaprec.convert.bad_lines import BadLines
from recbole_leaprec.convert.tables import Table, as_numbers, as_text, is_missing
from recbole_leaprec.convert.times import guess_form, read_times
from recbole_leaprec.recommend.catalogue import ITEM, Catalogue, ItemIds
from recbole_leaprec.recommend.histories import COLUMNS, ITEMS, USER, split_items
from recbole_leaprec.recommend.rerank_frame import CATEGORY, SCORE, SHARE, TIME
from recbole_leaprec.recommend.rerank_part import Counts
from recbole_leaprec.recommend.tastes import category_ids

Rows = Iterator[tuple[pa.Array, dict[str, np.ndarray]]]


def candidate_rows(table: Table, ids: ItemIds, bad: BadLines, show_progress: bool) -> Rows:
    """Users with `item` (an item that is not in the catalogue gets an id, too) and `score` (nan if missing)."""
    for users, item, score in _columns(table, (USER, ITEM, SCORE), "candidates", bad, show_progress, (USER, ITEM)):
        yield users, {ITEM: ids.of_all(item), SCORE: as_numbers(score)}


def history_rows(table: Table, ids: ItemIds, counts: Counts, bad: BadLines, show_progress: bool) -> Rows:
    """Users with `item` and, for events, `timestamp`. Items that are not in the catalogue are counted and left out."""
    if ITEMS in table.columns:
        for users, lists in _columns(table, (USER, ITEMS), "histories", bad, show_progress, (USER,)):
            of, tokens = _flat(lists)
            yield _known(users.take(of), {ITEM: ids.of(tokens)}, counts)
        return
    form: str | None = None
    for users, tokens, times in _columns(table, (USER, ITEM, TIME), "histories", bad, show_progress, (USER, ITEM)):
        form = form or guess_form(times)
        if form is None:
            raise ValueError(f"{table.path}: the times of column {TIME!r} have no form that is known")
        seconds = read_times(times, form)
        read = np.isfinite(seconds)
        for text in times.filter(pa.array(~read)).cast(pa.string()).to_pylist():
            bad.add(None, f"a {TIME} that cannot be read", text)
        events = {ITEM: ids.of(tokens.filter(pa.array(read))), TIME: seconds[read]}
        yield _known(users.filter(pa.array(read)), events, counts)


def share_rows(table: Table, catalogue: Catalogue, bad: BadLines, show_progress: bool) -> Rows:
    """Users with `category` (its number) and `share`."""
    for users, categories, texts in _columns(
        table, (USER, CATEGORY, SHARE), "preferences", bad, show_progress, (USER, CATEGORY)
    ):
        share = as_numbers(texts)
        yield users, {CATEGORY: category_ids(users, categories, share, catalogue.names, str(table.path)), SHARE: share}


def _columns(
    table: Table, columns: Sequence[str], option: str, bad: BadLines, show_progress: bool, coded: Sequence[str]
) -> Iterator[list[pa.Array]]:
    """The columns, without bad rows (those without a user, an item or a time). ValueError if the table has no rows."""
    for column in columns:
        table.check(column, option)
    some = False
    for batch in table.batches(columns, bad, show_progress, coded):
        values = [batch.column(batch.schema.get_field_index(column)) for column in columns]
        good = np.ones(len(batch), dtype=bool)
        for column, value in zip(columns, values, strict=True):
            if column in (USER, ITEM, TIME):
                for place in np.flatnonzero(good & is_missing(value)).tolist():
                    bad.add(None, f"no {column} in row {place + 1} of a block")
                    good[place] = False
        some = some or len(batch) > 0
        yield values if good.all() else [value.filter(pa.array(good)) for value in values]
    if not some:
        raise ValueError(f"{table.path} has no rows (--{option})")


def _known(users: pa.Array, columns: dict[str, np.ndarray], counts: Counts) -> tuple[pa.Array, dict[str, np.ndarray]]:
    known = columns[ITEM] > 0
    if known.all():
        return users, columns
    counts.unknown_events += int((~known).sum())
    return users.filter(pa.array(known)), {name: values[known] for name, values in columns.items()}


def _flat(lists: pa.Array) -> tuple[pa.Array, pa.Array]:
    """`(row of each item, items of all histories one after the other)`, split as by `split_items`."""
    if pa.types.is_dictionary(lists.type):
        lists = lists.dictionary_decode()
    if pa.types.is_fixed_size_list(lists.type):
        lists = lists.cast(pa.list_(lists.type.value_type))
    if pa.types.is_string(lists.type) or pa.types.is_large_string(lists.type):
        printed = pc.index(pc.starts_with(pc.utf8_ltrim_whitespace(lists), "["), True).as_py()
        if printed >= 0:
            split_items(lists[printed].as_py())  # raises the error
        lists = pc.utf8_split_whitespace(lists)
    if pa.types.is_null(lists.type) or pa.types.is_floating(lists.type):  # fine if all are missing, else an error
        lists = pa.array([split_items(value) for value in lists.to_pylist()], pa.list_(pa.string()))
    if not (pa.types.is_list(lists.type) or pa.types.is_large_list(lists.type)):
        raise ValueError(
            f"histories: {ITEMS} has values of type {lists.type}; it needs {COLUMNS}, a row for each user and not for each item"
        )
    of, tokens = pc.list_parent_indices(lists), as_text(pc.list_flatten(lists))
    some = pc.not_equal(tokens, "").fill_null(True)  # spaces at an end give an empty token
    return of.filter(some), tokens.filter(some)
