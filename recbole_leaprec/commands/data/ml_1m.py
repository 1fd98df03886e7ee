"""`leaprec data ml-1m`."""

from __future__ import annotations

from typing import Any

from recbole_leaprec.cli.command import command
from recbole_leaprec.cli.published import published_options, run_published
from recbole_leaprec.convert.paper import FILTERS


@command("data ml-1m", keys=("show_progress",))
@published_options("ml-1m", FILTERS["ml-1m"])
def ml_1m(keys: dict[str, Any], **options: Any) -> None:
    """Make a dataset from the published files of MovieLens-1M, with the paper's filters:
    ratings.dat and movies.dat.

      leaprec data ml-1m --raw=downloads
    """
    run_published("ml-1m", keys, options)
