"""Makes calibrated lists from a folder of candidates, over Ray.

All candidates of a user are in one file, and the user's history or preference is in the file of the same name in the
other folder. So the two files are a part, and rows need not be distributed by user first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from recbole_leaprec.cluster import connected
from recbole_leaprec.common.parquet_folder import Folder, checked_folder
from recbole_leaprec.convert.bad_lines import BadLines
from recbole_leaprec.recommend.arrow_table import ArrowTable
from recbole_leaprec.recommend.catalogue import ITEM, Catalogue, ItemIds, coded
from recbole_leaprec.recommend.folder_workers import FolderWorker, Work, make_lists
from recbole_leaprec.recommend.histories import ITEMS, USER
from recbole_leaprec.recommend.list_folder import ListFolder, fingerprint, packed
from recbole_leaprec.recommend.parts import tastes_of
from recbole_leaprec.recommend.read_rows import candidate_rows, history_rows, share_rows
from recbole_leaprec.recommend.rerank_frame import CATEGORY, SCORE, SHARE, TIME
from recbole_leaprec.recommend.rerank_part import PREFERENCE, Candidates, Counts, PartReranker, Wanted
from recbole_leaprec.recommend.tastes import Histories, Tastes
from recbole_leaprec.recommend.writer import list_schema

UNKNOWN, BAD = "unknown", "bad"
PREFERENCES = "preferences"


class FolderReranker(FolderWorker):
    """Reranks files of candidates."""

    def __init__(
        self,
        names: Mapping[str, str],
        rows: Mapping[str, int],
        catalogue: Catalogue,
        wanted: Wanted,
        tastes: Folder,
        option: str,
        max_bad: int,
    ):
        """`tastes` is the folder of histories or of preferences; `option` says which."""
        super().__init__(names, rows)
        self._catalogue, self._wanted, self._reranker = catalogue, wanted, PartReranker(catalogue, wanted)
        self._tastes, self._option, self._max_bad = tastes, option, max_bad

    def make(self, name: str, table: pa.Table) -> tuple[pa.Table, dict[str, Any]]:
        counts, ids = Counts(), ItemIds(self._catalogue)
        bad = [BadLines(Path(f"{option}: {name}"), self._max_bad) for option in ("candidates", self._option)]
        users, columns = _together(candidate_rows(ArrowTable(table, f"candidates: {name}"), ids, bad[0], False))
        user, different = coded(users)
        candidates = Candidates(different, user, columns[ITEM], columns[SCORE], counts)
        tastes = self._read_tastes(name, different, ids, counts, bad[1])
        reranker = PartReranker(ids.catalogue(), self._wanted) if ids.unknown else self._reranker
        lists = reranker.lists(candidates, tastes, counts)
        return lists.cast(list_schema(titles=False)), {
            **counts.numbers(),
            UNKNOWN: len(ids.unknown),
            BAD: sum(one.count for one in bad),
        }

    def _read_tastes(self, name: str, users: pa.Array, ids: ItemIds, counts: Counts, bad: BadLines) -> Tastes:
        with self._tastes.filesystem.open_input_file(self._tastes.path_of(name)) as file:
            read = ArrowTable(pa.parquet.read_table(file), f"{self._option}: {name}")
        if not read.rows_about():
            return Histories(np.zeros(0, np.int64), np.zeros(0, np.int32), len(users))
        if self._option == PREFERENCES:
            rows = share_rows(read, ids.catalogue(), bad, False)
        else:
            rows = history_rows(read, ids, counts, bad, False)
        who, columns = _together(rows)
        number, names = coded(who)
        return tastes_of(names, number, columns, users, counts)


def _together(rows: Iterable[tuple[pa.Array, dict[str, np.ndarray]]]) -> tuple[pa.Array, dict[str, np.ndarray]]:
    """All batches of rows joined to one."""
    users, columns = zip(*rows, strict=True)
    return pa.concat_arrays(users), {name: np.concatenate([one[name] for one in columns]) for name in columns[0]}


def rerank_folder(
    candidates: str | Path,
    catalogue: Catalogue,
    tastes: str | Path,
    *,
    option: str,
    out: str | Path,
    wanted: Wanted,
    max_bad: int,
    workers: int | None,
    ray_address: str | None,
    show_progress: bool,
) -> dict[str, Any]:
    """Make lists for all files of a folder; returns `users`, the mean `skl`, and `told`: sentences about problems.

    Args:
        tastes: the folder of histories or of preferences; `option` says which.

    Raises:
        ValueError: a folder or a file is bad, or the two folders have files of different names.
    """
    source, footers, files = checked_folder(candidates, "candidates", (USER, ITEM, SCORE), _check("candidates"))
    likes, _, others = checked_folder(tastes, option, (USER, ITEMS, ITEM, TIME, CATEGORY, SHARE), _check(option))
    for name in sorted({*files} ^ {*others}):
        has, lacks = (source, likes) if name in files else (likes, source)
        raise ValueError(
            f"{has.text} holds {name}, and {lacks.text} does not: a user's candidates and {option} must be in files of the same name"
        )
    settings = {
        "candidates": source.path, "files of candidates": fingerprint(files), option: likes.path, f"files of {option}": fingerprint(others),
        "items": fingerprint([catalogue.names, catalogue.tokens, catalogue.members]),
        **asdict(wanted.reranking), "k": wanted.k, "alpha": wanted.alpha, "beta": wanted.beta,
    }  # fmt: skip
    lists = ListFolder.at(out, settings)
    counts = Counts(source=PREFERENCE) if option == PREFERENCES else Counts()
    sums = dict.fromkeys((UNKNOWN, BAD), 0)
    work = Work(
        source=source,
        footers=footers,
        columns=(USER, ITEM, SCORE),
        worker=FolderReranker,
        arguments={"catalogue": catalogue, "wanted": wanted, "tastes": likes, "option": option, "max_bad": max_bad},
        workers=workers,
        empty=packed(list_schema(titles=False).empty_table(), {**counts.numbers(), **sums}),
    )
    with connected(ray_address):
        for counted in make_lists(work, lists, show_progress):
            counts.add({name: counted[name] for name in counts.numbers()})
            sums = {name: value + counted[name] for name, value in sums.items()}
    lines = [
        (sums[BAD], "lines were left out as unreadable"),
        (
            sums[UNKNOWN],
            "items, those of each file counted, have no row among the items and count as items without a category",
        ),
    ]
    told = [f"{count:,} {text}" for count, text in lines if count]
    return {"users": counts.users, "skl": counts.mean_skl, "told": [*told, *counts.told()]}


def _check(option: str) -> Any:
    """A function that checks whether a file has the columns that the option needs."""

    def check(schema: pa.Schema, where: str) -> None:
        table = ArrowTable(schema.empty_table(), where)
        needed = {"candidates": (USER, ITEM, SCORE), PREFERENCES: (USER, CATEGORY, SHARE)}.get(
            option, (USER, ITEMS) if ITEMS in schema.names else (USER, ITEM, TIME)
        )
        for column in needed:
            table.check(column, option)

    return check
