"""Candidates of any recommender become calibrated lists: those of `rerank` and of `recommend`."""

import random

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from recbole_leaprec import ItemCategories, miscalibration, rerank, rerank_frame, sequential_preference
from recbole_leaprec.cli import main
from recbole_leaprec.convert.tables import Table
from recbole_leaprec.recommend import recommend
from recbole_leaprec.recommend.histories import split_items
from recbole_leaprec.recommend.rerank_file import rerank_file
from recbole_leaprec.recommend.rerank_part import Counts
from recbole_leaprec.reranking import Reranking
from tests.recommend.test_model_file import histories as histories_of
from tests.recommend.test_model_file import train

NAMES = ["Sci-Fi & Fantasy", "Film Noir", "Dairy, Cheese", "D"]


def tables(users=40, items=60, seed=0):
    """Candidates, items and histories, with names that hold spaces."""
    draw = random.Random(seed)
    tokens = [f"item {n}" for n in range(items)]
    categories = [draw.sample(NAMES, draw.choice([0, 1, 1, 2])) for _ in tokens]
    candidates = [
        (f"u {u}", item, draw.gauss(0, 1)) for u in range(users) for item in draw.sample(tokens, draw.choice([3, 20, 40]))
    ]
    past = [(f"u {u}", draw.sample(tokens, draw.choice([1, 4, 15]))) for u in range(users)]
    return (
        pd.DataFrame(candidates, columns=["user", "item", "score"]),
        pd.DataFrame({"item": tokens, "categories": categories}),
        pd.DataFrame(past, columns=["user", "items"]),
    )


def write(folder, kind, **frames):
    """The frames as files, and the words that name them."""
    for name, frame in frames.items():
        path = folder / f"{name}.{kind}"
        frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    return [f"--{name}={folder / name}.{kind}" for name in frames]


@pytest.mark.parametrize("method", ["none", "leaprec", "calirec", "setwise", "mcf"])
def test_every_users_list_is_that_of_rerank_on_tensors(method):
    candidates, items, histories = tables()
    lists = rerank_frame(candidates, items, histories, Reranking(method, 0.4), k=7)
    ids = {token: n for n, token in enumerate(items["item"], 1)}
    categories = ItemCategories.from_lists([[], *items["categories"]])
    for (user, own), (name, past) in zip(
        candidates.groupby("user", sort=False), zip(histories["user"], histories["items"], strict=True), strict=True
    ):
        assert user == name
        scores = torch.full((1, 61), -torch.inf, dtype=torch.float64)
        scores[0, [ids[item] for item in own["item"]]] = torch.tensor(own["score"].tolist(), dtype=torch.float64)
        history = [[ids[item] for item in past]]
        p = sequential_preference(history, categories, 0.9)
        to = sequential_preference(history, categories, 1.0) if Reranking(method).preference == "static" else p
        expected = rerank(scores, None if method == "none" else to, categories, 7, method, 0.4)
        found = lists[lists["user"] == user]
        assert [ids[item] for item in found["item"]] == [item for item in expected[0].tolist() if item]
        assert found["skl"].iloc[0] == pytest.approx(miscalibration(p, expected, categories).item())
        assert found["rank"].tolist() == list(range(1, len(found) + 1))


