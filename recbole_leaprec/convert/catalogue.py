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
"""Signs besides | that may separate the categories in a text. Names may contain them, too."""

LIST = "list"
"""The separator for categories in a list, printed or real."""

WHOLE = "none"
"""The separator for one category per item: the whole text is the name."""


@dataclass
class Catalogue:
    """Categories and titles by item. An item that is added twice has the categories of both, and its first title."""

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
        """The number of items per category, of these items or of all."""
        wanted = self.categories if items is None else items
        return Counter(name for item in wanted for name in self.categories.get(item, ()))


def guess_separator(texts: Iterable[str]) -> str:
    """The separator of the categories in texts: | if any text has one, else the sign that gives the fewest names.

    A sign must give fewer names than there are texts; else each text is one name.

    Example:
        >>> guess_separator(["Action|Drama", "Drama", "Action", "Drama|Comedy", "Comedy", "Action|Comedy"])
        '|'
        >>> guess_separator(["Dairy, Cheese & Eggs", "Beverages", "Snacks"])
        'none'
    """
    texts = {text for text in texts if text}
    if any(text.lstrip().startswith("[") or (text.startswith("{") and text.endswith("}")) for text in texts):
        return LIST
    if any("|" in text for text in texts):  # names do not contain it
        return "|"
    best, fewest = WHOLE, len(texts)
    for separator in SEPARATORS:
        names = {name.strip() for text in texts for name in text.split(separator)}
        if any(separator in text for text in texts) and len(names) < fewest:
            best, fewest = separator, len(names)
    return best


def split_categories(text: str, separator: str) -> list[str]:
    """The category names in a text; ValueError if a printed list cannot be read, or holds something other than names.

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
    """The names in a list, without missing and empty ones; ValueError if it holds lists or objects."""
    names = []
    for value in values:
        if isinstance(value, dict | list | tuple | set):
            raise ValueError(f"{str(value)[:80]!r} is not the name of a category: write a list of names")
        if value is not None and str(value).strip():
            names.append(str(value).strip())
    return names


def _read_list(text: str) -> list[object]:
    """The values of a list that JSON, Python, numpy (no commas between names) or PostgreSQL (braces) has printed."""
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
"""A quoted name, and the space before the next one. Without a comma, Python would join the two names to one."""
