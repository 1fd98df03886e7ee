"""Filters that decide which interactions are kept. Every converter has them, with its own defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recbole_leaprec.common.did_you_mean import unknown_name

if TYPE_CHECKING:
    from recbole_leaprec.convert.catalogue import Catalogue
    from recbole_leaprec.convert.interactions import Interactions

DUPLICATES = ("keep", "rows", "first", "last")
"""Rules for a user and an item that come together more than once: keep all; leave out rows with the same time; keep the
first or the last."""


@dataclass(frozen=True)
class Filters:
    """Filters, applied in the order below.

    Attributes:
        need_category: whether items without a category are left out.
        min_rating: the smallest rating that is kept; None for all.
        duplicates: a rule of `DUPLICATES`, for a user and an item that come together more than once.
        one_per_day: whether only the first interaction per user and day is kept.
        min_user_interactions, min_item_interactions: users and items with fewer are left out; both are repeated until
            all have enough. With 0 for items, items that nobody has taken stay in the catalogue.
    """

    min_rating: float | None = None
    duplicates: str = "rows"
    one_per_day: bool = False
    min_user_interactions: int = 3
    min_item_interactions: int = 0
    need_category: bool = False

    def __post_init__(self) -> None:
        if self.duplicates not in DUPLICATES:
            raise ValueError(unknown_name("rule for duplicates", self.duplicates, DUPLICATES))

    def check_ratings(self, rated: bool, otherwise: str) -> None:
        """Raise ValueError, which says what to do `otherwise`, if a filter needs ratings and there are none."""
        if self.min_rating is not None and not rated:
            raise ValueError(f"min_rating needs a column of ratings, got {self.min_rating:g}: {otherwise}")

    def apply(self, interactions: Interactions, catalogue: Catalogue) -> Interactions:
        kept = interactions
        if self.need_category:
            kept = kept.of_items(
                [bool(catalogue.categories.get(item)) for item in kept.items], "of items without a category"
            )
        kept = kept.rated(self.min_rating).without_duplicates(self.duplicates)
        if self.one_per_day:
            kept = kept.one_per_day()
        return kept.with_enough(self.min_user_interactions, self.min_item_interactions)