@pytest.mark.parametrize(
    "words", [["--reranker=leaprec", "--rerank_lambda=0.5"], ["--reranker=calirec", "--rerank_lambda=0.7"]]
)
def test_candidates_of_recommend_give_the_lists_of_recommend(toy, tmp_path, words):
    checkpoint, file = train(toy, tmp_path / "run"), histories_of(toy, tmp_path / "histories.csv")
    settings = dict(word[2:].split("=") for word in words)
    settings["rerank_lambda"] = float(settings["rerank_lambda"])
    recommend(checkpoint, tmp_path / "all.parquet", file, k=40, config_dict={"reranker": "none"}, show_progress=False)
    recommend(checkpoint, tmp_path / "expected.parquet", file, k=10, config_dict=settings, show_progress=False)
    genres = pd.read_csv(toy / "toy" / "toy.item", sep="\t", names=["item", "categories"], header=0, keep_default_na=False)
    genres.assign(categories=genres["categories"].str.split()).to_parquet(tmp_path / "items.parquet")
    files = [f"--candidates={tmp_path / 'all.parquet'}", f"--items={tmp_path / 'items.parquet'}", f"--histories={file}"]
    assert main(["rerank", *files, f"--out={tmp_path / 'lists.parquet'}", "--k=10", "--show_progress=False", *words]) == 0
    expected, lists = (pd.read_parquet(tmp_path / f"{name}.parquet") for name in ("expected", "lists"))
    pd.testing.assert_frame_equal(
        lists.sort_values(["user", "rank"], ignore_index=True),
        expected.sort_values(["user", "rank"], ignore_index=True),
        rtol=1e-6,
    )


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("part", [10**9, 100])
def test_files_in_any_order_and_form_give_the_same_lists(tmp_path, monkeypatch, kind, part):
    monkeypatch.setattr("recbole_leaprec.recommend.rerank_file.PART", part)
    candidates, items, histories = tables()
    expected = rerank_frame(candidates, items, histories, Reranking("leaprec", 0.6), k=5)
    shuffled = candidates.sample(frac=1, random_state=1)
    events = histories.explode("items").rename(columns={"items": "item"})
    events = events.assign(timestamp=range(1_600_000_000, 1_600_000_000 + len(events))).sample(frac=1, random_state=2)
    if kind == "csv":
        items = items.assign(categories=items["categories"].map("|".join))
    for name, frame in (("c", shuffled), ("i", items), ("h", events)):
        path = tmp_path / f"{name}.{kind}"
        frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    files = [tmp_path / f"{name}.{kind}" for name in "cih"]
    done = rerank_file(*files, tmp_path / "lists.parquet", Reranking("leaprec", 0.6), k=5, show_progress=False)
    assert done["users"] == 40
    assert done["skl"] == pytest.approx(expected.loc[expected["rank"] == 1, "skl"].mean())
    lists = pd.read_parquet(tmp_path / "lists.parquet").sort_values(["user", "rank"], ignore_index=True)
    wanted = expected.sort_values(["user", "rank"], ignore_index=True)
    assert lists[["user", "rank", "item"]].to_numpy().tolist() == wanted[["user", "rank", "item"]].to_numpy().tolist()


def odd_tables():
    """What real tables have in them: names with spaces, unknown items, repeated pairs, missing scores, strangers, gaps."""
    candidates, items, histories = tables(users=6)
    odd = pd.DataFrame(
        [
            ("u 0", "item 1", None),
            ("u 1", "unheard", 9.0),
            ("u 1", "unheard", 8.0),
            ("stranger", "item 2", 1.0),
            ("stranger", "item 3", 2.0),
            ("hopeless", "item 3", None),
            (None, "item 3", 1.0),
            ("u 2", None, 1.0),
        ],
        columns=["user", "item", "score"],
    )
    past = pd.DataFrame([("u 3", ["gone", "item 1"]), ("elsewhere", ["item 1"])], columns=["user", "items"])
    return pd.concat([candidates, odd]), items, pd.concat([histories, past])


def check_odd(lists):
    assert set(lists["user"]) == {*(f"u {u}" for u in range(6)), "stranger"}
    stranger = lists[lists["user"] == "stranger"]
    assert stranger["item"].tolist() == ["item 3", "item 2"]
    assert stranger["skl"].isna().all()
    unheard = lists[lists["item"] == "unheard"]
    assert unheard["user"].tolist() == ["u 1"]
    assert unheard["score"].tolist() == [9.0]


TOLD = [
    "1 candidates repeat a user and an item; the one with the highest score counts",
    "2 candidates have no score and were left out",
    "1 users have no candidate with a score and got no list",
    "1 items have no row among the items and count as items without a category",
    "1 items of histories have no row among the items and were skipped",
    "1 users have no history of known items and got the highest scores, without an S_KL",
]


