"""Amazon's reviews of Grocery and Gourmet Food, releases of 2014, 2018 and 2023.

An item's category is the second level of its path.
"""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Any

from recbole_leaprec.convert.bad_lines import BadLines
from recbole_leaprec.convert.builder import Builder
from recbole_leaprec.convert.catalogue import Catalogue
from recbole_leaprec.convert.publishers.raw import Raw, number_or_nan, text_or_none
from recbole_leaprec.convert.records import read_records
from recbole_leaprec.convert.streams import find_file

WHERE = "It is on the page of the Amazon review data, which asks for a form first: put the file into that folder as it comes, packed"
RATED = True
_STEM = "Grocery_and_Gourmet_Food"
REVIEWS = [
    f"{_STEM}_5.json.gz",
    f"{_STEM}.json.gz",
    f"reviews_{_STEM}_5.json.gz",
    f"reviews_{_STEM}.json.gz",
    f"{_STEM}.jsonl.gz",
]
ITEMS = [f"meta_{_STEM}.json.gz", f"meta_{_STEM}.jsonl.gz"]
MILLISECONDS = 1e11
"""A time above this is in milliseconds, as in the release of 2023."""


def read(raw: Path, max_bad: int, show_progress: bool) -> Raw:
    """The content of the files in a folder; ValueError if one is missing, or has more bad lines than allowed."""
    reviews, items = find_file(raw, REVIEWS, WHERE), find_file(raw, ITEMS, WHERE)
    catalogue, bad = Catalogue(), [BadLines(reviews, max_bad), BadLines(items, max_bad)]
    for record in read_records(items, bad[1], show_progress):
        item = record.get("parent_asin") or record.get("asin")
        if not item:
            bad[1].add(None, "no asin", str(record))
            continue
        if not catalogue.categories.get(str(item)):  # asins repeat; the first with a category counts
            catalogue.add(str(item), second_level(record), text_or_none(record.get("title")))
    builder = Builder(RATED)
    for record in read_records(reviews, bad[0], show_progress):
        user, item = record.get("reviewerID") or record.get("user_id"), record.get("parent_asin") or record.get("asin")
        time, rating = record.get("unixReviewTime") or record.get("timestamp"), record.get("overall", record.get("rating"))
        if not user or not item or not isinstance(time, int | float) or not isfinite(time):
            bad[0].add(None, "no user, no item, or no time", str(record))
            continue
        seconds = time / 1e3 if time > MILLISECONDS else float(time)
        builder.add(str(user), str(item), seconds, number_or_nan(rating))
    return Raw(builder.interactions(), catalogue, bad)


def second_level(record: dict[str, Any]) -> list[str]:
    """The category of an item; none if its path is too short.

    The release of 2014 has several paths per item; the first one that is long enough counts.

    Example:
        >>> second_level({"category": ["Grocery & Gourmet Food", "Dairy, Cheese & Eggs", "Cheese"]})
        ['Dairy, Cheese & Eggs']
    """
    paths = record.get("category") or record.get("categories")
    if not isinstance(paths, list):
        return []
    if paths and isinstance(paths[0], str):
        paths = [paths]
    return next(([str(path[1])] for path in paths if isinstance(path, list) and len(path) > 1 and path[1]), [])
