"""What users like, of their histories or of a table of preferences: the p that lists are calibrated to."""

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
    """Of users 0, 1, 2, ..."""

    def preference(self, start: int, stop: int, categories: ItemCategories, alpha: float) -> Tensor:
        """`[stop - start, C]`, of these users; all zero for one of whom nothing is known."""


class Histories:
    """Item ids of each user, oldest first; Eq. 2 makes the preference."""

    def __init__(self, user: np.ndarray, item: np.ndarray, users: int):
        """`user` `[N]` and `item` `[N]`: an event per row, the rows of a user in their order; a user of -1 is nobody."""
        self._begin, order = _by_user(user, users)
        self._item = torch.from_numpy(item[order].astype(np.int64))

    def preference(self, start: int, stop: int, categories: ItemCategories, alpha: float) -> Tensor:
        begin = torch.from_numpy(self._begin[start : stop + 1])
        return preference_after(self._item, begin[:-1], begin[1:], categories, alpha)


class Shares:
    """Shares of categories, which are made to sum to one; alpha has nothing to say."""

    def __init__(self, user: np.ndarray, category: np.ndarray, share: np.ndarray, users: int):
        """A category of a user per row; where one is repeated, its shares add up. A user of -1 is nobody."""
        self._begin, order = _by_user(user, users)
        self._user, self._category, self._share = (values[order] for values in (user, category, share))

    @property
    def repeated(self) -> int:
        """Rows whose user and category another row has already."""
        pairs = self._user.astype(np.int64) * (int(self._category.max(initial=0)) + 1) + self._category
        return len(pairs) - len(np.unique(pairs))

    def preference(self, start: int, stop: int, categories: ItemCategories, alpha: float) -> Tensor:
        own = slice(self._begin[start], self._begin[stop])
        sums = np.zeros((stop - start, categories.n_categories))
        np.add.at(sums, (self._user[own] - start, self._category[own]), self._share[own])
        total = sums.sum(1, keepdims=True)
        return torch.from_numpy(np.divide(sums, total, out=sums, where=total > 0)).float()


def category_ids(users: pa.Array, categories: pa.Array, shares: np.ndarray, names: Sequence[str], where: str) -> np.ndarray:
    """The number of each row's category among the names; ValueError if there is none, or a share is no share.

    A category that no item has is refused and not left out: a name that is spelt in another way would change preferences without a word.
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
    """Where the rows of each user begin, `[users + 1]`, in the order that puts them one after the other."""
    order = np.argsort(user, kind="stable")
    begin = np.searchsorted(user[order], np.arange(users + 1))
    return begin - begin[0], order[begin[0] : begin[-1]]
