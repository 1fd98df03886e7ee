"""Converts a table of events, and optionally one of items, to atomic files."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa

from recbole_leaprec.common.defaults import MAX_BAD_LINES, NO_CATEGORY
from recbole_leaprec.convert.atomic import Written, check_new, write_dataset
from recbole_leaprec.convert.bad_lines import BadLines
from recbole_leaprec.convert.catalogue import LIST, WHOLE, Catalogue, guess_separator, list_names, split_categories
from recbole_leaprec.convert.codes import Codes
from recbole_leaprec.convert.filters import Filters
from recbole_leaprec.convert.guesses import guess_column
from recbole_leaprec.convert.interactions import Interactions
from recbole_leaprec.convert.tables import Table, as_numbers, as_text, is_list
from recbole_leaprec.convert.times import FORMS, check_form, guess_form, read_times

LIKE_MISSING = ("null", "nan", "none", "n/a", "undefined", "\\n")
"""Texts that databases and programs write for a missing value."""


@dataclass(frozen=True)
class Columns:
    """The names of the columns. None means not given; then the column is guessed if it is needed.

    Attributes:
        item_in_items: the item's column in the second file.
    """

    user: str | None = None
    item: str | None = None
    time: str | None = None
    rating: str | None = None
    categories: str | None = None
    title: str | None = None
    item_in_items: str | None = None


@dataclass(frozen=True)
class Plan:
    """How the files are read: what was given, and what was guessed."""

    events: Table
    items: Table | None
    columns: Columns
    time_format: str
    separator: str
    no_category: str

    @property
    def told_columns(self) -> str:
        """The columns that are read."""
        shown = {name: column for name, column in asdict(self.columns).items() if column is not None}
        return f"columns: {', '.join(f'{name}={column}' for name, column in shown.items())}"

    @property
    def told_separator(self) -> str:
        """How categories are separated."""
        return {LIST: "as lists", WHOLE: "one per item"}.get(self.separator, f"split at {self.separator!r}")

    def told(self) -> list[str]:
        """The guesses as lines of text, for the user to check."""
        return [self.told_columns, f"times: {self.time_format}; categories: {self.told_separator}"]


@dataclass(frozen=True)
class Converted:
    """The result of a conversion.

    Attributes:
        unknown_items: some items of the events that the second file lacks.
        unknown_kept: how many such items are left after the filters.
        times: the first and the last.
        like_missing: users, items and categories whose name is a text for a missing value, such as NULL.
    """

    plan: Plan
    read: int
    left_out: dict[str, int]
    written: Written
    bad: list[str]
    unknown_items: list[str]
    unknown_kept: int
    times: tuple[str, str]
    like_missing: list[str]


def plan_csv(
    interactions: str | Path,
    items: str | Path | None = None,
    columns: Columns | None = None,
    *,
    time_format: str | None = None,
    category_separator: str | None = None,
    no_category: str = NO_CATEGORY,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    quotes: bool = True,
) -> Plan:
    """Look at the first rows of the files and decide how to read them. Nothing is written.

    Raises:
        ValueError: a file or a column does not exist, the form of the times is unknown, or there are no categories.
    """
    given = columns or Columns()
    events = Table(interactions, delimiter, encoding, quotes)
    catalogue = None if items is None else Table(items, delimiter, encoding, quotes)
    described = events if catalogue is None else catalogue
    found = _find_columns(given, events, catalogue)
    if found.categories is None:
        raise ValueError(
            f"{described.path} has no column that looks like categories, and calibration needs them: say which with "
            f"--categories=COLUMN" + ("" if catalogue is not None else ", or give a file of items (--items=FILE)")
            + f". Its columns are {', '.join(described.columns)}"
        )  # fmt: skip
    if time_format is None:
        time_format = guess_form(_first(events, found.time or ""))
        if time_format is None:
            shown = [value for value in _first(events, found.time or "").slice(0, 3).to_pylist() if value is not None]
            raise ValueError(
                f"{events.path}: the times of column {found.time!r} have no form that is known, such as {shown}; "
                f"say which with --time_format: {FORMS}"
            )
    check_form(time_format)
    if category_separator is None:
        values = _first(described, found.categories)
        category_separator = LIST if is_list(values.type) else guess_separator(t or "" for t in as_text(values).to_pylist())
        if category_separator == WHOLE and described.types.get(found.categories) == "token_seq":
            category_separator = " "  # the separator in atomic files
    return Plan(events, catalogue, found, time_format, category_separator, no_category)


def _find_columns(given: Columns, events: Table, items: Table | None) -> Columns:
    """All columns: those that are given are checked, the others are guessed."""
    found: dict[str, str | None] = {}
    for name in ("user", "item", "time"):
        column = getattr(given, name)
        found[name] = (
            events.check(column, name) if column else guess_column(name, events.columns, {c for c in found.values() if c})
        )
        if found[name] is None:
            raise ValueError(_no_column(events, name, name))
    taken = {column for column in found.values() if column}
    found["rating"] = events.check(given.rating, "rating") if given.rating else _guess_rating(events, taken)
    described = items or events
    if items is not None:
        column = given.item_in_items or (
            found["item"] if found["item"] in items.columns else guess_column("item", items.columns)
        )
        if column is None:
            raise ValueError(_no_column(items, "item", "item_in_items"))
        found["item_in_items"] = items.check(column, "item_in_items")
        taken = {column}
    for name in ("categories", "title"):
        column = getattr(given, name)
        found[name] = described.check(column, name) if column else guess_column(name, described.columns, taken)
    return Columns(**found)


def _no_column(table: Table, what: str, option: str) -> str:
    number = next((name for name in table.columns if name.replace(".", "", 1).isdigit()), None)
    header = f"; {number!r} looks like data, and the first row must hold names" if number else ""
    return (
        f"{table.path} has no column that looks like the {what}: say which with --{option}=COLUMN. "
        f"Its columns are {', '.join(table.columns)}{header}"
    )


def _guess_rating(events: Table, taken: Collection[str]) -> str | None:
    """A column that has a name for ratings and holds numbers; None if there is none."""
    column = guess_column("rating", events.columns, taken)
    if column is None:
        return None
    values = _first(events, column)
    return column if not len(values) or np.isfinite(as_numbers(values)).mean() > 0.5 else None


def _first(table: Table, column: str) -> pa.Array:
    """A column of the first rows."""
    head = table.head([column])
    return pa.array([], pa.string()) if head is None else head.column(0)


def convert_csv(
    plan: Plan, out: str | Path, filters: Filters | None = None, *, max_bad: int = MAX_BAD_LINES, show_progress: bool = True
) -> Converted:
    """Read the files as planned, and write atomic files with their settings into the folder `out`.

    Args:
        max_bad: how many unreadable lines a file may have.

    Raises:
        ValueError: bad arguments or files; then nothing is written.
    """
    out, filters = check_new(out), filters or Filters()
    filters.check_ratings(
        plan.columns.rating is not None,
        f"say which with --rating=COLUMN. {plan.events.path} has {', '.join(plan.events.columns)}",
    )
    bad = {table.path: BadLines(table.path, max_bad) for table in (plan.events, plan.items) if table is not None}
    catalogue = Catalogue()
    if plan.items is not None:
        good = 0
        for item, names, title in _described(
            plan, plan.items, plan.columns.item_in_items or "", bad[plan.items.path], show_progress
        ):
            catalogue.add(item, names, title)
            good += 1
        bad[plan.items.path].check_share(good)
    described = plan.events.path if plan.items is None else plan.items.path
    events = _read_events(plan, bad[plan.events.path], catalogue if plan.items is None else None, show_progress)
    bad[plan.events.path].check_share(len(events))
    unknown = [item for item in events.items if item not in catalogue]
    if unknown and len(unknown) == len(events.items):
        raise ValueError(
            f"no item of {plan.events.path}, such as {events.items[:3]}, is in {described}, such as {list(catalogue.categories)[:3]}; "
            f"is --item_in_items, {plan.columns.item_in_items!r}, the right column?"
        )
    for item in unknown:
        catalogue.add(item)
    kept = filters.apply(events, catalogue)
    written = write_dataset(out, kept, catalogue, filters)
    users = [kept.users[code] for code in np.unique(kept.user)]
    items = [kept.items[code] for code in np.unique(kept.item)]
    return Converted(
        plan=plan,
        read=len(events),
        left_out=kept.left_out,
        written=written,
        bad=[one.told() for one in bad.values() if one.count],
        unknown_items=unknown[:3],
        unknown_kept=len({*unknown} & {*items}),
        times=(_shown(kept.time.min()), _shown(kept.time.max())),
        like_missing=_like_missing({"user": users, "item": items, "category": written.category_sizes}),
    )


def _like_missing(names: Mapping[str, Iterable[str]]) -> list[str]:
    """Names that may stand for a missing value, as `the user 'NULL'`: a text file does not show the difference."""
    return [f"the {what} {name!r}" for what, own in names.items() for name in own if name.lower() in LIKE_MISSING]


def _read_events(plan: Plan, bad: BadLines, catalogue: Catalogue | None, show_progress: bool) -> Interactions:
    """All interactions. If a catalogue is given, the items are also added to it, with their categories and titles."""
    columns, users, items = plan.columns, Codes(), Codes()
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []
    rows = 1  # the header
    wanted = [columns.user, columns.item, columns.time, columns.rating]
    if catalogue is not None:
        wanted += [columns.categories, columns.title]
    for batch in plan.events.batches(list(dict.fromkeys(c for c in wanted if c)), bad, show_progress):
        user, item = (as_text(batch.column(column)) for column in (columns.user, columns.item))
        time = read_times(batch.column(columns.time), plan.time_format)
        rating = np.full(len(batch), np.nan)
        good = np.isfinite(time)
        if columns.rating:
            rating = as_numbers(batch.column(columns.rating))
            good &= np.isfinite(rating) | batch.column(columns.rating).is_null().to_numpy(zero_copy_only=False)
        for values in (user, item):
            good &= ~values.is_null().to_numpy(zero_copy_only=False)
        wrong = {
            place: _what_is_wrong(batch, place, np.isfinite(time[place]), columns)
            for place in np.flatnonzero(~good).tolist()
        }
        if catalogue is not None:
            wrong |= _describe(plan, batch, item, good, catalogue)
            good[list(wrong)] = False
        for place in sorted(wrong):
            bad.add(rows + place + 1 if plan.events.lines_are_rows else None, wrong[place])
        rows += len(batch)
        mask = pa.array(good)
        parts.append((users.of(user.filter(mask)), items.of(item.filter(mask)), time[good], rating[good]))
    if not parts:
        raise ValueError(f"{plan.events.path} has no rows")
    user, item, time, rating = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Interactions(user, item, time, users.texts, items.texts, rating if columns.rating else None)


def _what_is_wrong(batch: pa.RecordBatch, place: int, timed: bool, columns: Columns) -> str:
    for name, column in (("user", columns.user), ("item", columns.item)):
        if not batch.column(column)[place].is_valid:
            return f"no {name} in column {column!r}"
    if not timed:
        return f"{columns.time!r} is no time: {batch.column(columns.time)[place].as_py()!r}"
    return f"{columns.rating!r} is no number: {batch.column(columns.rating)[place].as_py()!r}"


def _describe(plan: Plan, batch: pa.RecordBatch, item: pa.Array, good: np.ndarray, catalogue: Catalogue) -> dict[int, str]:
    """Add the items of a batch's good events to a catalogue, each description once; returns the errors by row."""
    seen, wrong = set(), {}
    names = batch.column(plan.columns.categories).to_pylist()
    titles = batch.column(plan.columns.title).to_pylist() if plan.columns.title else [None] * len(batch)
    for place, (own, value, title) in enumerate(zip(item.to_pylist(), names, titles, strict=True)):
        described = (own, str(value))
        if good[place] and described not in seen:
            try:
                catalogue.add(own, _names(value, plan), None if title is None else str(title))
                seen.add(described)
            except ValueError as error:
                wrong[place] = str(error)
    return wrong


