"""Anybody's tables become datasets that run."""

import csv
import gzip
import json
import shutil

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
import yaml

from recbole_leaprec import run_leaprec
from recbole_leaprec.cli import main
from recbole_leaprec.config import LeapRecConfig
from recbole_leaprec.convert.csv import Columns, convert_csv, plan_csv
from recbole_leaprec.convert.filters import Filters
from recbole_leaprec.data import create_dataset
from tests.toy import SMALL

ITEMS = {
    "i 1": ("Film Noir|Drama", 'The "Big"\tSleep, again'),
    "i 2": ("Drama", "Plain"),
    "i,3": ("Children's|Film Noir", "Ünïcode"),
    "i4": ("(no genres listed)", ""),
    "i5": ("Sci-Fi & Fantasy", "<b>HTML</b>"),
}
EVENTS = [
    (f"user {u}", list(ITEMS)[(u + n) % 5], 3 + (u + n) % 3, f"2020-01-{n + 1:02}T10:00:0{u % 10}")
    for u in range(8)
    for n in range(5)
]


def write_csv(path, header, rows, delimiter=","):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(header)
        writer.writerows(rows)
    return path


@pytest.fixture
def files(tmp_path):
    """A table of events and one of items."""
    events = write_csv(tmp_path / "events.csv", ["userId", "movieId", "rating", "timestamp"], EVENTS)
    items = write_csv(tmp_path / "items.csv", ["movieId", "title", "genres"], [(i, t, g) for i, (g, t) in ITEMS.items()])
    return events, items


def load(folder):
    """The dataset of a folder, built."""
    dataset = create_dataset(
        LeapRecConfig(
            "SASRecCD", folder.name, config_dict={"data_path": str(folder.parent), "topk": [2], "valid_metric": "NDCG@2"}
        )
    )
    dataset.build()
    return dataset


def categories_of(dataset):
    """Names of the categories of each item, by its token."""
    tokens = dataset.field2id_token[dataset.iid_field]
    return {tokens[i]: {dataset.categories.names[c] for c in own} for i, own in enumerate(dataset.item_members) if i}


def sequences_of(dataset):
    users, items = dataset.field2id_token[dataset.uid_field], dataset.field2id_token[dataset.iid_field]
    offsets, flat = dataset.sequences.offsets.tolist(), items[dataset.sequences.items.numpy()].tolist()
    return {users[u]: flat[offsets[u] : offsets[u + 1]] for u in range(1, len(users))}


def expected_categories():
    return {
        item: {name for name in genres.split("|") if name != "(no genres listed)"} for item, (genres, _) in ITEMS.items()
    }


def test_names_with_spaces_tabs_commas_and_quotes_come_back_as_they_were(files, tmp_path):
    convert_csv(plan_csv(*files), tmp_path / "shop", show_progress=False)
    dataset = load(tmp_path / "shop")
    assert categories_of(dataset) == expected_categories()
    assert sequences_of(dataset) == {f"user {u}": [EVENTS[5 * u + n][1] for n in range(5)] for u in range(8)}
    names = dict(zip(dataset.field2id_token[dataset.iid_field].tolist(), dataset.item_names(), strict=True))
    assert {item: names[item] for item in ITEMS} == {item: title or item for item, (_, title) in ITEMS.items()}


def test_a_line_break_in_a_category_becomes_a_space_and_splits_no_name(tmp_path):
    """Before, names were looked at with their line breaks, and the space was taken for the sign between them."""
    items = write_csv(tmp_path / "i.csv", ["item", "category"], [("a", "Sci\nFi|Drama"), ("b", "Sci Fi"), ("c", "Drama")])
    events = write_csv(tmp_path / "e.csv", ["user", "item", "time"], [("u", item, n) for n, item in enumerate("abc")])
    done = convert_csv(plan_csv(events, items, time_format="seconds"), tmp_path / "shop", show_progress=False)
    assert done.written.category_sizes == {"Sci Fi": 2, "Drama": 2}
    assert done.written.line_breaks == 1
    assert categories_of(load(tmp_path / "shop")) == {"a": {"Sci Fi", "Drama"}, "b": {"Sci Fi"}, "c": {"Drama"}}


