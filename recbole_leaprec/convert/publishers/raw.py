"""The content of a publisher's files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from recbole_leaprec.convert.bad_lines import BadLines
from recbole_leaprec.convert.catalogue import Catalogue
from recbole_leaprec.convert.interactions import Interactions


@dataclass(frozen=True)
class Raw:
    """Everything that could be read, before any filter. `bad` has two entries: events, items."""

    interactions: Interactions
    catalogue: Catalogue
    bad: list[BadLines]


def text_or_none(value: Any) -> str | None:
    """A value of a record if it is text, else None."""
    return value if isinstance(value, str) else None


def number_or_nan(value: Any) -> float:
    """A value of a record if it is a number, else nan."""
    return float(value) if isinstance(value, int | float) else float("nan")
