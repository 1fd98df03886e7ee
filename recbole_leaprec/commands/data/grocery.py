"""`leaprec data grocery`."""

from __future__ import annotations

from typing import Any

from recbole_leaprec.cli.command import command
from recbole_leaprec.cli.published import published_options, run_published
from recbole_leaprec.convert.paper import FILTERS


@command("data grocery", keys=("show_progress",))
@published_options("grocery", FILTERS["grocery"])
def grocery(keys: dict[str, Any], **options: Any) -> None:
    """Make a dataset from the published files of Amazon's Grocery and Gourmet Food, with the paper's filters:
    the reviews and meta_Grocery_and_Gourmet_Food of the releases of 2014, 2018 or 2023.

      leaprec data grocery --raw=downloads
    """
    run_published("grocery", keys, options)