def test_odd_candidates_are_told_and_counted_and_no_user_is_lost():
    counts = Counts()
    lists = rerank_frame(*odd_tables(), k=4, counts=counts)
    assert (counts.users, counts.unknown_items) == (7, {"unheard"})
    check_odd(lists)
    assert counts.told() == ["2 rows lack a user, an item or a time and were left out", *TOLD]
    skl = lists.loc[lists["rank"] == 1, "skl"]
    assert counts.calibrated == skl.notna().sum() == 6
    assert counts.mean_skl == pytest.approx(skl.mean(), rel=1e-12)
    assert Counts().mean_skl is None


@pytest.mark.parametrize(
    ("kind", "engine"), [("csv", "local"), ("parquet", "local"), pytest.param("parquet", "ray", marks=pytest.mark.ray)]
)
def test_odd_files_are_told_and_counted_and_no_user_is_lost(tmp_path, monkeypatch, capsys, kind, engine):
    monkeypatch.setattr("recbole_leaprec.recommend.rerank_file.PART", 50)
    candidates, items, histories = odd_tables()
    if kind == "csv":  # where spaces stand between items, so that an event is a row
        items = items.assign(categories=items["categories"].map("|".join))
        histories = histories.explode("items").rename(columns={"items": "item"})
        histories = histories.assign(timestamp=range(1, 1 + len(histories)))
    words = write(tmp_path, kind, candidates=candidates, items=items, histories=histories)
    words += [f"--out={tmp_path / 'lists.parquet'}", "--k=4", "--show_progress=False", f"--engine={engine}"]
    assert main(["rerank", *words]) == 0
    check_odd(pd.read_parquet(tmp_path / "lists.parquet"))
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith(f"2 lines of candidates.{kind} left out as unreadable: a line: no user in row")
    assert told[1:-1] == TOLD
    assert told[-1].startswith("7 lists at lambda 0.3 in ")
    expected = rerank_frame(*odd_tables(), k=4).sort_values(["user", "rank"], ignore_index=True)
    lists = pd.read_parquet(tmp_path / "lists.parquet").sort_values(["user", "rank"], ignore_index=True)
    pd.testing.assert_frame_equal(lists, expected, check_dtype=False, rtol=1e-6)


def test_nan_in_the_place_of_an_item_is_no_item(tmp_path, capsys):
    """Parquet files can hold nan, which is not missing to Arrow. It became the item with the number 0, and a division by zero."""
    candidates = pa.table({"user": ["u"] * 3, "item": [1.0, np.nan, np.inf], "score": [1.0, 3.0, 2.0]})
    pq.write_table(candidates, tmp_path / "c.parquet")
    pq.write_table(pa.table({"item": [1.0, np.nan], "categories": ["a", "b"]}), tmp_path / "i.parquet")
    pq.write_table(pa.table({"user": ["u"], "items": ["1"]}), tmp_path / "h.parquet")
    words = [f"--{name}={tmp_path / name[0]}.parquet" for name in ("candidates", "items", "histories")]
    assert main(["rerank", *words, "--k=3", "--rerank_lambda=0", f"--out={tmp_path / 'l.csv'}"]) == 0
    assert pd.read_csv(tmp_path / "l.csv", dtype=str)["item"].tolist() == ["inf", "1"]
    told = capsys.readouterr().out
    assert "1 line of c.parquet left out as unreadable: a line: no item" in told
    assert "1 line of i.parquet left out as unreadable: a line: no item" in told


def test_a_parquet_file_with_texts_that_are_not_utf_8_is_named(tmp_path, capsys):
    """Arrow reads them without a word, and failed much later."""
    bad = pa.StringArray.from_buffers(1, pa.py_buffer(np.array([0, 2], np.int32)), pa.py_buffer(b"u\xff"))
    pq.write_table(pa.table({"user": bad, "item": ["a"], "score": [1.0]}), tmp_path / "c.parquet")
    pq.write_table(pa.table({"item": ["a"], "categories": ["x"]}), tmp_path / "i.parquet")
    pq.write_table(pa.table({"user": ["u"], "items": ["a"]}), tmp_path / "h.parquet")
    words = [f"--{name}={tmp_path / name[0]}.parquet" for name in ("candidates", "items", "histories")]
    assert main(["rerank", *words, f"--out={tmp_path / 'l.csv'}"]) == 2
    told = capsys.readouterr().err.splitlines()[-1]
    assert f"{tmp_path / 'c.parquet'} is damaged" in told
    assert "UTF8" in told
    assert not (tmp_path / "l.csv").exists()


