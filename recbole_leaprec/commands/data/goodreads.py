"""`leaprec data goodreads`."""

from __future__ import annotations

from typing import Any

from recbole_leaprec.cli.command import command
from recbole_leaprec.cli.published import published_options, run_published
from recbole_leaprec.convert.paper import FILTERS


@command("data goodreads", keys=("show_progress",))
@published_options("goodreads", FILTERS["goodreads"])
def goodreads(keys: dict[str, Any], **options: Any) -> None:
    """Make a dataset from the published files of Goodreads, with the paper's filters:
    goodreads_reviews_spoiler.json.gz (or goodreads_interactions_dedup.json.gz) and
    goodreads_book_genres_initial.json.gz.

      leaprec data goodreads --raw=downloads
    """
    run_published("goodreads", keys, options)
