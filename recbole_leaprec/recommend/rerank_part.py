"""Reranks the candidates of some users, as arrays. `rerank_frame` and every part of `rerank_file` use it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from recbole_leaprec.common.defaults import LIST_LENGTH
from recbole_leaprec.core.calibration import miscalibration
from recbole_leaprec.core.categories import ItemCategories
from recbole_leaprec.core.preference import sequential_preference
from recbole_leaprec.recommend.catalogue import Catalogue
from recbole_leaprec.recommend.tastes import Tastes
from recbole_leaprec.reranking.reranking import Reranking

USERS = 512
"""How many users are reranked at a time, at most."""

CELLS = 4_000_000
"""About how many scores (users times different items) are held at a time. Most of them are -inf."""

HISTORY, PREFERENCE = "history of known items", "preference"


@dataclass
class Counts:
    """Counts of lists and of problems in the input. No problem stops the work, and all are reported at the end.

    Attributes:
        users: the number of users who got a list.
        calibrated, skl: the number of users whose list has an S_KL, and the sum of S_KL over them.
        source: the name of what users have: `HISTORY` or `PREFERENCE`.
    """

    users: int = 0
    calibrated: int = 0
    skl: float = 0.0
    incomplete: int = 0
    repeated: int = 0
    without_score: int = 0
    without_list: int = 0
    unknown_items: set[str] = field(default_factory=set)
    unknown_events: int = 0
    without_history: int = 0
    repeated_shares: int = 0
    source: str = HISTORY

    def told(self) -> list[str]:
        """A sentence per problem that was found."""
        lines = [
            (self.incomplete, "rows lack a user, an item or a time and were left out"),
            (self.repeated, "candidates repeat a user and an item; the one with the highest score counts"),
            (self.without_score, "candidates have no score and were left out"),
            (self.without_list, "users have no candidate with a score and got no list"),
            (len(self.unknown_items), "items have no row among the items and count as items without a category"),
            (self.unknown_events, "items of histories have no row among the items and were skipped"),
            (self.without_history, f"users have no {self.source} and got the highest scores, without an S_KL"),
            (self.repeated_shares, "preferences repeat a user and a category; their shares add up"),
        ]
        return [f"{count:,} {text}" for count, text in lines if count]

    @property
    def mean_skl(self) -> float | None:
        """The mean S_KL of the lists; None if no list has one."""
        return self.skl / self.calibrated if self.calibrated else None

    def numbers(self) -> dict[str, float]:
        """The counts that can be summed over parts."""
        return {one.name: value for one in fields(self) if isinstance(value := getattr(self, one.name), int | float)}

    def add(self, numbers: Mapping[str, float]) -> None:
        for name, value in numbers.items():
            setattr(self, name, getattr(self, name) + value)


@dataclass(frozen=True)
class Wanted:
    """How to make lists: the method, the length k, and alpha and beta of the preference and of the divergence."""

    reranking: Reranking = field(default_factory=lambda: Reranking("leaprec", 0.3))
    k: int = LIST_LENGTH
    alpha: float = 0.9
    beta: float = 0.01

    def check(self) -> None:
        """ValueError if settings are out of range. Reranking one tiny list checks them before large files are read."""
        categories = ItemCategories.from_lists([[], *[["any"]] * self.k])
        p = sequential_preference([[1]], categories, self.alpha)
        self.reranking.lists(torch.zeros(1, categories.n_items), p, categories, self.k, self.beta)


class Candidates:
    """Rows of candidates, grouped by user.

    Attributes:
        users: the names of the users.
        begin: `[U+1]`; the rows of user u are those from `begin[u]` to `begin[u+1]`.
        item, score: `[N]` id and score of each row.
    """

    def __init__(self, users: pa.Array, user: np.ndarray, item: np.ndarray, score: np.ndarray, counts: Counts):
        """`user` `[N]` is the index of each row's user in `users`. Rows without a score are counted and left out."""
        good = np.isfinite(score)
        if not good.all():
            user, item, score = user[good], item[good], score[good]
        if (user[1:] < user[:-1]).any():
            order = np.argsort(user, kind="stable")
            user, item, score = user[order], item[order], score[order]
        rows = np.bincount(user, minlength=len(users))
        self.users, self.item, self.score = users, item, score
        self.begin = np.concatenate([[0], rows.cumsum()])
        counts.without_score += int((~good).sum())
        counts.without_list += int((rows == 0).sum())
        counts.users += int((rows > 0).sum())

    def blocks(self, n_items: int) -> Iterator[tuple[int, int]]:
        """`(start, stop)` of each block of users to rerank together."""
        start, last = 0, len(self.users)
        while start < last:
            rows = self.begin[start + 1 : start + USERS + 1] - self.begin[start]
            cells = np.arange(1, len(rows) + 1) * np.minimum(rows, n_items)
            stop = start + max(1, int(np.searchsorted(cells, CELLS, side="right")))
            yield start, stop
            start = stop