def _described(
    plan: Plan, table: Table, item: str, bad: BadLines, show_progress: bool, head_alone: bool = False
) -> Iterator[tuple[str, list[str], str | None]]:
    """Item, categories and title of each row of a table of items, or only of its first rows."""
    columns, rows = plan.columns, 1
    wanted = list(dict.fromkeys(c for c in (item, columns.categories, columns.title) if c))
    head = table.head(wanted) if head_alone else None
    for batch in ([] if head is None else [head]) if head_alone else table.batches(wanted, bad, show_progress):
        items, values = as_text(batch.column(item)).to_pylist(), batch.column(columns.categories).to_pylist()
        titles = as_text(batch.column(columns.title)).to_pylist() if columns.title else [None] * len(items)
        for own, value, title in zip(items, values, titles, strict=True):
            rows += 1
            line = rows if table.lines_are_rows else None
            if own is None:
                bad.add(line, f"no item in column {item!r}")
                continue
            try:
                yield own, _names(value, plan), title
            except ValueError as error:
                bad.add(line, str(error))


def _names(value: object, plan: Plan) -> list[str]:
    """The categories of one value."""
    if value is None or str(value).strip() == plan.no_category:  # before the text could be split
        names = []
    elif isinstance(value, list | tuple):
        names = list_names(value)
    else:
        names = split_categories(str(value), plan.separator)
    return [name for name in names if name and name != plan.no_category]


