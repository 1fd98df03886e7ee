"""Calibrated lists out of files of candidates, in memory that does not grow with them.

Candidates and histories are first dealt out to files of their own by a hash of the user, as many as it takes to hold one of each at a
time; so neither has to be in any order.
"""

from __future__ import annotations

import math
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
from tqdm import tqdm

from recbole_leaprec.convert.bad_lines import BadLines
from recbole_leaprec.convert.catalogue import LIST, guess_separator, split_categories
from recbole_leaprec.convert.tables import Table, as_numbers, as_text
from recbole_leaprec.convert.times import guess_form, read_times
from recbole_leaprec.defaults import LIST_LENGTH, MAX_BAD_LINES
from recbole_leaprec.keys import check_count
from recbole_leaprec.recommend.histories import ITEMS, USER
from recbole_leaprec.recommend.rerank_frame import (
    CATEGORIES,
    ITEM,
    SCORE,
    TIME,
    Catalogue,
    Counts,
    history_table,
    rerank_with,
)
from recbole_leaprec.recommend.writer import check_out, open_writer
from recbole_leaprec.reranking.lambda_search import smallest_lambda
from recbole_leaprec.reranking.reranking import Reranking

PART = 500_000
"""Candidates that go to one part, about."""

MOST_PARTS = 500
"""All of them are open at a time while rows are dealt out."""


def rerank_file(
    candidates: str | Path,
    items: str | Path,
    histories: str | Path,
    out: str | Path,
    reranking: Reranking | None = None,
    *,
    target_skl: float | None = None,
    k: int = LIST_LENGTH,
    alpha: float = 0.9,
    beta: float = 0.01,
    category_separator: str | None = None,
    max_bad: int = MAX_BAD_LINES,
    show_progress: bool = True,
) -> dict[str, Any]:
    """Rerank the candidates of all users and write their lists.

    Args:
        candidates: CSV, TSV or Parquet with the columns `user`, `item` and `score`.
        items: with `item` and `categories`, a list or a text.
        histories: with `user` and `items`, or with `user`, `item` and `timestamp`.
        out: a .parquet, .csv or .trec file, as `recommend` writes it; users come in another order than among the candidates.
        reranking: None for `leaprec` with lambda 0.3.
        target_skl: find the smallest lambda whose lists have at most this S_KL, in the mean over these users.

    Returns:
        `users`, `seconds`, the mean `skl`, the `lambda`, and `told`, what was found on the way.

    Raises:
        ValueError: bad arguments or files; nothing is written then.
    """
    started, out, method = time.perf_counter(), check_out(out), reranking or Reranking("leaprec", 0.3)
    check_count("k", k)
    tables = {name: Table(path) for name, path in (("candidates", candidates), ("items", items), ("histories", histories))}
    bad = [BadLines(table.path, max_bad) for table in tables.values()]
    catalogue = _read_items(tables["items"], category_separator, bad[1], show_progress)
    with tempfile.TemporaryDirectory(prefix=".candidates-", dir=out.absolute().parent) as scratch:
        count = min(max(1, math.ceil(tables["candidates"].rows_about() / PART)), MOST_PARTS)
        _deal(tables["candidates"], (USER, ITEM, SCORE), count, Path(scratch) / "c", bad[0], show_progress)
        listed = ITEMS in tables["histories"].columns
        _deal(
            tables["histories"],
            (USER, ITEMS) if listed else (USER, ITEM, TIME),
            count,
            Path(scratch) / "h",
            bad[2],
            show_progress,
        )

        def parts() -> Iterator[tuple[pd.DataFrame, dict[str, list[str]]]]:
            for number in range(count):
                dealt = [pd.read_parquet(Path(scratch) / f"{kind}-{number}.parquet") for kind in "ch"]
                yield dealt[0], history_table(dealt[1])

        if target_skl is not None:
            lam, _ = smallest_lambda(
                lambda lambdas: _mean_skl(parts, catalogue, method, lambdas, k, alpha, beta), target_skl
            )
            method = replace(method, lam=lam)
        counts, skl, calibrated = Counts(), 0.0, 0
        with open_writer(out) as writer, tqdm(total=count, desc="reranking", unit="part", disable=not show_progress) as bar:
            for own, past in parts():
                lists = rerank_with(own, catalogue, past, method, k, alpha, beta, counts)
                writer.write(lists)
                first = lists.loc[lists["rank"] == 1, "skl"]
                skl, calibrated = skl + float(first.sum()), calibrated + int(first.notna().sum())
                bar.update()
    return {
        "users": counts.users, "lambda": method.lam, "skl": skl / calibrated if calibrated else None,
        "seconds": time.perf_counter() - started, "out": str(out),
        "told": [*(one.told() for one in bad if one.count), *counts.told()],
    }  # fmt: skip


