"""Reranks parts of candidates and tastes, one after the other here or by workers over Ray. The lists are the same."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import count as counting
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from recbole_leaprec.recommend.catalogue import ITEM, Catalogue
from recbole_leaprec.recommend.deal import part_file, read_part
from recbole_leaprec.recommend.file_workers import FileWorker, over_ray
from recbole_leaprec.recommend.rerank_frame import CATEGORY, SCORE, SHARE, TIME, number_of
from recbole_leaprec.recommend.rerank_part import Candidates, Counts, PartReranker, Wanted
from recbole_leaprec.recommend.tastes import Histories, Shares, Tastes

CANDIDATES, TASTES = "candidates", "tastes"
_CATALOGUE = "items.parquet"
_COUNTS = b"counts"


class Part:
    """The candidates and tastes of some users, read from their two files."""

    def __init__(self, candidates: Path, counts: Counts):
        users, user, columns = read_part(candidates)
        self.candidates = Candidates(users, user, columns[ITEM], columns[SCORE], counts)
        tastes = read_part(candidates.with_name(candidates.name.replace(CANDIDATES, TASTES, 1)))
        self.tastes = tastes_of(*tastes, users, counts)


def tastes_of(names: pa.Array, user: np.ndarray, columns: dict[str, np.ndarray], users: pa.Array, counts: Counts) -> Tastes:
    """The tastes of `users`, from the `names`, `user` and `columns` that `read_part` returns."""
    user = number_of(names, users)[user]
    if SHARE in columns:
        shares = Shares(user, columns[CATEGORY], columns[SHARE], len(users))
        counts.repeated_shares += shares.repeated
        return shares
    if TIME in columns:
        order = np.argsort(columns[TIME], kind="stable")
        return Histories(user[order], columns[ITEM][order], len(users))
    return Histories(user, columns[ITEM], len(users))


def part_lists(path: Path, reranker: PartReranker) -> pa.Table:
    """The lists of a part, with the counts in the metadata of the table."""
    counts = Counts()
    part = Part(path, counts)
    lists = reranker.lists(part.candidates, part.tastes, counts)
    return lists.replace_schema_metadata({_COUNTS: json.dumps(counts.numbers())})


def part_divergences(path: Path, reranker: PartReranker, lambdas: Sequence[float]) -> pa.Table:
    """The sum of S_KL over users at each lambda, and the number of these users."""
    part = Part(path, Counts())
    sums, users = reranker.divergences(part.candidates, part.tastes, lambdas)
    return pa.table({"sum": sums, "users": [users] * len(sums)})


class PartWorker(FileWorker):
    """Reranks parts in a process of its own."""

    def __init__(self, result: str, catalogue: str, wanted: Wanted, lambdas: Sequence[float] | None):
        """With `lambdas` the worker computes S_KL and makes no lists."""
        super().__init__(result)
        self._reranker, self._lambdas = PartReranker(Catalogue.read(Path(catalogue)), wanted), lambdas

    def make(self, path: Path) -> pa.Table:
        if self._lambdas is None:
            return part_lists(path, self._reranker)
        return part_divergences(path, self._reranker, self._lambdas)


class Parts:
    """All parts in a folder."""

    def __init__(self, folder: Path, count: int, catalogue: Catalogue, workers: int | None = None, ray: bool = False):
        """With `ray` the workers are on the connected cluster."""
        self._paths = [part_file(folder, CANDIDATES, number) for number in range(count)]
        self._catalogue, self._workers, self._ray = catalogue, workers, ray
        self._works = counting()
        if ray:
            catalogue.write(folder / _CATALOGUE)

    def lists(self, wanted: Wanted, counts: Counts) -> Iterator[pd.DataFrame]:
        """The lists of each part, in the order of the parts."""
        for table in self._made(wanted, None):
            counts.add(json.loads(table.schema.metadata[_COUNTS]))
            yield table.replace_schema_metadata().to_pandas()

    def mean_skl(self, wanted: Wanted, lambdas: Sequence[float]) -> list[float]:
        """The mean S_KL over all users with a preference, at each lambda; ValueError if no user has one."""
        sums, users = np.zeros(len(lambdas)), 0
        for table in self._made(wanted, lambdas):
            sums += table.column("sum").to_numpy()
            users += table.column("users")[0].as_py()
        if not users:
            raise ValueError("target_skl: no user has a history or a preference, so there is no S_KL")
        return (sums / users).tolist()

    def _made(self, wanted: Wanted, lambdas: Sequence[float] | None) -> Iterator[pa.Table]:
        if self._ray:
            arguments: dict[str, Any] = {
                "catalogue": str(self._paths[0].with_name(_CATALOGUE)), "wanted": wanted, "lambdas": lambdas
            }  # fmt: skip
            yield from over_ray(self._paths, PartWorker, arguments, self._workers, f".made{next(self._works)}")
            return
        reranker = PartReranker(self._catalogue, wanted)
        for path in self._paths:
            yield part_lists(path, reranker) if lambdas is None else part_divergences(path, reranker, lambdas)