def test_the_highest_score_of_a_repeated_pair_counts_wherever_it_stands():
    candidates, items, histories = tables(users=5)
    again = candidates.sample(frac=3, replace=True, random_state=3)
    both = pd.concat([candidates, again.assign(score=again["score"] + np.random.default_rng(0).normal(size=len(again)))])
    both = both.sample(frac=1, random_state=4)
    best = both.groupby(["user", "item"], sort=False, as_index=False)["score"].max()
    pd.testing.assert_frame_equal(rerank_frame(both, items, histories), rerank_frame(best, items, histories))


def test_equal_scores_are_in_the_order_of_the_items():
    items = pd.DataFrame({"item": list("dbac"), "categories": [["A"]] * 4})
    candidates = pd.DataFrame({"user": ["v", *"uuuu"], "item": list("aabcd"), "score": 1.0})
    lists = rerank_frame(candidates, items, pd.DataFrame({"user": ["u"], "items": ["a"]}))
    assert lists.loc[lists["user"] == "u", "item"].tolist() == list("dbac")


def test_ids_of_any_kind_are_those_of_their_text():
    candidates = pd.DataFrame({"user": [7.0, 7.0, None], "item": [1, 2, 1], "score": ["0.5", "1.5", "1"]})
    items = pd.DataFrame({"item": [1.0, 2.0], "categories": [["A"], ["B"]]})
    histories = pd.DataFrame({"user": pd.Categorical(["7"]), "items": [[1]]})
    lists = rerank_frame(candidates, items, histories, Reranking("leaprec", 0.0))
    assert lists["user"].tolist() == ["7", "7"]
    assert lists["item"].tolist() == ["2", "1"]
    assert lists["skl"].notna().all()


@pytest.mark.parametrize("setting", ["rerank_part.CELLS", "rerank_part.USERS", "deal.ROWS"])
def test_lists_do_not_depend_on_how_much_is_done_at_a_time(tmp_path, monkeypatch, setting):
    candidates, items, histories = tables()
    words = write(tmp_path, "parquet", candidates=candidates, items=items, histories=histories)
    monkeypatch.setattr("recbole_leaprec.recommend.rerank_file.PART", 200)
    for name in ("whole", "pieces"):
        assert main(["rerank", *words, f"--out={tmp_path / name}.csv", "--show_progress=False"]) == 0
        monkeypatch.setattr(f"recbole_leaprec.recommend.{setting}", 7)
    assert (tmp_path / "whole.csv").read_bytes() == (tmp_path / "pieces.csv").read_bytes()


@pytest.mark.parametrize(
    "items", [["item 1"], "  7 item-9\u00a07 ", None, [], ("7", "item 1")], ids=["list", "text", "none", "empty", "pair"]
)
def test_histories_of_every_form_are_read_as_recommend_reads_them(tmp_path, items):
    candidates = pd.DataFrame({"user": "u", "item": ["7", "item-9", "item 1"], "score": [3.0, 2.0, 1.0]})
    catalogue = pd.DataFrame({"item": ["7", "item-9", "item 1"], "categories": [["A"], ["B"], ["C"]]})
    past = pd.DataFrame({"user": ["u"], "items": [items]})
    names = dict(zip(catalogue["item"], (1, 2, 3), strict=True))
    p = sequential_preference(
        [[names[token] for token in split_items(items)]], ItemCategories.from_lists([[], ["A"], ["B"], ["C"]])
    )
    shares = pd.DataFrame({"user": "u", "category": list("ABC"), "share": p[0].tolist()})
    expected = rerank_frame(candidates, catalogue, k=2, preferences=shares)
    words = write(tmp_path, "parquet", candidates=candidates, items=catalogue, histories=past)
    assert main(["rerank", *words, f"--out={tmp_path / 'l.parquet'}", "--k=2", "--show_progress=False"]) == 0
    for lists in (rerank_frame(candidates, catalogue, past, k=2), pd.read_parquet(tmp_path / "l.parquet")):
        pd.testing.assert_frame_equal(lists, expected, check_dtype=False, rtol=1e-6)


