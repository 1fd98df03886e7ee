"""Collects interactions one at a time, as numbers."""

from __future__ import annotations

from array import array

import numpy as np

from recbole_leaprec.convert.interactions import Interactions


class Builder:
    """Takes interactions as texts, and keeps 24 bytes per interaction, or 32 with a rating.

    Example:
        >>> builder = Builder()
        >>> builder.add("u", "i", 3.0)
        >>> builder.interactions().users
        ['u']
    """

    def __init__(self, rated: bool = False):
        self._users: dict[str, int] = {}
        self._items: dict[str, int] = {}
        self._user, self._item, self._time, self._rating = array("q"), array("q"), array("d"), array("d")
        self._rated = rated

    def add(self, user: str, item: str, time: float, rating: float = float("nan")) -> None:
        self._user.append(self._users.setdefault(user, len(self._users)))
        self._item.append(self._items.setdefault(item, len(self._items)))
        self._time.append(time)
        if self._rated:
            self._rating.append(rating)

    def interactions(self) -> Interactions:
        return Interactions(
            np.array(self._user, dtype=np.int64), np.array(self._item, dtype=np.int64), np.array(self._time),
            list(self._users), list(self._items), np.array(self._rating) if self._rated else None,
        )  # fmt: skip
