"""Writes atomic files and their settings: all of them, or nothing."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from recbole_leaprec.common.files import scratch_folder, write_yaml
from recbole_leaprec.convert.catalogue import Catalogue
from recbole_leaprec.convert.filters import Filters
from recbole_leaprec.convert.interactions import Interactions

FIELD_SEPARATORS = ("\t", "\x1f")
LIST_SEPARATORS = (" ", "|", ";", "\x1e")
"""The first sign that is in no name is used. The last ones are the separators that ASCII has for this purpose."""

CHUNK = 100_000


@dataclass(frozen=True)
class Written:
    """The sizes of a dataset that was written."""

    users: int
    items: int
    interactions: int
    categories: int
    categories_per_item: float
    without_category: int
    line_breaks: int
    taken: int
    category_sizes: Counter[str]


def check_new(out: str | Path) -> Path:
    """The absolute path of `out`; ValueError if a dataset cannot be written there."""
    out = Path(out).absolute()
    if out.is_file():
        raise ValueError(f"out: {out} is a file; name a folder that is not there yet")
    if out.exists():
        raise ValueError(f"out: {out} is there already; name another folder, or remove it first")
    if out.name == "ml-100k":
        raise ValueError("out: ml-100k is the dataset that comes with RecBole; give yours another name")
    existing = next(parent for parent in out.parents if parent.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        raise ValueError(f"out: {out} cannot be made: {existing} is not a folder that can be written to")
    return out


@contextmanager
def _folder_as_a_whole(out: Path) -> Iterator[Path]:
    """A scratch folder that is renamed to `out` at the end."""
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        with scratch_folder(out) as scratch:
            yield scratch
            scratch.rename(out)
    except OSError as error:
        raise ValueError(f"out: {out} could not be written, and nothing is left of it: {error}") from error


def write_dataset(out: Path, interactions: Interactions, catalogue: Catalogue, filters: Filters) -> Written:
    """Write `<name>.inter`, `<name>.item` and `<name>.yaml` into the folder `out`, whose name is the dataset's name.

    Args:
        filters: the filters that were applied to the interactions; they also decide which items are written.

    Raises:
        ValueError: no interaction is left, or the files cannot be written; then nothing is left behind.
    """
    if not len(interactions):
        told = ", ".join(f"{count:,} {why}" for why, count in interactions.left_out.items())
        raise ValueError(f"no interaction is left: {told or 'there was none'}")
    seen = [interactions.items[code] for code in np.unique(interactions.item)]
    items = seen if filters.min_item_interactions else list(dict.fromkeys([*seen, *catalogue.categories]))
    if filters.need_category:
        items = [item for item in items if catalogue.categories.get(item)]
    categories = {item: list(dict.fromkeys(map(_one_line, catalogue.categories.get(item, ())))) for item in items}
    names = Counter(name for own in categories.values() for name in own)
    titles = [catalogue.titles.get(item, "") for item in items] if catalogue.titles else []
    texts = [*(interactions.users[code] for code in np.unique(interactions.user)), *items, *titles, *catalogue.names(items)]
    between_fields = _separator(texts, FIELD_SEPARATORS)
    between_names = _separator(names, LIST_SEPARATORS)
    with _folder_as_a_whole(out) as folder:
        _write_inter(folder / f"{out.name}.inter", interactions, between_fields)
        header = ["item_id:token", "categories:token_seq", *(["title:token"] if titles else [])]
        rows = (
            map(_one_line, [item, between_names.join(categories[item]), *titles[n : n + 1]]) for n, item in enumerate(items)
        )
        _write_rows(folder / f"{out.name}.item", header, rows, between_fields)
        _write_settings(
            folder / f"{out.name}.yaml", between_fields, between_names, bool(titles), interactions.rating is not None
        )
    counts = [len(own) for own in categories.values()]
    return Written(
        users=interactions.n_users, items=len(items), interactions=len(interactions), categories=len(names),
        categories_per_item=float(np.mean([count for count in counts if count] or [0])),
        without_category=counts.count(0), line_breaks=sum(_breaks(text) for text in texts), taken=len(seen), category_sizes=names,
    )  # fmt: skip


def _separator(texts: Iterable[str], candidates: Sequence[str]) -> str:
    held = {sign for text in texts for sign in candidates if sign in text}
    free = [sign for sign in candidates if sign not in held]
    if not free:
        raise ValueError(f"names hold every sign that could stand between them: {', '.join(map(repr, candidates))}")
    return free[0]


def _breaks(text: str) -> bool:
    return "\n" in text or "\r" in text


def _one_line(text: str) -> str:
    """The text with spaces for its line breaks: a row must be one line."""
    return " ".join(text.splitlines()) if _breaks(text) else text


def _write_rows(path: Path, header: Sequence[str], rows: Iterable[Iterable[str]], separator: str) -> None:
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write(separator.join(header) + "\n")
        file.writelines(separator.join(row) + "\n" for row in rows)


def _write_inter(path: Path, interactions: Interactions, separator: str) -> None:
    users, items = [_one_line(text) for text in interactions.users], [_one_line(text) for text in interactions.items]
    rated = interactions.rating is not None
    header = ["user_id:token", "item_id:token", "timestamp:float", *(["rating:float"] if rated else [])]

    def rows() -> Iterator[tuple[str, ...]]:
        for start in range(0, len(interactions), CHUNK):
            part = slice(start, start + CHUNK)
            columns = [
                [users[code] for code in interactions.user[part]],
                [items[code] for code in interactions.item[part]],
                [f"{time:.6f}".rstrip("0").rstrip(".") for time in interactions.time[part].tolist()],
            ]
            if interactions.rating is not None:
                columns.append([f"{rating:g}" for rating in interactions.rating[part].tolist()])
            yield from zip(*columns, strict=True)

    _write_rows(path, header, rows(), separator)


def _write_settings(path: Path, between_fields: str, between_names: str, titles: bool, rated: bool) -> None:
    """Write the settings that `--dataset=<name>` needs; the user's own settings win over them."""
    inter = ["user_id", "item_id", "timestamp", *(["rating"] if rated else [])]
    settings = {
        "field_separator": between_fields,
        "seq_separator": between_names,
        "USER_ID_FIELD": "user_id",
        "ITEM_ID_FIELD": "item_id",
        "TIME_FIELD": "timestamp",
        "category_field": "categories",
        "title_field": "title" if titles else None,
        "val_interval": None,  # filters were applied already
        "load_col": {"inter": inter, "item": ["item_id", "categories"]},
    }
    write_yaml(path, settings, sort_keys=False)
