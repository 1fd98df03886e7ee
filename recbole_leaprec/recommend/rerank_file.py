"""Makes calibrated lists from files of candidates. Memory does not grow with the files.

Candidates and histories are first distributed over parts by a hash of the user, so their rows may have any order. A
part is small enough for memory. Then each part is reranked alone, here or over a Ray cluster.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from tqdm import tqdm

from recbole_leaprec.common.defaults import LIST_LENGTH, MAX_BAD_LINES
from recbole_leaprec.common.files import scratch_folder
from recbole_leaprec.common.parquet_folder import check_folders
from recbole_leaprec.common.reading import read_all, reading
from recbole_leaprec.convert.bad_lines import BadLines
from recbole_leaprec.convert.catalogue import LIST, guess_separator, list_names, split_categories
from recbole_leaprec.convert.tables import Table, as_text, is_missing
from recbole_leaprec.recommend.catalogue import CATEGORIES, ITEM, Catalogue, ItemIds
from recbole_leaprec.recommend.deal import deal
from recbole_leaprec.recommend.parts import CANDIDATES, TASTES, Parts
from recbole_leaprec.recommend.read_rows import candidate_rows, history_rows, share_rows
from recbole_leaprec.recommend.rerank_frame import check_one
from recbole_leaprec.recommend.rerank_part import PREFERENCE, Counts, Wanted
from recbole_leaprec.recommend.writer import check_out, open_writer
from recbole_leaprec.reranking.lambda_search import smallest_lambda
from recbole_leaprec.reranking.reranking import Reranking
from recbole_leaprec.settings.keys import check_count, check_engine

PART = 500_000
"""About how many candidates go to one part."""

MOST_PARTS = 500
"""All parts are open while rows are distributed. With more than 250 million candidates, parts are larger than `PART`."""


def rerank_file(
    candidates: str | Path,
    items: str | Path,
    histories: str | Path | None,
    out: str | Path,
    reranking: Reranking | None = None,
    *,
    preferences: str | Path | None = None,
    target_skl: float | None = None,
    k: int = LIST_LENGTH,
    alpha: float = 0.9,
    beta: float = 0.01,
    category_separator: str | None = None,
    max_bad: int = MAX_BAD_LINES,
    engine: str = "local",
    workers: int | None = None,
    ray_address: str | None = None,
    show_progress: bool = True,
) -> dict[str, Any]:
    """Rerank the candidates of all users, and write their lists.

    Args:
        candidates: CSV, TSV or Parquet with the columns `user`, `item` and `score`. With the Ray engine also a folder of
            .parquet files, or its address such as s3://bucket/folder. Then `out` is a folder, and so are histories or
            preferences. All candidates of a user must be in one file, and the user's history or preference in the file
            of the same name.
        items: a table with `item` and `categories`, a list or a text.
        histories: a table with `user` and `items`, or `user`, `item` and `timestamp`; None if preferences are given.
        out: a .parquet, .csv or .trec file, as `recommend` writes it. The order of users is not that of the candidates.
        reranking: None for `leaprec` with lambda 0.3.
        preferences: instead of histories, a table with `user`, `category` and `share`; a user's shares are scaled to sum
            to 1.
        target_skl: use the smallest lambda at which the mean S_KL of these users' lists is at most this.
        engine: `local`, or `ray` for Ray Data over a cluster; all nodes must see the folder of `out` with the parts.
        workers: number of processes of the Ray engine, one CPU each; None for one per CPU.

    Returns:
        `users`, `seconds`, the mean `skl`, the `lambda`, and `told`: sentences about problems in the files.

    Raises:
        ValueError: bad arguments or files. Then nothing is written, except files of a folder that were made before a
            bad one was found.
    """
    started = time.perf_counter()
    wanted = Wanted(reranking or Wanted().reranking, k, alpha, beta)
    check_count("k", k)
    check_engine(engine, workers, ray_address=ray_address)
    check_one(histories, preferences)
    wanted.check()
    if check_folders(engine, out, candidates=candidates, histories=histories, preferences=preferences):
        from recbole_leaprec.recommend.rerank_folder import rerank_folder

        if target_skl is not None:
            raise ValueError(
                f"target_skl: one file of candidates is enough to find the lambda that meets {target_skl:g}; take one, and give "
                "the lambda to the folder (--rerank_lambda)"
            )
        table = Table(items)
        catalogue = _read_items(table, category_separator, BadLines(table.path, max_bad), show_progress)
        option, tastes = ("histories", histories) if preferences is None else ("preferences", preferences)
        done = rerank_folder(
            candidates, catalogue, tastes or "", option=option, out=out, wanted=wanted, max_bad=max_bad, workers=workers,
            ray_address=ray_address, show_progress=show_progress,
        )  # fmt: skip
        return {**done, "lambda": wanted.reranking.lam, "seconds": time.perf_counter() - started, "out": str(out)}
    out = check_out(out)
    paths = {"candidates": candidates, "items": items, "histories": histories, "preferences": preferences}
    done = _rerank_tables(
        {name: Table(path) for name, path in paths.items() if path is not None}, out, wanted=wanted, target_skl=target_skl,
        category_separator=category_separator, max_bad=max_bad, ray=engine == "ray", workers=workers, ray_address=ray_address,
        show_progress=show_progress,
    )  # fmt: skip
    return {**done, "seconds": time.perf_counter() - started, "out": str(out)}


def _rerank_tables(
    tables: Mapping[str, Table],
    out: Path,
    *,
    wanted: Wanted,
    target_skl: float | None,
    category_separator: str | None,
    max_bad: int,
    ray: bool,
    workers: int | None,
    ray_address: str | None,
    show_progress: bool,
) -> dict[str, Any]:
    """Write the lists of tables of candidates, items, and histories or preferences; returns as `rerank_folder`, with the `lambda`."""
    from recbole_leaprec.cluster import connected

    tastes = "preferences" if "preferences" in tables else "histories"
    bad = {name: BadLines(table.path, max_bad) for name, table in tables.items()}
    ids = ItemIds(_read_items(tables["items"], category_separator, bad["items"], show_progress))
    counts = Counts(source=PREFERENCE) if tastes == "preferences" else Counts()
    # The output gets its name last: a kill after that leaves nothing beside it.
    with open_writer(out) as writer, scratch_folder(out) as scratch, connected(ray_address) if ray else nullcontext():
        count = min(max(1, math.ceil(tables["candidates"].rows_about() / PART)), MOST_PARTS)
        rows = candidate_rows(tables["candidates"], ids, bad["candidates"], show_progress)
        deal(read_all(tables["candidates"].path, "a table of candidates", rows), scratch, CANDIDATES, count)
        if tastes == "histories":
            rows = history_rows(tables[tastes], ids, counts, bad[tastes], show_progress)
        else:
            rows = share_rows(tables[tastes], ids.catalogue(), bad[tastes], show_progress)
        deal(read_all(tables[tastes].path, "a table of what users like", rows), scratch, TASTES, count)
        counts.unknown_items.update(ids.unknown)
        parts = Parts(scratch, count, ids.catalogue(), workers, ray)
        if target_skl is not None:
            lam, _ = smallest_lambda(lambda lambdas: parts.mean_skl(wanted, lambdas), target_skl)
            wanted = replace(wanted, reranking=replace(wanted.reranking, lam=lam))
        with tqdm(total=count, desc="reranking", unit="part", disable=not show_progress) as bar:
            for lists in parts.lists(wanted, counts):
                writer.write(lists)
                bar.update()
    return {
        "users": counts.users, "lambda": wanted.reranking.lam, "skl": counts.mean_skl,
        "told": [*(one.told() for one in bad.values() if one.count), *counts.told()],
    }  # fmt: skip


def read_categories(path: str | Path, show_progress: bool = True) -> dict[str, list[str]]:
    """The category names of each item, from a file with the columns `item` and `categories`."""
    table = Table(path)
    found = _read_items(table, None, BadLines(table.path, MAX_BAD_LINES), show_progress)
    return {item: [found.names[c] for c in own] for item, own in zip(found.tokens, found.members, strict=True)}


def _read_items(table: Table, separator: str | None, bad: BadLines, show_progress: bool) -> Catalogue:
    """The catalogue of a table of items. An item in several rows has the categories of all."""
    for column in (ITEM, CATEGORIES):
        table.check(column, "items")
    with reading(table.path, "a table of items"):
        frames = list(_item_frames(table, separator, bad, show_progress))
        if not frames:
            raise ValueError(f"{table.path} has no rows")
        return Catalogue.of(pd.concat(frames, ignore_index=True))


def _item_frames(table: Table, separator: str | None, bad: BadLines, show_progress: bool) -> Iterator[pd.DataFrame]:
    for batch in table.batches([ITEM, CATEGORIES], bad, show_progress):
        missing = is_missing(batch.column(0))
        for _ in range(int(missing.sum())):
            bad.add(None, f"no {ITEM}")
        batch = batch.filter(pa.array(~missing))
        values = batch.column(1).to_pylist()
        if separator is None:
            lists = any(isinstance(value, list) for value in values)
            separator = LIST if lists else guess_separator(str(value) for value in values if value is not None)
        names = [
            list_names(value)
            if isinstance(value, list)
            else split_categories("" if value is None else str(value), separator)
            for value in values
        ]
        yield pd.DataFrame({ITEM: as_text(batch.column(0)).to_pylist(), CATEGORIES: pd.Series(names, dtype=object)})
