"""Tastes of users, from histories or a table of preferences. They give the preference p that lists are calibrated to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from recbole_leaprec.common.did_you_mean import did_you_mean
from recbole_leaprec.core.categories import ItemCategories
from recbole_leaprec.core.preference import preference_after
from recbole_leaprec.recommend.catalogue import coded


class Tastes(Protocol):
    """Tastes of the users 0, 1, 2, ..."""

    def preference(self, start: int, stop: int, categories: ItemCategories, alpha: float) -> Tensor:
        """The preferences of users start to stop, `[stop - start, C]`; all zero for a user without data."""


class Histories:
    """Histories: item ids of each user, oldest first. Eq. 2 gives the preference."""

    def __init__(self, user: np.ndarray, item: np.ndarray, users: int):
        """`user` `[N]` and `item` `[N]`: one event per row, each user's oldest first. Rows with user -1 are ignored."""
        self._begin, order = _by_user(user, users)
        self._item = torch.from_numpy(item[order].astype(np.int64))

    def preference(self, start: int, stop: int, categories: ItemCategories, alpha: float) -> Tensor:
        begin = torch.from_numpy(self._begin[start : stop + 1])
        return preference_after(self._item, begin[:-1], begin[1:], categories, alpha)


class Shares:
    """Shares of categories per user. They are scaled to sum to 1; alpha is not used."""

    def __init__(self, user: np.ndarray, category: np.ndarray, share: np.ndarray, users: int):
        """One category of a user per row. Shares of repeated rows are added. Rows with user -1 are ignored."""
        self._begin, order = _by_user(user, users)
        self._user, self._category, self._share = (values[order] for values in (user, category, share))

    @property
    def repeated(self) -> int:
        """The number of rows whose user and category are already in another row."""
        pairs = self._user.astype(np.int64) * (int(self._category.max(initial=0)) + 1) + self._category
        return len(pairs) - len(np.unique(pairs))

    def preference(self, start: int, stop: int, categories: ItemCategories, alpha: float) -> Tensor:
        own = slice(self._begin[start], self._begin[stop])
        sums = np.zeros((stop - start, categories.n_categories))
        np.add.at(sums, (self._user[own] - start, self._category[own]), self._share[own])
        total = sums.sum(1, keepdims=True)
        return torch.from_numpy(np.divide(sums, total, out=sums, where=total > 0)).float()


def category_ids(users: pa.Array, categories: pa.Array, shares: np.ndarray, names: Sequence[str], where: str) -> np.ndarray:
    """The index of each row's category in `names`; ValueError for an unknown category or a bad share.

    A category that no item has is an error and is not skipped: else a wrong spelling would change preferences silently.
    """
    number, different = coded(categories)
    index = {name: place for place, name in enumerate(names)}
    for name in different.to_pylist():
        if name not in index:
            raise ValueError(
                f"{where}: no item has the category {name!r}{did_you_mean(name, names)} Write it as the items do, or leave its rows out"
            )
    bad = (number < 0) | ~np.isfinite(shares) | (shares < 0)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"{where}: user {users[row].as_py()!r} has the share {shares[row]:g} of the category {categories[row].as_py()!r}; "
            "each row needs a category, and a share that is a number, 0 or more"
        )
    return np.array([*(index[name] for name in different.to_pylist()), -1], np.int32)[number]


def _by_user(user: np.ndarray, users: int) -> tuple[np.ndarray, np.ndarray]:
    """`(begin, order)`: `order` groups the rows by user, and user u has the rows `order[begin[u]:begin[u+1]]`."""
    order = np.argsort(user, kind="stable")
    begin = np.searchsorted(user[order], np.arange(users + 1))
    return begin - begin[0], order[begin[0] : begin[-1]]
