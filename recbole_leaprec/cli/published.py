"""Shared code of the commands that convert the paper's datasets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from recbole_leaprec.cli.command import loading
from recbole_leaprec.cli.converted import left_out_line, next_line
from recbole_leaprec.cli.filter_options import filter_options, take_filters
from recbole_leaprec.cli.options import Folder, Whole, option
from recbole_leaprec.common.defaults import MAX_BAD_LINES
from recbole_leaprec.convert.filters import Filters
from recbole_leaprec.convert.paper import TABLE_1, compared


def published_options(name: str, filters: Filters) -> Callable[[Any], Any]:
    """A decorator that adds the options `raw`, `out` and `max_bad`, and the filters with these defaults."""

    def add(function: Any) -> Any:
        function = option("max_bad", Whole(), "how many unreadable lines a file may have", MAX_BAD_LINES)(function)
        function = filter_options(filters)(function)
        function = option("out", Folder(), "the new folder; its name becomes the dataset's name", f"dataset/{name}")(
            function
        )
        return option("raw", Folder(), "the folder that holds the publisher's files", needed=True)(function)

    return add


def run_published(name: str, keys: dict[str, Any], options: dict[str, Any]) -> None:
    """Convert a dataset, and print its sizes beside the paper's Table 1."""
    with loading("numpy"):
        from recbole_leaprec.convert.published import convert_published

    filters, out = take_filters(options), Path(options["out"])
    done = convert_published(
        name, options["raw"], out, filters, max_bad=options["max_bad"], show_progress=keys.get("show_progress", True)
    )
    lines = [
        *done.bad,
        f"read {done.read:,} interactions; {left_out_line(done.left_out)}",
        "",
        compared(TABLE_1[name], done.sizes),
        "",
        next_line(out),
    ]
    print("\n".join(lines))
