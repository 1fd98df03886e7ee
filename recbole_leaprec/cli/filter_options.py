"""The filters of the converters, as options of a command."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from recbole_leaprec.cli.options import Flag, Number, OneOf, Whole, option
from recbole_leaprec.convert.filters import DUPLICATES, Filters

_KINDS = {
    "min_rating": (Number(), "keep interactions with this rating and above"),
    "duplicates": (
        OneOf(DUPLICATES),
        "keep: all; rows: leave out rows that repeat a user, an item and a time; first or last: keep one event per user and item",
    ),
    "one_per_day": (Flag(), "keep only the first interaction per user and day (UTC)"),
    "min_user_interactions": (
        Whole(),
        "leave out users with fewer interactions; repeated with min_item_interactions until both hold",
    ),
    "min_item_interactions": (
        Whole(),
        "leave out items with fewer interactions; with 0, items that nobody has taken stay in the catalogue",
    ),
    "need_category": (Flag(), "leave out items without a category"),
}


def filter_options(defaults: Filters) -> Callable[[Any], Any]:
    """A decorator that adds one option per filter, with these defaults. The command reads them with `take_filters`."""

    def add(function: Any) -> Any:
        for name, (kind, meaning) in reversed(_KINDS.items()):
            default = getattr(defaults, name)
            nothing = name == "min_rating"  # None keeps all ratings, even if the default is a number
            shown = "all" if default is None else None
            function = option(name, kind, meaning, default, shown=shown, takes_none=nothing)(function)
        return function

    return add


def take_filters(options: dict[str, Any]) -> Filters:
    """Remove the filters from a command's options, and return them."""
    return Filters(**{field.name: options.pop(field.name) for field in fields(Filters)})
