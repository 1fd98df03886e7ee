"""Goodreads, from the UCSD Book Graph: reviews of the spoiler subset, or all interactions; and genres with counts."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from recbole_leaprec.convert.bad_lines import BadLines
from recbole_leaprec.convert.builder import Builder
from recbole_leaprec.convert.catalogue import Catalogue
from recbole_leaprec.convert.publishers.raw import Raw, number_or_nan
from recbole_leaprec.convert.records import read_records
from recbole_leaprec.convert.streams import find_file

WHERE = "It is on the page of the UCSD Book Graph: put the file into that folder as it comes, packed"
RATED = True
INTERACTIONS = ["goodreads_reviews_spoiler.json.gz", "goodreads_interactions_dedup.json.gz"]
GENRES = "goodreads_book_genres_initial.json.gz"


def read(raw: Path, max_bad: int, show_progress: bool) -> Raw:
    """The content of the files in a folder; ValueError if one is missing, or has more bad lines than allowed."""
    events, genres = find_file(raw, INTERACTIONS, WHERE), find_file(raw, [GENRES], WHERE)
    catalogue, bad = Catalogue(), [BadLines(events, max_bad), BadLines(genres, max_bad)]
    for record in read_records(genres, bad[1], show_progress):
        names = record.get("genres")
        if not record.get("book_id") or not isinstance(names, dict):
            bad[1].add(None, "no book_id, or no genres", str(record))
            continue
        catalogue.add(str(record["book_id"]), names)
    builder = Builder(RATED)
    for record in read_records(events, bad[0], show_progress):
        user, book, time = record.get("user_id"), record.get("book_id"), _time(record)
        if not user or not book or time is None:
            bad[0].add(None, "no user_id, no book_id, or no time", str(record))
            continue
        builder.add(str(user), str(book), time, number_or_nan(record.get("rating")))
    return Raw(builder.interactions(), catalogue, bad)


def _time(record: dict[str, Any]) -> float | None:
    """The time of a record in epoch seconds: when the book was reviewed, read or put on a shelf."""
    for key, form in (("timestamp", "%Y-%m-%d"), ("read_at", _LONG), ("date_added", _LONG)):
        text = record.get(key)
        if isinstance(text, str) and (time := _seconds(text, form)) is not None:
            return time
    return None


@lru_cache(2**16)  # dates repeat, and parsing one takes longer than reading its line
def _seconds(text: str, form: str) -> float | None:
    try:
        time = datetime.strptime(text, form)
    except ValueError:
        return None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


_LONG = "%a %b %d %H:%M:%S %z %Y"
