"""`leaprec data csv`."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recbole_leaprec.cli.command import command, loading
from recbole_leaprec.cli.converted import left_out_line, next_line
from recbole_leaprec.cli.filter_options import filter_options, take_filters
from recbole_leaprec.cli.options import File, Flag, Folder, Text, Whole, option
from recbole_leaprec.common.defaults import MAX_BAD_LINES, NO_CATEGORY
from recbole_leaprec.convert.filters import Filters

if TYPE_CHECKING:
    from recbole_leaprec.convert.csv import Converted


@command("data csv", keys=("show_progress",))
@option(
    "interactions", File(), "a .csv, .tsv or .parquet file of events; text files may be compressed with gzip", needed=True
)
@option(
    "out",
    Folder(),
    "the new folder, such as dataset/shop; its name becomes the dataset's name",
    shown="dataset/<name of the file>",
)
@option(
    "items", File(), "a second file with the items' categories and, optionally, titles", shown="they are in the first file"
)
@option("user", Text(), "the column of the user", shown="guessed")
@option("item", Text(), "the column of the item", shown="guessed")
@option("time", Text(), "the column of the time", shown="guessed")
@option("rating", Text(), "the column of the rating", shown="guessed; optional")
@option("categories", Text(), "the column of the categories", shown="guessed")
@option("title", Text(), "the column of the items' titles", shown="guessed; optional")
@option(
    "item_in_items", Text(), "the column of the item in the second file", shown="the same as in the first file, or guessed"
)
@option(
    "category_separator",
    Text(),
    "the sign between categories; list for lists, none for one category per item",
    shown="guessed",
)
@option("no_category", Text(), "the text in your file that means no category", NO_CATEGORY)
@option(
    "time_format",
    Text(),
    "seconds, milliseconds, microseconds, nanoseconds, iso, or a pattern such as %d/%m/%Y; UTC if there is no time zone",
    shown="guessed",
)
@option("delimiter", Text(), "the sign between columns", shown="guessed")
@option("encoding", Text(), "encoding of both text files", "utf-8")
@option("quotes", Flag(), "whether texts may be in quotes; if False, quotes are part of the text", True)
@filter_options(Filters())
@option("max_bad", Whole(), "how many unreadable lines a file may have", MAX_BAD_LINES)
@option("dry_run", Flag(), "show the guesses and ten rows, and write nothing", False)
def csv(
    keys: dict[str, Any], interactions: str, out: str | None, items: str | None, dry_run: bool, max_bad: int, **options: Any
) -> None:
    """Make a dataset from a table of events: CSV, TSV or Parquet. Columns are guessed from their names, and shown.

    leaprec data csv --interactions=events.csv --items=items.csv --out=dataset/shop --dry_run=True
    leaprec data csv --interactions=ratings.csv --items=movies.csv --out=dataset/movies --min_rating=4
    leaprec data csv --interactions=log.parquet --user=customer --item=sku --time=bought_at --categories=department
    """
    with loading("pyarrow and pandas"):
        from recbole_leaprec.convert.csv import Columns, convert_csv, first_items, first_rows, plan_csv

    filters = take_filters(options)
    columns = Columns(**{field.name: options.pop(field.name) for field in fields(Columns)})
    plan = plan_csv(interactions, items, columns, **options)
    if dry_run:
        print(
            "\n".join([*plan.told(), "", *first_rows(plan), "", *first_items(plan), "", "nothing was written (--dry_run)"])
        )
        return
    out = out or f"dataset/{Path(interactions).name.split('.')[0]}"
    done = convert_csv(plan, out, filters, max_bad=max_bad, show_progress=keys.get("show_progress", True))
    print("\n".join(_told(done, Path(out))))


def _told(done: Converted, out: Path) -> list[str]:
    """Five lines about what was done, with lines before them for what the user should look at."""
    written, plan = done.written, done.plan
    once = [name for name, count in written.category_sizes.items() if count == 1]
    largest = ", ".join(f"{name} ({count:,} items)" for name, count in written.category_sizes.most_common(3))
    few = f"; {len(once):,} occur once: {', '.join(once[:3])}{', ...' if len(once) > 3 else ''}" if once else ""
    without = f"; {written.without_category:,} items have none" if written.without_category else ""
    broken = f"; line breaks in {written.line_breaks:,} names became spaces" if written.line_breaks else ""
    lines = [*done.bad]
    if plan.items is not None and done.unknown_kept > written.taken / 5:
        lines.append(
            f"LOOK: {done.unknown_kept:,} of the {written.taken:,} items that are taken are not in {plan.items.path.name} and have no "
            f"category, such as {', '.join(map(repr, done.unknown_items))}"
        )
    if done.like_missing:
        lines.append(
            f"LOOK: {', '.join(done.like_missing[:3])}: if that stands for a missing value, take it out of the file; "
            "a category is taken for none with --no_category"
        )
    if written.categories == 1:
        lines.append("LOOK: there is one category only, and nothing to calibrate")
    return [
        *lines,
        f"read {done.read:,} interactions; {plan.told_columns}; times: {plan.time_format}, from {done.times[0]} to {done.times[1]}",
        left_out_line(done.left_out),
        f"kept {written.interactions:,} interactions of {written.users:,} users with {written.items:,} items ({written.taken:,} of them taken){broken}",
        f"{written.categories:,} categories, {plan.told_separator}; the largest: {largest}{few}{without}",
        next_line(out),
    ]
