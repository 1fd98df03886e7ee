"""Interactions (who took what, and when) as flat arrays, and the filters on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

DAY = 86_400.0


@dataclass(frozen=True)
class Interactions:
    """N interactions in the order of the file.

    Attributes:
        user, item: `[N]` numbers.
        time: `[N]` epoch seconds.
        rating: `[N]`, or None if there is none.
        users, items: the text of each number.
        left_out: how many interactions were left out, by reason.
    """

    user: np.ndarray
    item: np.ndarray
    time: np.ndarray
    users: Sequence[str]
    items: Sequence[str]
    rating: np.ndarray | None = None
    left_out: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.user)

    @property
    def n_users(self) -> int:
        return len(np.unique(self.user))

    def keep(self, kept: np.ndarray, why: str) -> Interactions:
        """The interactions of a mask `[N]`; the others are counted in `left_out` under the reason `why`."""
        lost = int((~kept).sum())
        if not lost:
            return self
        return replace(
            self, user=self.user[kept], item=self.item[kept], time=self.time[kept],
            rating=None if self.rating is None else self.rating[kept],
            left_out={**self.left_out, why: self.left_out.get(why, 0) + lost},
        )  # fmt: skip

    def rated(self, least: float | None) -> Interactions:
        """The interactions with a rating of `least` and above, which needs ratings; all if `least` is None."""
        if least is None:
            return self
        rated = self.keep(~np.isnan(np.asarray(self.rating)), "without a rating")
        return rated.keep(np.asarray(rated.rating) >= least, f"with a rating below {least:g}")

    def without_duplicates(self, rule: str) -> Interactions:
        """The interactions without duplicates, by a rule of `filters.DUPLICATES`."""
        if rule == "keep" or not len(self):
            return self
        order = np.lexsort((self.time, self.item, self.user))  # stable: equal times stay in the order of the file
        user, item, time = self.user[order], self.item[order], self.time[order]
        same = (user[1:] == user[:-1]) & (item[1:] == item[:-1])
        kept = np.ones(len(self), dtype=bool)
        if rule == "rows":
            kept[order[1:]] = ~(same & (time[1:] == time[:-1]))
        elif rule == "first":
            kept[order[1:]] = ~same
        else:
            kept[order[:-1]] = ~same
        return self.keep(
            kept, "that repeat a user, an item and a time" if rule == "rows" else "that repeat a user and an item"
        )

    def one_per_day(self) -> Interactions:
        """The first interaction of each user on each day."""
        if not len(self):
            return self
        day = np.floor(self.time / DAY)
        order = np.lexsort((self.time, day, self.user))
        kept = np.ones(len(self), dtype=bool)
        kept[order[1:]] = ~((self.user[order][1:] == self.user[order][:-1]) & (day[order][1:] == day[order][:-1]))
        return self.keep(kept, "after the first of a user's day")

    def of_items(self, wanted: Sequence[bool], why: str) -> Interactions:
        """The interactions with a wanted item; `wanted` has one truth value per entry of `items`."""
        return self.keep(np.array(wanted, dtype=bool)[self.item], why)

    def with_enough(self, per_user: int, per_item: int) -> Interactions:
        """The interactions of users and items with at least so many. Both filters repeat until nothing changes."""
        now, before = self, -1
        while len(now) != before:
            before = len(now)
            if per_user > 1:
                now = now.keep(np.bincount(now.user)[now.user] >= per_user, f"of users with fewer than {per_user}")
            if per_item > 1:
                now = now.keep(np.bincount(now.item)[now.item] >= per_item, f"of items with fewer than {per_item}")
        return now