def first_rows(plan: Plan, count: int = 10) -> list[str]:
    """The first events as they are read, one line each."""
    columns = plan.columns
    wanted = [c for c in (columns.user, columns.item, columns.time, columns.rating) if c]
    head = plan.events.head(wanted)
    if head is None:
        return []
    head, lines = head.slice(0, count), []
    times = read_times(head.column(columns.time), plan.time_format)
    for place, time in enumerate(times.tolist()):
        user, item = (as_text(head.column(column))[place].as_py() for column in (columns.user, columns.item))
        rated = f"  {as_numbers(head.column(columns.rating))[place]:g}" if columns.rating else ""
        lines.append(f"{user!s:<20} {item!s:<20} {'no time' if time != time else _shown(time)}{rated}")
    return lines


def _shown(time: float) -> str:
    """Epoch seconds as a readable date."""
    try:
        return datetime.fromtimestamp(time, UTC).isoformat(sep=" ").removesuffix("+00:00")
    except (OverflowError, ValueError, OSError):
        return f"{time:g} s, which is no date"


def first_items(plan: Plan, count: int = 10) -> list[str]:
    """The first items with their categories as they are read, one line each."""
    table, item = (plan.events, plan.columns.item) if plan.items is None else (plan.items, plan.columns.item_in_items)
    lines: dict[str, str] = {}
    for own, names, title in _described(plan, table, item or "", BadLines(table.path, most=10**9), False, head_alone=True):
        lines.setdefault(own, f"{own:<20} {' + '.join(names) or 'no category'}{f'  ({title})' if title else ''}")
        if len(lines) == count:
            break
    return list(lines.values())