class _Block(NamedTuple):
    """Scores of some users `[B, W]`, the item of each column `[W]` (0 in front), and the categories of these items."""

    scores: Tensor
    items: np.ndarray
    categories: ItemCategories
    repeated: int


class PartReranker:
    """Reranks parts, one after the other, with the same catalogue."""

    def __init__(self, catalogue: Catalogue, wanted: Wanted):
        self._catalogue, self._wanted = catalogue, wanted
        self._items, self._categories = np.zeros(0, np.int64), catalogue.categories
        self._room = np.empty(0)

    def lists(self, candidates: Candidates, tastes: Tastes, counts: Counts) -> pa.Table:
        """One row per item of each list: `user`, `rank`, `item`, `score` and `skl`."""
        tables = [_EMPTY]
        for start, stop in candidates.blocks(self._catalogue.categories.n_items):
            block = self._block(candidates, start, stop)
            if not len(block.items) - 1:
                continue  # none of their candidates has a score
            lists, p = self._reranked(block, tastes, start, stop, None)
            listed = lists[0]
            counts.repeated += block.repeated
            row, place = (value.numpy() for value in (listed != 0).nonzero(as_tuple=True))
            unknown, some = (p == 0).all(1), listed[:, 0] != 0
            counts.without_history += int((unknown & some).sum())
            skl = miscalibration(p, listed, block.categories, self._wanted.beta).masked_fill_(unknown, torch.nan)
            counts.calibrated += int((some & ~unknown).sum())
            counts.skl += float(skl[some & ~unknown].sum())
            column = listed.numpy()[row, place]
            tables.append(
                pa.table(
                    {
                        "user": candidates.users.take(pa.array(row + start)),
                        "rank": place + 1,
                        "item": self._catalogue.token_of_id.take(pa.array(block.items[column])),
                        "score": block.scores.numpy()[row, column],
                        "skl": pa.array(skl.numpy()[row]),
                    },
                    schema=_EMPTY.schema,
                )
            )
        return pa.concat_tables(tables)

    def divergences(self, candidates: Candidates, tastes: Tastes, lambdas: Sequence[float]) -> tuple[np.ndarray, int]:
        """The sum of S_KL over users with a preference, at each of S lambdas `[S]`, and the number of these users."""
        sums, users = np.zeros(len(lambdas)), 0
        for start, stop in candidates.blocks(self._catalogue.categories.n_items):
            block = self._block(candidates, start, stop)
            if not len(block.items) - 1:
                continue
            lists, p = self._reranked(block, tastes, start, stop, lambdas)
            some = ~(p == 0).all(1) & (lists[0, :, 0] != 0)
            for number, listed in enumerate(lists):
                sums[number] += float(miscalibration(p, listed, block.categories, self._wanted.beta)[some].sum())
            users += int(some.sum())
        return sums, users

    def _block(self, candidates: Candidates, start: int, stop: int) -> _Block:
        rows = slice(candidates.begin[start], candidates.begin[stop])
        item, score = candidates.item[rows], candidates.score[rows]
        used = np.zeros(self._catalogue.categories.n_items, dtype=bool)
        used[item] = True
        items = np.flatnonzero(used)
        if not np.array_equal(items, self._items):  # else the block before had the same items
            self._items, self._categories = items, self._catalogue.categories.only(torch.from_numpy(items))
        column = np.empty(len(used), np.int64)
        column[items] = np.arange(1, len(items) + 1)
        users, width = stop - start, len(items) + 1
        user = np.repeat(np.arange(users), np.diff(candidates.begin[start : stop + 1]))
        if users * width > len(self._room):  # reused for all blocks: allocating new memory is slow
            self._room = np.empty(users * width)
        scores, cell = self._room[: users * width], user * width + column[item]
        scores.fill(-np.inf)
        scores[cell] = score
        repeated = len(cell) - int(np.count_nonzero(scores > -np.inf))
        if repeated:
            np.maximum.at(scores, cell, score)
        matrix = torch.from_numpy(scores.reshape(users, width))
        return _Block(matrix, np.concatenate([[0], items]), self._categories, repeated)

    def _reranked(
        self, block: _Block, tastes: Tastes, start: int, stop: int, lambdas: Sequence[float] | None
    ) -> tuple[Tensor, Tensor]:
        """Columns of the block `[S, B, k]`, 0 if a user has no candidate left; and the preference for S_KL `[B, C]`."""
        wanted, categories = self._wanted, self._catalogue.categories
        p = tastes.preference(start, stop, categories, wanted.alpha)
        to = tastes.preference(start, stop, categories, 1.0) if wanted.reranking.preference == "static" else p
        length = min(wanted.k, len(block.items) - 1)
        return wanted.reranking.lists(block.scores, to, block.categories, length, wanted.beta, lambdas), p


_EMPTY = pa.schema(
    [("user", pa.string()), ("rank", pa.int64()), ("item", pa.string()), ("score", pa.float64()), ("skl", pa.float64())]
).empty_table()
