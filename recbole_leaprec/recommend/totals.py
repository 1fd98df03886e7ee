"""Sums over many lists, updated batch by batch."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from recbole_leaprec.recommend.recommender import FALLBACK, SHORT, SKIPPED

_logger = logging.getLogger(__name__)


@dataclass
class Totals:
    """Sums over histories and their lists.

    Attributes:
        histories: the number of histories.
        users: the number of users who got a list.
        skl: the sum of S_KL over the users who have one.
    """

    histories: int = 0
    users: int = 0
    unknown_items: int = 0
    empty_histories: int = 0
    short: int = 0
    skl: float = 0.0

    def add_lists(self, rows: pd.DataFrame) -> int:
        """Add the rows of lists that a `Recommender` made; returns the number of lists."""
        first = rows[rows["rank"] == 1]
        self.users += len(first)
        self.unknown_items += int(rows[SKIPPED].sum())
        self.empty_histories += int(rows[FALLBACK].sum())
        self.short += int(rows[SHORT].sum())
        self.skl += float(first["skl"].sum())  # sum() skips nan, which users without a preference have
        return len(first)

    def numbers(self) -> dict[str, Any]:
        return asdict(self)

    def add(self, numbers: Mapping[str, Any]) -> None:
        """Add the numbers of another part of the lists."""
        for name in asdict(self):
            setattr(self, name, getattr(self, name) + numbers[name])

    def summary(self, k: int, unknown: str) -> dict[str, Any]:
        """The counts that `recommend` returns. Warns of short lists, and with `unknown` if all histories are unknown."""
        if self.unknown_items and self.empty_histories == self.users:
            _logger.warning(unknown)
        without = self.histories - self.users
        if without or self.short:
            _logger.warning(
                "%d of %d users have fewer than %d items to recommend: %d lists are shorter, and %d users have none",
                without + self.short, self.histories, k, self.short, without,
            )  # fmt: skip
        calibrated = self.users - self.empty_histories
        return {
            "users": self.users,
            "unknown_items": self.unknown_items,
            "empty_histories": self.empty_histories,
            "skl": self.skl / calibrated if calibrated else None,
            "without_list": without,
        }
