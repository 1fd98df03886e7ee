"""Converts the published files of the paper's datasets to atomic files."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from recbole_leaprec.common.defaults import MAX_BAD_LINES
from recbole_leaprec.convert.atomic import Written, check_new, write_dataset
from recbole_leaprec.convert.filters import Filters
from recbole_leaprec.convert.paper import FILTERS, Sizes
from recbole_leaprec.convert.publishers.raw import Raw


@dataclass(frozen=True)
class Published:
    """The result of a conversion."""

    read: int
    left_out: dict[str, int]
    written: Written
    bad: list[str]

    @property
    def sizes(self) -> Sizes:
        """The sizes in the form of Table 1."""
        done = self.written
        return Sizes(
            done.users, done.items, done.categories, done.interactions,
            round(done.interactions / done.users, 2), round(done.categories_per_item, 4),
        )  # fmt: skip


def convert_published(
    name: str,
    raw: str | Path,
    out: str | Path,
    filters: Filters | None = None,
    *,
    max_bad: int = MAX_BAD_LINES,
    show_progress: bool = True,
) -> Published:
    """Convert a publisher's files to atomic files in the folder `out`.

    Args:
        name: a dataset of `paper.TABLE_1`.
        raw: the folder that holds the files.
        filters: None for the paper's filters.

    Raises:
        ValueError: a file is missing (the error says where to get it) or cannot be read, or the dataset has no ratings
            and the filters need some; then nothing is written.
    """
    out, filters = check_new(out), filters or FILTERS[name]
    publisher: Any = import_module(f"{__package__}.publishers.{name.replace('-', '_')}")
    filters.check_ratings(publisher.RATED, f"{name} has none; leave it out")
    found: Raw = publisher.read(Path(raw), max_bad, show_progress)
    for bad, good in zip(found.bad, (len(found.interactions), len(found.catalogue)), strict=True):
        bad.check_share(good)
    kept = filters.apply(found.interactions, found.catalogue)
    written = write_dataset(out, kept, found.catalogue, filters)
    return Published(len(found.interactions), kept.left_out, written, [bad.told() for bad in found.bad if bad.count])