def _mean_skl(
    parts: Any, catalogue: Catalogue, reranking: Reranking, lambdas: Sequence[float], k: int, alpha: float, beta: float
) -> list[float]:
    """The mean S_KL of all users with a history, at each lambda."""
    sums, users = np.zeros(len(lambdas)), 0
    for own, past in parts():
        for number, lam in enumerate(lambdas):
            lists = rerank_with(own, catalogue, past, replace(reranking, lam=lam), k, alpha, beta)
            first = lists.loc[lists["rank"] == 1, "skl"]
            sums[number] += first.sum()
            users += int(first.notna().sum()) if number == 0 else 0
    if not users:
        raise ValueError("target_skl: no user has a history, so there is no S_KL")
    return (sums / users).tolist()


def read_categories(path: str | Path, show_progress: bool = True) -> dict[str, list[str]]:
    """The category names of each item of a file with the columns `item` and `categories`."""
    table = Table(path)
    found = _read_items(table, None, BadLines(table.path, MAX_BAD_LINES), show_progress)
    return {item: [found.names[c] for c in own] for item, own in found.members.items()}


def _read_items(table: Table, separator: str | None, bad: BadLines, show_progress: bool) -> Catalogue:
    """Categories of all items; rows of one item add up."""
    for column in (ITEM, CATEGORIES):
        table.check(column, "items")
    frames = []
    for batch in table.batches([ITEM, CATEGORIES], bad, show_progress):
        values = batch.column(1).to_pylist()
        if separator is None:
            lists = any(isinstance(value, list) for value in values)
            separator = LIST if lists else guess_separator(str(value) for value in values if value is not None)
        names = [
            value if isinstance(value, list) else split_categories(str(value), separator) if value is not None else []
            for value in values
        ]
        frames.append(pd.DataFrame({ITEM: as_text(batch.column(0)).to_pylist(), CATEGORIES: pd.Series(names, dtype=object)}))
    if not frames:
        raise ValueError(f"{table.path} has no rows")
    return Catalogue.of(pd.concat(frames, ignore_index=True))


def _deal(table: Table, columns: Sequence[str], count: int, stem: Path, bad: BadLines, show_progress: bool) -> None:
    """Rows of a file to `count` Parquet files, by a hash of the user; all rows of a user go to one of them, in their order."""
    for column in columns:
        table.check(column, (stem.name == "c" and "candidates") or "histories")
    writers: dict[int, pa.parquet.ParquetWriter] = {}
    form: str | None = None
    schema: pa.Schema | None = None
    try:
        for batch in table.batches(columns, bad, show_progress):
            values: dict[str, pa.Array] = {}
            for column in columns:
                own = batch.column(batch.schema.get_field_index(column))
                if column == TIME:
                    form = form or guess_form(own)
                    if form is None:
                        raise ValueError(f"{table.path}: the times of column {TIME!r} have no form that is known")
                    values[column] = pa.array(read_times(own, form))
                elif column == SCORE:
                    values[column] = pa.array(as_numbers(own))
                else:
                    values[column] = own if column == ITEMS and pa.types.is_list(own.type) else as_text(own)
            rows = pa.table(values)
            schema = schema or rows.schema
            users = values[USER].to_pylist()
            bucket = np.array([zlib.crc32(user.encode()) % count if user is not None else -1 for user in users])
            for number in np.unique(bucket):
                if number < 0:
                    for place in np.flatnonzero(bucket < 0).tolist():
                        bad.add(None, f"no user in row {place + 1} of a block")
                    continue
                if number not in writers:
                    writers[number] = pa.parquet.ParquetWriter(f"{stem}-{number}.parquet", schema)
                writers[number].write_table(rows.filter(pa.array(bucket == number)))
    finally:
        for writer in writers.values():
            writer.close()
    if schema is None:
        raise ValueError(f"{table.path} has no rows")
    for number in {*range(count)} - writers.keys():
        pa.parquet.write_table(schema.empty_table(), f"{stem}-{number}.parquet")
