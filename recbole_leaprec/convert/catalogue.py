"""The items: their categories and titles."""

from __future__ import annotations

import ast
import csv
import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

SEPARATORS = (";", ",")
"""What categories in one text may have between them beside |; names may hold these, too."""

LIST = "list"
"""The separator of categories that come as a list, printed or real."""

WHOLE = "none"
"""The separator of categories that come one per item: the text is the name."""


@dataclass
class Catalogue:
    """Categories and titles of items, by their texts. An item that comes twice has the categories of both, and its first title."""

    categories: dict[str, dict[str, None]] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)

    def add(self, item: str, categories: Iterable[str] = (), title: str | None = None) -> None:
        own = self.categories.setdefault(item, {})
        for name in categories:
            own[name] = None
        if title:
            self.titles.setdefault(item, title)

    def __contains__(self, item: str) -> bool:
        return item in self.categories

    def __len__(self) -> int:
        return len(self.categories)

    def names(self, items: Iterable[str] | None = None) -> Counter[str]:
        """How many of the items, or of all, have each category."""
        wanted = self.categories if items is None else items
        return Counter(name for item in wanted for name in self.categories.get(item, ()))


def guess_separator(texts: Iterable[str]) -> str:
    """What stands between the categories of a text: | where there is one, else what leaves fewer names than there are texts.

    Example:
        >>> guess_separator(["Action|Drama", "Drama", "Action", "Drama|Comedy", "Comedy", "Action|Comedy"])
        '|'
        >>> guess_separator(["Dairy, Cheese & Eggs", "Beverages", "Snacks"])
        'none'
    """
    texts = {text for text in texts if text}
    if any(text.lstrip().startswith("[") or (text.startswith("{") and text.endswith("}")) for text in texts):
        return LIST
    if any("|" in text for text in texts):  # which no name holds
        return "|"
    best, fewest = WHOLE, len(texts)
    for separator in SEPARATORS:
        names = {name.strip() for text in texts for name in text.split(separator)}
        if any(separator in text for text in texts) and len(names) < fewest:
            best, fewest = separator, len(names)
    return best


def split_categories(text: str, separator: str) -> list[str]:
    """The names in a text; ValueError for a printed list that is none, or holds something else than names.

    Example:
        >>> split_categories("['Sci-Fi', 'Film Noir']", LIST), split_categories("Film Noir| Drama", "|")
        (['Sci-Fi', 'Film Noir'], ['Film Noir', 'Drama'])
        >>> split_categories("['Sci-Fi' 'Film Noir']", LIST), split_categories('{Sci-Fi,"Film Noir"}', LIST)
        (['Sci-Fi', 'Film Noir'], ['Sci-Fi', 'Film Noir'])
    """
    if separator == LIST:
        return list_names(_read_list(text))
    names = [text] if separator == WHOLE else text.split(separator)
    return [name.strip() for name in names if name.strip()]


def list_names(values: Iterable[object]) -> list[str]:
    """The names in a list, without what is missing or empty; ValueError for lists and objects, whose print is no name."""
    names = []
    for value in values:
        if isinstance(value, dict | list | tuple | set):
            raise ValueError(f"{str(value)[:80]!r} is not the name of a category: write a list of names")
        if value is not None and str(value).strip():
            names.append(str(value).strip())
    return names


def _read_list(text: str) -> list[object]:
    """A list as JSON, Python, numpy (no commas between the names) or PostgreSQL (braces) prints it."""
    if not text.strip() or text == "{}":
        return []
    try:
        value = json.loads(text)
    except ValueError:
        try:
            value = ast.literal_eval(_QUOTED.sub(lambda found: found[1] + ("," if found[2] else ""), text))
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
            if text[0] == "{" and text[-1] == "}":
                return list(next(csv.reader([text[1:-1]], escapechar="\\"), []))
            raise ValueError(f"{text[:80]!r} is not a list of categories") from error
    if not isinstance(value, list | tuple | set):
        raise ValueError(f"{text[:80]!r} is not a list of categories")
    return list(value)


_QUOTED = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")(\s+(?=['"]))?""")
"""A quoted name, and the space to the next one: Python would take two names without a comma for one."""