def test_the_dataset_runs_by_its_name_and_lists_hold_the_names(files, tmp_path):
    convert_csv(plan_csv(*files), tmp_path / "shop", show_progress=False)
    settings = {
        **{k: v for k, v in SMALL.items() if k != "category_field"},
        "topk": [2],
        "valid_metric": "NDCG@2",
        "epochs": 1,
    }
    run_leaprec(
        "SASRecCD",
        "shop",
        config_dict={**settings, "mask_history": False, "data_path": str(tmp_path), "output_dir": str(tmp_path / "run")},
    )
    assert (
        main(
            [
                "recommend",
                f"--checkpoint={tmp_path / 'run' / 'model.pth'}",
                f"--out={tmp_path / 'lists.csv'}",
                "--k=2",
                "--show_progress=False",
            ]
        )
        == 0
    )
    lists = pd.read_csv(tmp_path / "lists.csv")
    assert set(lists["user"]) == {f"user {u}" for u in range(8)}
    assert set(lists["item"]) <= set(ITEMS)


@pytest.mark.parametrize("kind", ["tsv", "semicolons", "gz", "parquet", "one file", "lists", "long form", "crlf and mark"])
def test_every_form_of_the_same_tables_gives_the_same_dataset(files, tmp_path, kind):
    convert_csv(plan_csv(*files), tmp_path / "shop", show_progress=False)
    events, items = (pd.read_csv(path, dtype=str, keep_default_na=False) for path in files)
    other = [tmp_path / "e.csv", tmp_path / "i.csv"]
    if kind == "tsv":
        other = [
            write_csv(path.with_suffix(".tsv"), frame.columns, frame.to_numpy(), "\t")
            for path, frame in zip(other, (events, items), strict=True)
        ]
    elif kind == "semicolons":
        for path, frame in zip(other, (events, items), strict=True):
            write_csv(path, frame.columns, frame.to_numpy(), ";")
    elif kind == "gz":
        other = [path.with_suffix(".csv.gz") for path in other]
        for source, path in zip(files, other, strict=True):
            path.write_bytes(gzip.compress(source.read_bytes()))
    elif kind == "parquet":
        other = [path.with_suffix(".parquet") for path in other]
        typed = events.assign(timestamp=pd.to_datetime(events["timestamp"]), rating=events["rating"].astype(int))
        typed.to_parquet(other[0])
        items.assign(genres=items["genres"].str.split("|")).to_parquet(other[1])
    elif kind == "one file":
        events.merge(items, on="movieId", how="left").to_csv(other[0], index=False)
        other = [other[0]]
    elif kind == "lists":
        shutil.copy(files[0], other[0])
        items.assign(genres=[str(text.split("|")) for text in items["genres"]]).to_csv(other[1], index=False)
    elif kind == "long form":
        shutil.copy(files[0], other[0])
        items.assign(genres=items["genres"].str.split("|")).explode("genres").to_csv(other[1], index=False)
    else:
        for source, path in zip(files, other, strict=True):
            path.write_bytes(b"\xef\xbb\xbf" + source.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
    convert_csv(plan_csv(*other), tmp_path / "again", show_progress=False)
    first, second = load(tmp_path / "shop"), load(tmp_path / "again")
    assert sequences_of(first) == sequences_of(second)
    assert categories_of(first) == categories_of(second)


@pytest.mark.parametrize(
    ("write", "form"),
    [
        (lambda t: str(int(t)), "seconds"),
        (lambda t: str(int(t * 1000)), "milliseconds"),
        (lambda t: pd.Timestamp(t, unit="s").isoformat(), "iso"),
        (lambda t: pd.Timestamp(t, unit="s").strftime("%Y-%m-%d %H:%M:%S+00:00"), "iso"),
        (lambda t: pd.Timestamp(t, unit="s", tz="UTC").strftime("%a %b %d %H:%M:%S %z %Y"), "%a %b %d %H:%M:%S %z %Y"),
    ],
)
def test_times_are_read_in_the_form_that_they_have(tmp_path, write, form):
    times = np.random.default_rng(0).integers(1_400_000_000, 1_700_000_000, 50)
    events = [(f"u{n % 5}", f"i{n % 7}", write(int(t)), "a") for n, t in enumerate(times)]
    plan = plan_csv(write_csv(tmp_path / "e.csv", ["user", "item", "time", "category"], events))
    assert plan.time_format == form
    convert_csv(plan, tmp_path / "shop", Filters(duplicates="keep"), show_progress=False)
    written = pd.read_csv(tmp_path / "shop" / "shop.inter", sep="\t")["timestamp:float"]
    assert written.tolist() == times.tolist()


def brute_force(rows, least_rating, rule, per_day, per_user, per_item):
    """The filters, slowly: rows of (user, item, time, rating) in the order of the file."""
    rows = [row for row in rows if row[3] >= least_rating]
    kept = []
    by_time = sorted(range(len(rows)), key=lambda n: rows[n][2])
    for n in range(len(rows)):
        same = [m for m in by_time if rows[m][:2] == rows[n][:2]]
        if rule == "rows":
            same = [m for m in same if rows[m][2] == rows[n][2]]
        if rule == "keep" or n == (same[-1] if rule == "last" else same[0]):
            kept.append(rows[n])
    rows = kept
    if per_day:
        by_time = sorted(range(len(rows)), key=lambda n: rows[n][2])
        first = {}
        for n in by_time:
            first.setdefault((rows[n][0], rows[n][2] // 86_400), n)
        rows = [rows[n] for n in sorted(first.values())]
    while True:
        before = len(rows)
        rows = [row for row in rows if sum(other[0] == row[0] for other in rows) >= per_user]
        rows = [row for row in rows if sum(other[1] == row[1] for other in rows) >= per_item]
        if len(rows) == before:
            return rows


@pytest.mark.parametrize("seed", range(30))
def test_filters_keep_what_the_slow_way_keeps(tmp_path, seed):
    random = np.random.default_rng(seed)
    rows = [
        (f"u{random.integers(6)}", f"i{random.integers(8)}", int(random.integers(12)) * 20_000, int(random.integers(1, 6)))
        for _ in range(60)
    ]
    rule, per_day = ["keep", "rows", "first", "last"][seed % 4], seed % 3 == 0
    expected = brute_force(rows, 2, rule, per_day, 1 + seed % 5, 1 + seed % 3)
    events = write_csv(tmp_path / "e.csv", ["user", "item", "time", "rating", "category"], [(*row, "a") for row in rows])
    filters = Filters(2, rule, per_day, 1 + seed % 5, 1 + seed % 3)
    plan = plan_csv(events, time_format="seconds")
    if not expected:
        with pytest.raises(ValueError, match=r"no interaction is left: .* with a rating below 2"):
            convert_csv(plan, tmp_path / "shop", filters, show_progress=False)
        return
    done = convert_csv(plan, tmp_path / "shop", filters, show_progress=False)
    written = pd.read_csv(tmp_path / "shop" / "shop.inter", sep="\t")
    assert list(written.itertuples(index=False, name=None)) == expected
    assert sum(done.left_out.values()) == len(rows) - len(expected)


def test_columns_can_be_named_and_categories_left_whole(tmp_path):
    rows = [(f"c{n % 4}", f"p{n % 5}", n, ["Dairy, Cheese & Eggs", "Snacks"][n % 5 % 2]) for n in range(40)]
    events = write_csv(tmp_path / "e.csv", ["who", "what", "moment", "shelf"], rows)
    with pytest.raises(
        ValueError, match=r"no column that looks like the user: say which with --user=COLUMN. Its columns are who, what"
    ):
        plan_csv(events)
    plan = plan_csv(events, columns=Columns(user="who", item="what", time="moment", categories="shelf"))
    assert plan.separator == "none"
    convert_csv(plan, tmp_path / "shop", show_progress=False)
    assert set(load(tmp_path / "shop").categories.names) == {"Dairy, Cheese & Eggs", "Snacks"}


def test_settings_beside_the_data_are_read_and_the_users_win(files, tmp_path):
    convert_csv(plan_csv(*files), tmp_path / "shop", show_progress=False)
    settings = yaml.safe_load((tmp_path / "shop" / "shop.yaml").read_text())
    assert settings["category_field"] == "categories"
    given = {"data_path": str(tmp_path), "topk": [2], "valid_metric": "NDCG@2"}
    assert LeapRecConfig("SASRecCD", "shop", config_dict=given)["title_field"] == "title"
    assert LeapRecConfig("SASRecCD", "shop", config_dict={**given, "title_field": None})["title_field"] is None
    (tmp_path / "shop" / "shop.yaml").write_text("category_feild: x\n")
    with pytest.raises(ValueError, match=r"shop\.yaml: unknown key 'category_feild'; did you mean 'category_field'"):
        LeapRecConfig("SASRecCD", "shop", config_dict=given)


def test_a_dry_run_shows_the_guesses_and_ten_rows_and_writes_nothing(files, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    assert main(["data", "csv", f"--interactions={files[0]}", f"--items={files[1]}", "--dry_run=True"]) == 0
    shown = capsys.readouterr().out
    assert "user=userId, item=movieId, time=timestamp, rating=rating, categories=genres, title=title" in shown
    assert "split at '|'" in shown
    assert shown.count("2020-01-") == 10
    assert "Film Noir + Drama" in shown
    assert sorted(tmp_path.iterdir()) == before


def test_the_command_says_what_it_did_in_five_lines(files, tmp_path, capsys):
    out = tmp_path / "dataset" / "shop"
    assert (
        main(
            [
                "data",
                "csv",
                f"--interactions={files[0]}",
                f"--items={files[1]}",
                f"--out={out}",
                "--min_rating=4",
                "--show_progress=False",
            ]
        )
        == 0
    )
    lines = capsys.readouterr().out.strip().splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("read 40 interactions; columns: user=userId")
    assert "with a rating below 4" in lines[1]
    assert lines[3].startswith("4 categories, split at '|'; the largest: ")
    assert f"leaprec --dataset=shop --data_path={out.parent}" in lines[4]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e, i: e.write_text(""), "events.csv is empty"),
        (lambda e, i: e.write_text("userId,movieId,rating,timestamp\n"), "has no rows"),
        (lambda e, i: e.unlink(), "there is no file '"),
        (lambda e, i: i.write_text("movieId,title\ni 1,x\n"), "has no column that looks like categories"),
        (lambda e, i: e.write_text("userId,movieId,timestamp\nu,i,03/04/2020\nu,i,05/06/2020\n"), "say which with --time_format"),
        (lambda e, i: e.write_bytes(e.read_bytes().replace(b"user 1", b"us\xe9r")), "say which encoding it has"),
        (lambda e, i: e.write_text("userId,movieId,movieId,timestamp\nu,i,i,1\n"), "there are two columns 'movieId'"),
    ],
)  # fmt: skip
def test_bad_files_get_one_sentence_and_leave_nothing(files, tmp_path, capsys, change, message):
    change(*files)
    out = tmp_path / "dataset" / "shop"
    assert (
        main(["data", "csv", f"--interactions={files[0]}", f"--items={files[1]}", f"--out={out}", "--show_progress=False"])
        == 2
    )
    error = capsys.readouterr().err.strip()
    assert message in error
    assert "\n" not in error
    assert not out.parent.exists() or list(out.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda packed: b"not packed at all", "is not gzip, whatever its name says"),
        (lambda packed: packed[: len(packed) // 2], "is damaged or was cut short"),
    ],
)
def test_a_file_that_is_not_gzip_or_was_cut_short_is_refused(files, tmp_path, capsys, spoil, message):
    random = np.random.default_rng(0)
    rows = "\n".join(f"u{random.integers(99)},i{random.integers(99)},3,{random.integers(10**9)}" for _ in range(20_000))
    path = tmp_path / "big.csv.gz"
    path.write_bytes(spoil(gzip.compress(b"userId,movieId,rating,timestamp\n" + rows.encode())))
    assert (
        main(
            [
                "data",
                "csv",
                f"--interactions={path}",
                f"--items={files[1]}",
                f"--out={tmp_path / 'out'}",
                "--show_progress=False",
            ]
        )
        == 2
    )
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_lines_beyond_reading_are_counted_and_too_many_stop_the_run(files, tmp_path, capsys):
    with open(files[0], "a") as file:
        file.write("just,two\nuser 1,,4,2020-01-09T10:00:00\n,i 2,4,2020-01-09T10:00:00\nuser 1,i 2,4,sometime\n")
    words = ["data", "csv", f"--interactions={files[0]}", f"--items={files[1]}", "--show_progress=False"]
    assert main([*words, f"--out={tmp_path / 'shop'}"]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("4 lines of events.csv left out as unreadable: line 42: 2 columns and not 4: 'just,two'")
    assert main([*words, f"--out={tmp_path / 'again'}", "--max_bad=3"]) == 2
    assert "more than 3 lines cannot be read (--max_bad)" in capsys.readouterr().err
    assert not (tmp_path / "again").exists()


def test_a_full_disk_is_one_sentence_and_leaves_nothing(files, tmp_path, monkeypatch):
    def fill(*_):
        with open("/dev/full", "w") as file:
            file.write("x" * 10**5)

    monkeypatch.setattr("recbole_leaprec.convert.atomic._write_settings", fill)
    with pytest.raises(ValueError, match=r"could not be written, and nothing is left of it: .*No space left"):
        convert_csv(plan_csv(*files), tmp_path / "new" / "shop", show_progress=False)
    assert list((tmp_path / "new").iterdir()) == []


def test_a_folder_that_is_there_is_not_written_over(files, tmp_path):
    (tmp_path / "shop").mkdir()
    with pytest.raises(ValueError, match="is there already"):
        convert_csv(plan_csv(*files), tmp_path / "shop", show_progress=False)


def test_a_description_is_that_of_the_tables(files, tmp_path, capsys):
    convert_csv(plan_csv(*files), tmp_path / "shop", show_progress=False)
    words = [
        "data",
        "describe",
        "shop",
        f"--data_path={tmp_path}",
        f"--output_dir={tmp_path / 'd'}",
        "--topk=2",
        "--valid_metric=NDCG@2",
    ]
    assert main(words) == 0
    assert "8" in capsys.readouterr().out.split("users")[1].split("\n")[0]
    found = json.loads((tmp_path / "d" / "description.json").read_text())
    assert (found["users"], found["items"], found["interactions"], found["categories"]) == (8, 5, 40, 4)
    assert found["items_without_category"] == 1
    assert found["categories_per_item"] == pytest.approx((2 + 1 + 2 + 1) / 4)
    assert found["category_sizes"] == {"Drama": 2, "Film Noir": 2, "Children's": 1, "Sci-Fi & Fantasy": 1}
    assert (tmp_path / "d" / "description.png").stat().st_size > 1000


@pytest.mark.parametrize("rows", [5, 60_000])
def test_a_quote_that_is_not_closed_is_refused_with_its_line(tmp_path, files, rows):
    lines = ["userId,movieId,timestamp", *(f"u{n % 9},i4,{n}" for n in range(rows))]
    lines[3] = 'u1,"i4,5'
    (tmp_path / "e.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(ValueError, match=r"a quote is opened and never closed, in line 4 or before"):
        convert_csv(plan_csv(tmp_path / "e.csv", files[1], time_format="seconds"), tmp_path / "shop", show_progress=False)
    assert not (tmp_path / "shop").exists()


def test_fields_with_line_breaks_across_blocks_stay_whole(tmp_path, files, monkeypatch):
    monkeypatch.setattr("recbole_leaprec.convert.tables.BLOCK", 50)
    rows = [(f"u{n % 7}", ["i 1", "i 2", "i5"][n % 3], n, f'two\nlines "{n}", more') for n in range(60)]
    events = write_csv(tmp_path / "e.csv", ["user", "item", "time", "note"], rows)
    done = convert_csv(plan_csv(events, files[1]), tmp_path / "shop", show_progress=False)
    assert done.read == 60
    assert sum(map(len, sequences_of(load(tmp_path / "shop")).values())) == 60


def test_a_second_file_that_does_not_match_is_refused_or_told(tmp_path, files, capsys):
    events = write_csv(
        tmp_path / "e.csv", ["userId", "movieId", "timestamp"], [(f"u{n % 5}", f"{n % 6}.0", n) for n in range(40)]
    )
    with pytest.raises(
        ValueError, match=r"no item of .*e\.csv, such as \['0\.0', '1\.0', '2\.0'\], is in .*items\.csv, such as \['i 1'"
    ):
        convert_csv(plan_csv(events, files[1], time_format="seconds"), tmp_path / "shop", show_progress=False)
    events = write_csv(
        tmp_path / "e.csv",
        ["userId", "movieId", "timestamp"],
        [(f"u{n % 5}", ["i 1", "x", "y"][n % 3], n) for n in range(40)],
    )
    words = [
        "data",
        "csv",
        f"--interactions={events}",
        f"--items={files[1]}",
        f"--out={tmp_path / 'shop'}",
        "--show_progress=False",
    ]
    assert main(words) == 0
    assert (
        "LOOK: 2 of the 3 items that are taken are not in items.csv and have no category, such as 'x', 'y'"
        in capsys.readouterr().out
    )


def test_ratings_with_a_comma_are_numbers_and_text_is_a_bad_line(tmp_path, files):
    rows = [(f"u{n % 5}", list(ITEMS)[n % 5], ["4,5", "3,5", ""][n % 3], n) for n in range(60)]
    events = write_csv(tmp_path / "e.csv", ["userId", "movieId", "rating", "timestamp"], rows)
    done = convert_csv(
        plan_csv(events, files[1]), tmp_path / "shop", Filters(min_rating=4, min_user_interactions=1), show_progress=False
    )
    assert done.left_out == {"without a rating": 20, "with a rating below 4": 20}
    with open(events, "a") as file:
        file.write("u1,i 2,five,99\n")
    again = convert_csv(plan_csv(events, files[1]), tmp_path / "again", show_progress=False)
    assert "'rating' is no number: 'five'" in again.bad[0]


def test_a_least_rating_needs_ratings(tmp_path, files):
    events = write_csv(tmp_path / "e.csv", ["userId", "movieId", "timestamp"], [(u, i, t) for u, i, _, t in EVENTS])
    with pytest.raises(ValueError, match=r"min_rating needs a column of ratings, got 4: say which with --rating=COLUMN"):
        convert_csv(plan_csv(events, files[1]), tmp_path / "shop", Filters(min_rating=4), show_progress=False)


def test_items_without_a_category_are_left_out_where_one_is_needed_and_counts_are_of_what_is_left(tmp_path, files):
    done = convert_csv(plan_csv(*files), tmp_path / "shop", Filters(need_category=True), show_progress=False)
    assert "i4" not in categories_of(load(tmp_path / "shop"))
    assert (done.written.items, done.written.without_category) == (4, 0)
    assert done.written.category_sizes == {"Drama": 2, "Film Noir": 2, "Children's": 1, "Sci-Fi & Fantasy": 1}


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_other_encodings_are_read(tmp_path, files, encoding):
    for path in files:
        path.write_bytes(path.read_text(encoding="utf-8").encode(encoding))
    convert_csv(plan_csv(*files, encoding=encoding), tmp_path / "shop", show_progress=False)
    assert categories_of(load(tmp_path / "shop")) == expected_categories()


def test_what_is_no_table_is_told(tmp_path, files):
    (tmp_path / "e.csv").write_bytes(b"PK\x03\x04 and so on")
    with pytest.raises(ValueError, match="is a zip or Excel file: save the table as CSV"):
        plan_csv(tmp_path / "e.csv", files[1])
    pd.DataFrame({"movieId": ["i 1"], "genres": [{"name": "A"}]}).to_parquet(tmp_path / "i.parquet")
    with pytest.raises(
        ValueError,
        match=r"i\.parquet: column 'genres' holds struct<name: .*>, which is no text, no number and no list of them",
    ):
        plan_csv(files[0], tmp_path / "i.parquet")
    with pytest.raises(ValueError, match="ml-100k is the dataset that comes with RecBole"):
        convert_csv(plan_csv(*files), tmp_path / "ml-100k", show_progress=False)


def test_a_flag_may_stand_alone_and_a_folder_of_commands_lists_them(files, tmp_path, capsys):
    assert main(["data", "csv", f"--interactions={files[0]}", "--dry_run", f"--items={files[1]}"]) == 0
    assert "nothing was written" in capsys.readouterr().out
    assert main(["data", "--help"]) == 2
    assert "data is one of data csv, data describe," in capsys.readouterr().err


@pytest.mark.parametrize(
    "write",
    [
        lambda names: str(np.array(names, dtype=object)),  # as pandas writes arrays into a CSV file
        lambda names: (
            "{" + ",".join(f'"{name}"' if " " in name or "'" in name else name for name in names) + "}"
        ),  # PostgreSQL
        lambda names: json.dumps(names),
    ],
)
def test_lists_are_read_as_programs_print_them(tmp_path, files, write):
    expected = expected_categories()
    rows = [(item, write(sorted(names))) for item, names in expected.items()]
    items = write_csv(tmp_path / "i.csv", ["movieId", "genres"], rows)
    convert_csv(plan_csv(files[0], items), tmp_path / "shop", show_progress=False)
    assert categories_of(load(tmp_path / "shop")) == expected


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_list_of_objects_is_a_bad_line_and_not_a_name(tmp_path, kind):
    rows = [(f"u{n % 4}", f"i{n % 5}", n, [{"id": 18, "name": "Drama"}] if n == 6 else ["Action"]) for n in range(40)]
    path = tmp_path / f"e.{kind}"
    if kind == "csv":
        write_csv(path, ["user", "item", "time", "genres"], rows)
    else:
        pd.DataFrame(
            [(*row[:3], json.dumps(row[3])) for row in rows], columns=["user", "item", "time", "genres"]
        ).to_parquet(path)
    done = convert_csv(plan_csv(path), tmp_path / "shop", show_progress=False)
    assert "line 8: " in done.bad[0]
    assert "is not the name of a category: write a list of names" in done.bad[0]
    assert (done.read, list(done.written.category_sizes)) == (39, ["Action"])


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.large_string()), pa.decimal128(4, 1)]
)
def test_ratings_and_ids_in_parquet_may_be_of_any_kind(tmp_path, kind):
    ratings = pa.array([4.5, 3.0, None] * 20)
    if not pa.types.is_decimal(kind):
        ratings = pa.array([None if value is None else f"{value:g}".replace(".", ",") for value in ratings.to_pylist()])
    table = pa.table({
        "user": pa.array([float(n % 5) for n in range(60)]), "item": pa.array([f"i{n % 7}" for n in range(60)]).dictionary_encode(),
        "ts": pa.array(range(60), pa.timestamp("ms", "Europe/Berlin")), "rating": ratings.cast(kind), "tags": [["A b", None], [], None] * 20,
    })  # fmt: skip
    pa.parquet.write_table(table, tmp_path / "e.parquet")
    filters = Filters(min_rating=4, min_user_interactions=1)
    done = convert_csv(plan_csv(tmp_path / "e.parquet"), tmp_path / "shop", filters, show_progress=False)
    assert done.left_out == {"without a rating": 20, "with a rating below 4": 20}
    written = pd.read_csv(tmp_path / "shop" / "shop.inter", sep="\t")
    assert written["timestamp:float"].tolist() == [n / 1000 for n in range(0, 60, 3)]
    assert set(written["user_id:token"].astype(str)) == set("01234")


