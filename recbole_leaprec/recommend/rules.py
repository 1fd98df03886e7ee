"""Files that say what lists may hold, and what the categories of items are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recbole_leaprec.common.reading import read_text
from recbole_leaprec.recommend.rerank_file import read_categories


def read_rules(
    allow: str | Path | None, deny: str | Path | None, items: str | Path | None, show_progress: bool = False
) -> dict[str, Any]:
    """Arguments of a `Recommender`, as far as they are given.

    Args:
        allow, deny: text files, an item per line: those that lists may hold, and those that none may hold.
        items: a table with `item` and `categories`, in the place of the categories that the model was trained with.

    Raises:
        ValueError: a file is missing, or is not what it should be.
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
    """The item tokens of a text file, one per line; ValueError if there is none."""
    if not Path(path).is_file():
        raise ValueError(f"there is no file {path} (--{option})")
    items = {line.strip() for line in read_text(path).splitlines()} - {""}
    if not items:
        raise ValueError(f"{path} holds no item (--{option}): write one per line")
    return items
