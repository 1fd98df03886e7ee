"""Reads files of items that lists may or must not hold, and of items' categories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recbole_leaprec.common.reading import read_text
from recbole_leaprec.recommend.rerank_file import read_categories


def read_rules(
    allow: str | Path | None, deny: str | Path | None, items: str | Path | None, show_progress: bool = False
) -> dict[str, Any]:
    """Arguments of a `Recommender` from the files that are given.

    Args:
        allow, deny: text files, one item per line: the items that lists may hold, and the items that no list may hold.
        items: a table with `item` and `categories`; it replaces the categories that the model was trained with.

    Raises:
        ValueError: a file is missing, or has another form.
    """
    rules: dict[str, Any] = {}
    if allow is not None:
        rules["allow"] = read_items(allow, "allow")
    if deny is not None:
        rules["deny"] = read_items(deny, "deny")
    if items is not None:
        rules["categories"] = read_categories(items, show_progress)
    return rules


def read_items(path: str | Path, option: str) -> set[str]:
    """The item tokens of a text file, one per line; ValueError if the file is missing or has no item."""
    if not Path(path).is_file():
        raise ValueError(f"there is no file {str(path)!r} (--{option})")
    items = {line.strip() for line in read_text(path).splitlines()} - {""}
    if not items:
        raise ValueError(f"{path} holds no item (--{option}): write one per line")
    return items