def test_quotes_can_be_part_of_names(tmp_path, files, capsys):
    rows = [f'u{n % 4}\ti{n % 3}\t{n}\t24" screen{" " + chr(34) + "new" if n % 3 else ""}' for n in range(31)]
    (tmp_path / "e.tsv").write_text("user\titem\ttime\tcategory\n" + "\n".join(rows) + "\n")
    words = ["data", "csv", f"--interactions={tmp_path / 'e.tsv'}", f"--out={tmp_path / 'shop'}", "--show_progress=False"]
    assert main(words) == 2
    assert "reads them with --quotes=False" in capsys.readouterr().err
    assert main([*words, "--quotes=False"]) == 0
    assert set(load(tmp_path / "shop").categories.names) == {'24" screen', '24" screen "new'}


def test_what_is_called_like_a_missing_value_is_pointed_at(tmp_path, files, capsys):
    rows = [(["NULL", "u1", "u2"][n % 3], f"i{n % 4}", n, ["\\N", "A", "B"][n % 3]) for n in range(36)]
    events = write_csv(tmp_path / "e.csv", ["user", "item", "time", "category"], rows)
    words = ["data", "csv", f"--interactions={events}", "--show_progress=False"]
    assert main([*words, f"--out={tmp_path / 'shop'}"]) == 0
    assert "LOOK: the user 'NULL', the category '\\\\N': if that stands for a missing value" in capsys.readouterr().out
    assert main([*words, f"--out={tmp_path / 'other'}", "--no_category=\\N"]) == 0
    assert "LOOK: the user 'NULL': if" in capsys.readouterr().out


