"""Small files in the exact forms that publishers ship, odd lines among them."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

DAY = 86_400


def events(users: int, items: list[str], seed: int = 0, most: int = 14) -> list[tuple[str, str, int, int]]:
    """`(user, item, day, rating)`, days rising for each user."""
    draw = random.Random(seed)
    rows = []
    for user in range(users):
        day = draw.randrange(15_000, 16_000)
        for item in draw.sample(items, min(len(items), draw.choice([2, 6, 9, most]))):
            day += draw.randrange(0, 3)
            rows.append((f"user{user}", item, day, draw.randrange(1, 6)))
    return rows


def date(day: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(day * DAY, UTC).strftime("%Y-%m-%d")


def write_gz(path: Path, lines: list[str], end: str = "\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(line + end for line in lines).encode()))


def write_ml_1m(folder: Path, rows: list[tuple], genres: dict[str, list[str]], odd: bool = True) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    movies = [f"{item}::Café {item} (1995)::{'|'.join(own)}" for item, own in genres.items()]
    ratings = [f"{user}::{item}::{rating}::{day * DAY}" for user, item, day, rating in rows]
    if odd:
        movies += ["", "99999::no genres field"]
        ratings += ["1::2::3", "1::2::five::978300760"]
    (folder / "movies.dat").write_bytes("\r\n".join(movies).encode("latin-1"))
    (folder / "ratings.dat").write_bytes("\n".join(ratings).encode("latin-1") + b"\n")


def write_goodreads(
    folder: Path, rows: list[tuple], genres: dict[str, list[str]], odd: bool = True, full: bool = False
) -> None:
    if full:
        form = "{:%a %b %d} 13:41:57 -0700 {:%Y}"
        from datetime import UTC, datetime

        def record(user, item, day, rating):
            when = datetime.fromtimestamp(day * DAY, UTC)
            added = form.format(when, when)
            return {"user_id": user, "book_id": item, "is_read": True, "rating": rating, "date_added": added, "read_at": ""}
    else:

        def record(user, item, day, rating):
            return {"user_id": user, "timestamp": date(day), "rating": rating, "book_id": item, "review_id": "r",
                    "has_spoiler": False, "review_sentences": [[0, "It's \u00fcber \"good\"."]]}  # fmt: skip

    lines = [json.dumps(record(*row)) for row in rows]
    books = [json.dumps({"book_id": item, "genres": dict.fromkeys(own, 3)}) for item, own in genres.items()]
    if odd:
        lines += ["{", json.dumps({"user_id": "x", "timestamp": "soon", "book_id": "1", "rating": 3}), "[1, 2]"]
        books += [json.dumps({"book_id": "empty", "genres": {}}), json.dumps({"genres": {}})]
    write_gz(folder / ("goodreads_interactions_dedup.json.gz" if full else "goodreads_reviews_spoiler.json.gz"), lines)
    write_gz(folder / "goodreads_book_genres_initial.json.gz", books, "\r\n" if odd else "\n")


def write_grocery(
    folder: Path, rows: list[tuple], genres: dict[str, list[str]], release: int = 2018, odd: bool = True
) -> None:
    top = "Grocery & Gourmet Food"
    if release == 2023:
        reviews = [
            json.dumps({"user_id": u, "parent_asin": i, "asin": i, "rating": float(r), "timestamp": d * DAY * 1000})
            for u, i, d, r in rows
        ]
        items = [
            json.dumps(
                {
                    "parent_asin": i,
                    "categories": [top, *own, "More"] if own else [],
                    "main_category": "Grocery",
                    "title": "T <b>x</b>",
                }
            )
            for i, own in genres.items()
        ]
        names = ("Grocery_and_Gourmet_Food.jsonl.gz", "meta_Grocery_and_Gourmet_Food.jsonl.gz")
    else:
        reviews = [
            json.dumps(
                {"overall": float(r), "reviewerID": u, "asin": i, "unixReviewTime": d * DAY, "reviewTime": "11 19, 2014"}
            )
            for u, i, d, r in rows
        ]
        if release == 2018:
            items = [
                json.dumps({"asin": i, "category": [top, *own, "More"] if own else [], "title": f"{i} & co"})
                for i, own in genres.items()
            ]
            items += [json.dumps({"asin": i, "category": []}) for i in list(genres)[:2]]  # asins repeat
            names = ("Grocery_and_Gourmet_Food_5.json.gz", "meta_Grocery_and_Gourmet_Food.json.gz")
        else:
            items = [repr({"asin": i, "categories": [[top, *own]], "title": f"it's {i}"}) for i, own in genres.items()]
            names = ("reviews_Grocery_and_Gourmet_Food_5.json.gz", "meta_Grocery_and_Gourmet_Food.json.gz")
    if odd:
        reviews += ["not a record", json.dumps({"asin": "A", "overall": 3.0})]
        if release != 2014:
            items += [json.dumps({"asin": "no path", "category": own, "title": None}) for own in ({"a": 1}, "Grocery", [])]
        items += ["{'asin': 'B', 'categories': __import__('os').system('touch hacked')}", "(" * 5000]
    write_gz(folder / names[0], reviews, "\r\n" if odd else "\n")
    write_gz(folder / names[1], items)


def write_steam(folder: Path, rows: list[tuple], genres: dict[str, list[str]], odd: bool = True) -> None:
    def unicode(value) -> str:
        """As Python 2 printed it."""
        if isinstance(value, str):
            return f"u{value!a}"
        if isinstance(value, list):
            return f"[{', '.join(map(unicode, value))}]"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{unicode(k)}: {unicode(v)}" for k, v in value.items()) + "}"
        return repr(value)

    reviews = [
        unicode(
            {
                "username": u,
                "hours": 0.1,
                "product_id": i,
                "date": date(d),
                "text": 'it\'s "fun"\n\u2665',
                "early_access": False,
            }
        )
        for u, i, d, _ in rows
    ]
    games = [
        unicode({"id": i, "app_name": f"Game {i}", "title": f"Game's {i}", "genres": own, "tags": ["x"]})
        for i, own in genres.items()
    ]
    if odd:
        reviews += ["{u'username': u'x'}", "{u'username': u'x', u'product_id': u'1', u'date': u'someday'}", "{broken"]
        games += [unicode({"id": "no genres", "title": 7}), unicode({"title": "no id", "genres": ["Action"]})]
    write_gz(folder / "steam_reviews.json.gz", reviews, "\r\n" if odd else "\n")
    write_gz(folder / "steam_games.json.gz", games)


WRITERS = {"ml-1m": write_ml_1m, "goodreads": write_goodreads, "grocery": write_grocery, "steam": write_steam}
NAMES = {
    "ml-1m": ["Action", "Children's", "Film-Noir", "Sci-Fi"],
    "goodreads": ["fantasy, paranormal", "history, historical fiction, biography", "young-adult", "comics, graphic"],
    "grocery": ["Beverages", "Dairy, Cheese & Eggs", "Snack Foods", "Cooking & Baking"],
    "steam": ["Action", "Free to Play", "Massively Multiplayer", "RPG"],
}


def catalogue(name: str, items: int, seed: int = 1) -> dict[str, list[str]]:
    """Categories of items, one each for grocery."""
    draw = random.Random(seed)
    count = 1 if name == "grocery" else 3
    return {str(1000 + i): sorted(draw.sample(NAMES[name], draw.randrange(1, count + 1))) for i in range(items)}
