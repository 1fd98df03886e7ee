"""`leaprec data steam`."""

from __future__ import annotations

from typing import Any

from recbole_leaprec.cli.command import command
from recbole_leaprec.cli.published import published_options, run_published
from recbole_leaprec.convert.paper import FILTERS


@command("data steam", keys=("show_progress",))
@published_options("steam", FILTERS["steam"])
def steam(keys: dict[str, Any], **options: Any) -> None:
    """Make a dataset from the published files of Steam, with the paper's filters:
    steam_reviews.json.gz and steam_games.json.gz.

      leaprec data steam --raw=downloads
    """
    run_published("steam", keys, options)