def test_no_category_can_be_called_none(tmp_path, files):
    rows = [(f"u{n % 4}", f"i{n % 4}", n, ["None", "A", "B", "A"][n % 4]) for n in range(36)]
    events = write_csv(tmp_path / "e.csv", ["user", "item", "time", "category"], rows)
    words = ["data", "csv", f"--interactions={events}", f"--out={tmp_path / 'shop'}", "--show_progress=False"]
    assert main([*words, "--no_category=None"]) == 0
    assert set(load(tmp_path / "shop").categories.names) == {"A", "B"}


def test_a_form_of_times_that_most_lines_do_not_have_is_refused(tmp_path, files, capsys):
    rows = [(f"u{n % 5}", "i 1", f"{1 + n % 28:02}/03/2020") for n in range(100)]
    events = write_csv(tmp_path / "e.csv", ["userId", "movieId", "timestamp"], rows)
    words = [
        "data",
        "csv",
        f"--interactions={events}",
        f"--items={files[1]}",
        f"--out={tmp_path / 'shop'}",
        "--show_progress=False",
    ]
    assert main([*words, "--time_format=%m/%d/%Y"]) == 2
    assert (
        "52 lines cannot be read and 48 can; the first of the former: line 14: 'timestamp' is no time"
        in capsys.readouterr().err
    )
    assert not (tmp_path / "shop").exists()
    assert main([*words, "--time_format=%d/%m/%Y"]) == 0


