"""Steam: reviews and games, one Python literal per line."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from recbole_leaprec.convert.bad_lines import BadLines
from recbole_leaprec.convert.builder import Builder
from recbole_leaprec.convert.catalogue import Catalogue
from recbole_leaprec.convert.publishers.raw import Raw, text_or_none
from recbole_leaprec.convert.records import read_records
from recbole_leaprec.convert.streams import find_file

WHERE = "It is on the page of recommender datasets of UCSD: put the file into that folder as it comes, packed"
RATED = False


def read(raw: Path, max_bad: int, show_progress: bool) -> Raw:
    """The content of the files in a folder; ValueError if one is missing, or has more bad lines than allowed."""
    reviews, games = (find_file(raw, [name], WHERE) for name in ("steam_reviews.json.gz", "steam_games.json.gz"))
    catalogue, bad = Catalogue(), [BadLines(reviews, max_bad), BadLines(games, max_bad)]
    for record in read_records(games, bad[1], show_progress):
        game, genres = record.get("id"), record.get("genres") or []
        if not game or not isinstance(genres, list):
            bad[1].add(None, "no id, or genres that are no list", str(record))
            continue
        catalogue.add(str(game), map(str, genres), text_or_none(record.get("title")) or text_or_none(record.get("app_name")))
    builder = Builder(RATED)
    for record in read_records(reviews, bad[0], show_progress):
        user, game, time = record.get("username"), record.get("product_id"), _day(str(record.get("date")))
        if not user or not game or time is None:
            bad[0].add(None, "no username, no product_id, or no date", str(record))
            continue
        builder.add(str(user), str(game), time)
    return Raw(builder.interactions(), catalogue, bad)


@lru_cache(2**16)  # dates repeat, and parsing one takes longer than reading its line
def _day(text: Any) -> float | None:
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
    except (ValueError, TypeError):
        return None
