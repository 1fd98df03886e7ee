"""Options of the commands that make lists with a trained model."""

from __future__ import annotations

from typing import Any

from recbole_leaprec.cli.options import File, option

_RULES = (
    option(
        "allow",
        File(),
        "a text file with the items that lists may hold, one per line",
        shown="all items that the model knows",
    ),
    option("deny", File(), "a text file with items that no list may hold, one per line", shown="none"),
    option(
        "items",
        File(),
        "a table with the columns item and categories; it replaces the categories that the model was trained with",
        shown="the model's categories",
    ),
)


def list_rules(function: Any) -> Any:
    """A decorator that adds the options `allow`, `deny` and `items`, which `read_rules` reads."""
    for add in reversed(_RULES):
        function = add(function)
    return function