def test_a_line_is_named_only_while_lines_can_be_counted(tmp_path, files):
    lines = ["userId,movieId,timestamp", *(f"u{n % 4},i 1,{n}" for n in range(30))]
    lines[3:3] = ["u1,i 1,later", "", "u2,i 2,never"]
    (tmp_path / "e.csv").write_text("\n".join(lines))
    plan = plan_csv(tmp_path / "e.csv", files[1])
    assert "a line: 'timestamp' is no time: 'never'" in convert_csv(plan, tmp_path / "shop", show_progress=False).bad[0]
    (tmp_path / "e.csv").write_text("\n".join(line for line in lines if line))
    assert "line 5: 'timestamp' is no time: 'never'" in convert_csv(plan, tmp_path / "other", show_progress=False).bad[0]


def test_a_table_without_names_and_a_damaged_one_are_told(tmp_path, files):
    (tmp_path / "e.csv").write_text("u1,i 1,978300760\nu2,i 2,978300761\n")
    with pytest.raises(ValueError, match="'978300760' looks like data, and the first row must hold names"):
        plan_csv(tmp_path / "e.csv", files[1])
    (tmp_path / "e.csv").write_text("\nuserId,movieId\n")
    with pytest.raises(ValueError, match=r"e\.csv: the first line is empty"):
        plan_csv(tmp_path / "e.csv", files[1])
    path = tmp_path / "e.parquet"
    pd.read_csv(files[0]).to_parquet(path, compression="gzip")
    content = path.read_bytes()
    path.write_bytes(content[:4] + bytes(len(content) // 4) + content[4 + len(content) // 4 :])
    with pytest.raises(ValueError, match=r"e\.parquet is (not a Parquet file, or )?damaged"):
        plan_csv(path, files[1])
