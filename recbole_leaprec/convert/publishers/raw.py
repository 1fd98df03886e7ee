"""What a publisher's files hold."""

from __future__ import annotations

from dataclasses import dataclass

from recbole_leaprec.convert.bad_lines import BadLines
from recbole_leaprec.convert.catalogue import Catalogue
from recbole_leaprec.convert.interactions import Interactions


@dataclass(frozen=True)
class Raw:
    """Everything that could be read, before any filter."""

    interactions: Interactions
    catalogue: Catalogue
    bad: list[BadLines]