def test_settings_out_of_range_are_refused_before_anything_is_read(tmp_path, monkeypatch, capsys):
    candidates, items, histories = tables(users=3)
    words = write(tmp_path, "parquet", candidates=candidates, items=items, histories=histories)
    monkeypatch.setattr(Table, "batches", None)
    assert main(["rerank", *words, f"--out={tmp_path / 'l.csv'}", "--rerank_candidates=5", "--k=10"]) == 2
    assert "candidates must be at least k = 10, got 5" in capsys.readouterr().err


@pytest.mark.ray
def test_ray_finds_the_same_lambda_and_makes_the_same_file_to_the_last_byte(tmp_path, monkeypatch):
    monkeypatch.setattr("recbole_leaprec.recommend.rerank_file.PART", 150)
    words = write(tmp_path, "parquet", **dict(zip(("candidates", "items", "histories"), tables(), strict=True)))
    for engine in ("local", "ray --workers=2"):
        out = f"--out={tmp_path / engine.split()[0]}.parquet"
        rest = [*f"--engine={engine}".split(), "--target_skl=0.6", "--k=5", "--show_progress=False"]
        assert main(["rerank", *words, out, *rest]) == 0
    assert (tmp_path / "ray.parquet").read_bytes() == (tmp_path / "local.parquet").read_bytes()
    assert not list(tmp_path.glob(".*.scratch"))


def test_the_smallest_lambda_that_meets_a_target_is_found(tmp_path):
    candidates, items, histories = tables()
    means = {}
    for lam in (n / 1000 for n in range(0, 1001, 50)):
        lists = rerank_frame(candidates, items, histories, Reranking("leaprec", lam), k=5)
        means[lam] = lists.loc[lists["rank"] == 1, "skl"].mean()
    target = float(means[0.4]) + 1e-9
    for name, frame in (("c", candidates), ("i", items), ("h", histories)):
        frame.to_parquet(tmp_path / f"{name}.parquet")
    words = [f"--{name}={tmp_path / name[0]}.parquet" for name in ("candidates", "items", "histories")]
    assert (
        main(["rerank", *words, f"--out={tmp_path / 'l.csv'}", "--k=5", f"--target_skl={target!r}", "--show_progress=False"])
        == 0
    )
    lists = pd.read_csv(tmp_path / "l.csv")
    assert lists.loc[lists["rank"] == 1, "skl"].mean() <= target
    assert lists.loc[lists["rank"] == 1, "skl"].mean() >= means[0.45] - 1e-9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"candidates": pd.DataFrame({"user": ["a"], "thing": ["x"], "score": [1.0]})},
            "has no column 'item' (--candidates)",
        ),
        ({"items": pd.DataFrame({"item": ["a"], "categories": [[]]})}, "no item has any category"),
        ({"histories": pd.DataFrame({"user": ["a"], "item": ["x"]})}, "has no column 'timestamp' (--histories)"),
        ({"histories": pd.DataFrame({"user": ["a"], "items": [7]})}, "items has values of type int64"),
        ({"histories": pd.DataFrame({"user": ["a"], "items": ["['x']"]})}, "looks like a printed list"),
        ({"candidates": pd.DataFrame({"user": [], "item": [], "score": []})}, "has no rows (--candidates)"),
    ],
)
def test_tables_that_lack_something_are_refused_and_nothing_is_written(tmp_path, capsys, change, message):
    frames = dict(zip(("candidates", "items", "histories"), tables(), strict=True)) | change
    for name, frame in frames.items():
        frame.to_parquet(tmp_path / f"{name}.parquet")
    words = [f"--{name}={tmp_path / name}.parquet" for name in frames]
    assert main(["rerank", *words, f"--out={tmp_path / 'out'}.csv", "--show_progress=False"]) == 2
    assert message in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"{name}.parquet" for name in frames)
