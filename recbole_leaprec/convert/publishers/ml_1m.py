"""MovieLens-1M: `ratings.dat` and `movies.dat`, with `::` between fields, in latin-1."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from recbole_leaprec.convert.bad_lines import BadLines
from recbole_leaprec.convert.builder import Builder
from recbole_leaprec.convert.catalogue import Catalogue
from recbole_leaprec.convert.publishers.raw import Raw
from recbole_leaprec.convert.streams import find_file, read_lines

WHERE = "MovieLens 1M is on GroupLens' page of datasets, as ml-1m.zip: unpack it and name its folder"
RATED = True


def read(raw: Path, max_bad: int, show_progress: bool) -> Raw:
    """The content of the files in a folder; ValueError if one is missing, or has more bad lines than allowed."""
    ratings, movies = (find_file(raw, [name], WHERE) for name in ("ratings.dat", "movies.dat"))
    catalogue, bad = Catalogue(), [BadLines(ratings, max_bad), BadLines(movies, max_bad)]
    for _, (movie, title, genres) in _rows(movies, 3, bad[1], show_progress):
        catalogue.add(movie, [genre for genre in genres.split("|") if genre], title)
    builder = Builder(RATED)
    for number, (user, movie, rating, time) in _rows(ratings, 4, bad[0], show_progress):
        try:
            builder.add(user, movie, float(time), float(rating))
        except ValueError:
            bad[0].add(number, "the rating or the time is not a number", f"{user}::{movie}::{rating}::{time}")
    return Raw(builder.interactions(), catalogue, bad)


def _rows(path: Path, fields: int, bad: BadLines, show_progress: bool) -> Iterator[tuple[int, list[str]]]:
    for number, line in read_lines(path, show_progress):
        text = line.decode("latin-1")
        parts = text.split("::")
        if len(parts) != fields or not all(part.strip() for part in parts[:2]):
            bad.add(number, f"not {fields} fields with :: between them", text)
        else:
            yield number, parts
