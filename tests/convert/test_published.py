"""The paper's datasets from files in the exact forms that their publishers ship."""

import json

import pytest
import yaml

from recbole_leaprec.cli import main
from recbole_leaprec.convert.filters import Filters
from recbole_leaprec.convert.paper import FILTERS, TABLE_1
from recbole_leaprec.convert.published import convert_published
from recbole_leaprec.settings.keys import PROPERTIES
from tests.convert import raw
from tests.convert.test_csv import brute_force, categories_of, load, sequences_of
from tests.toy import SMALL

FORMS = {
    "ml-1m": ("ml-1m", {}),
    "goodreads": ("goodreads", {}),
    "goodreads, all interactions": ("goodreads", {"full": True}),
    "grocery 2014": ("grocery", {"release": 2014}),
    "grocery 2018": ("grocery", {"release": 2018}),
    "grocery 2023": ("grocery", {"release": 2023}),
    "steam": ("steam", {}),
}
BAD = {"ml-1m": (2, 1), "goodreads": (3, 1), "grocery": (2, 2), "steam": (3, 1)}
"""Odd lines among the events and among the items, as `raw` writes them."""


@pytest.mark.parametrize("form", FORMS)
def test_what_a_publishers_files_hold_is_what_is_written(form, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name, more = FORMS[form]
    genres = raw.catalogue(name, 30) | {"2000": [], "2001": []}
    rows = raw.events(40, list(genres))
    rows = [*rows, *rows[::9]]  # duplicates
    if name != "ml-1m":  # which is in latin-1
        rows = [(user.replace("user3", "Zoë's ♥ 用户"), *rest) for user, *rest in rows]
    raw.WRITERS[name](tmp_path / "raw", rows, genres, **more)
    done = convert_published(name, tmp_path / "raw", tmp_path / name, show_progress=False)
    filters = FILTERS[name]
    expected = brute_force(
        [(user, item, day * raw.DAY, rating) for user, item, day, rating in rows if genres[item] or not filters.need_category],
        filters.min_rating or 0, filters.duplicates, filters.one_per_day, filters.min_user_interactions, filters.min_item_interactions,
    )  # fmt: skip
    assert done.read == len(rows)
    assert done.written.interactions == len(expected)
    dataset = load(tmp_path / name)
    sequences = {}
    for user, item, _, _ in sorted(expected, key=lambda row: row[2]):
        sequences.setdefault(user, []).append(item)
    assert sequences_of(dataset) == {user: items for user, items in sequences.items() if len(items) >= 3}
    kept = set(genres) if filters.min_item_interactions == 0 else {row[1] for row in expected}
    assert {item: own for item, own in categories_of(dataset).items() if own} == {
        item: set(genres[item]) for item in kept if genres[item]
    }
    counts = [int(told.split()[0].replace(",", "")) for told in done.bad]
    assert counts == [count for count in BAD[name] if count]
    assert not (tmp_path / "hacked").exists()  # a line that would have run something


def test_the_filters_of_the_paper_are_options_and_the_table_ends_with_table_1(tmp_path, capsys):
    genres = raw.catalogue("steam", 20)
    raw.write_steam(tmp_path / "raw", raw.events(30, list(genres)), genres)
    words = [
        "data",
        "steam",
        f"--raw={tmp_path / 'raw'}",
        f"--out={tmp_path / 'my data' / 'steam'}",
        "--min_user_interactions=2",
        "--show_progress=False",
    ]
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert "242,223" in shown
    assert shown.split("\nusers")[1].split()[:3] == ["242,223", "30", "-242,193"]
    assert f"leaprec --dataset=steam --data_path='{tmp_path / 'my data'}'" in shown  # as a shell takes it


def test_a_filter_on_ratings_is_refused_where_there_are_none(tmp_path, capsys):
    """Before, it was read and did nothing."""
    genres = raw.catalogue("steam", 20)
    raw.write_steam(tmp_path / "raw", raw.events(30, list(genres)), genres)
    words = ["data", "steam", f"--raw={tmp_path / 'raw'}", f"--out={tmp_path / 'steam'}", "--min_rating=4"]
    assert main(words) == 2
    assert "min_rating needs a column of ratings, got 4: steam has none; leave it out" in capsys.readouterr().err
    assert not (tmp_path / "steam").exists()


@pytest.mark.parametrize("name", TABLE_1)
def test_a_file_that_is_missing_is_named_with_where_to_get_it(name, tmp_path, capsys):
    assert main(["data", name, f"--raw={tmp_path}", f"--out={tmp_path / 'out'}"]) == 2
    error = capsys.readouterr().err
    assert f"{tmp_path} holds no " in error
    assert "page of" in error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("form", "title"),
    [
        ("ml-1m", "Café 1003 (1995)"),
        ("grocery 2014", "it's 1003"),
        ("grocery 2018", "1003 & co"),
        ("grocery 2023", "T <b>x</b>"),
        ("steam", "Game's 1003"),
    ],
)
def test_titles_with_html_quotes_and_accents_come_back(tmp_path, form, title):
    name, more = FORMS[form]
    genres = raw.catalogue(name, 12)
    raw.WRITERS[name](tmp_path / "raw", raw.events(20, list(genres)), genres, **more)
    convert_published(name, tmp_path / "raw", tmp_path / name, Filters(), show_progress=False)
    dataset = load(tmp_path / name)
    names = dict(zip(dataset.field2id_token[dataset.iid_field].tolist(), dataset.item_names(), strict=True))
    assert names["1003"] == title


def test_a_book_was_taken_when_it_was_read_or_else_put_on_a_shelf(tmp_path):
    added = "Mon Aug 01 13:41:57 -0700 2011"
    rows = [("a", added, ""), ("b", added, "Sun Jul 31 00:00:00 -0700 2011"), ("c", added, "Tue Aug 02 00:00:00 -0700 2011")]
    records = [{"user_id": "u", "book_id": book, "date_added": shelf, "read_at": read} for book, shelf, read in rows]
    raw.write_gz(tmp_path / "goodreads_interactions_dedup.json.gz", list(map(json.dumps, records)))
    books = [json.dumps({"book_id": book, "genres": {"young-adult": 1}}) for book in "abc"]
    raw.write_gz(tmp_path / "goodreads_book_genres_initial.json.gz", books)
    convert_published("goodreads", tmp_path, tmp_path / "goodreads", Filters(), show_progress=False)
    assert sequences_of(load(tmp_path / "goodreads")) == {"u": ["b", "a", "c"]}


def test_files_of_another_form_are_refused_with_their_first_lines(tmp_path, monkeypatch):
    genres = raw.catalogue("steam", 20)
    raw.write_steam(tmp_path, raw.events(30, list(genres)), genres)
    (tmp_path / "steam_games.json.gz").unlink()
    games = tmp_path / "steam_games.json"
    games.write_text("\n".join(json.dumps({"app": item, "genres": own}) for item, own in genres.items()))
    with pytest.raises(
        ValueError, match=r"20 lines cannot be read and 0 can; .* no id, or genres that are no list: .*'app': '1000'"
    ):
        convert_published("steam", tmp_path, tmp_path / "steam", show_progress=False)
    games.write_text(json.dumps([{"id": item} for item in genres]) * 3)
    monkeypatch.setattr("recbole_leaprec.convert.streams.BLOCK", 64)
    monkeypatch.setattr("recbole_leaprec.convert.streams.LONGEST", 128)
    with pytest.raises(ValueError, match=r"line 1 is longer than 128 bytes: there must be a record per line"):
        convert_published("steam", tmp_path, tmp_path / "steam", show_progress=False)
    assert not (tmp_path / "steam").exists()


@pytest.mark.slow
def test_the_papers_study_runs_on_all_four_datasets(tmp_path, capsys):
    for name, write in raw.WRITERS.items():
        genres = raw.catalogue(name, 40)
        write(tmp_path / "raw" / name, raw.events(300, list(genres), seed=3, most=20), genres)
        words = [
            "data",
            name,
            f"--raw={tmp_path / 'raw' / name}",
            f"--out={tmp_path / 'dataset' / name}",
            "--show_progress=False",
        ]
        assert main(words) == 0
    spec = yaml.safe_load((PROPERTIES / "study" / "paper.yaml").read_text())
    assert spec["datasets"] == list(raw.WRITERS)
    spec |= {"backbones": ["SASRec"], "seeds": [1], "lambdas": [0.3, 0.9]}
    for methods in ("methods", "ablations"):
        for own in spec[methods].values():
            own.pop("lambdas", None)
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    small = {key: value for key, value in SMALL.items() if key not in ("category_field", "topk", "show_progress")}
    words = [f"--{key}={value}" for key, value in small.items()]
    study = [
        "study",
        f"--spec={tmp_path / 'small.yaml'}",
        f"--output_dir={tmp_path / 'out'}",
        f"--data_path={tmp_path / 'dataset'}",
    ]
    assert main([*study, *words, "--show_progress=False"]) == 0
    table = (tmp_path / "out" / "datasets.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in table] == ["dataset", *raw.WRITERS]
    for name in raw.WRITERS:
        assert (tmp_path / "out" / name / "report.html").stat().st_size > 10**6
        assert f'href="{name}/report.html"' in (tmp_path / "out" / "report.html").read_text()
    assert main(["report", str(tmp_path / "out"), f"--out={tmp_path / 'r' / 'report.html'}"]) == 2
    assert "is a study of several datasets; name the folder of one: ml-1m" in capsys.readouterr().err
