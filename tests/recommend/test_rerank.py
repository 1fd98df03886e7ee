"""Candidates of any recommender become calibrated lists: those of `rerank` and of `recommend`."""

import random

import pandas as pd
import pytest
import torch

from recbole_leaprec import ItemCategories, miscalibration, rerank, rerank_frame, sequential_preference
from recbole_leaprec.cli import main
from recbole_leaprec.recommend import recommend
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


def test_odd_candidates_are_told_and_counted_and_no_user_is_lost():
    candidates, items, histories = tables(users=6)
    odd = pd.DataFrame(
        [
            ("u 0", "item 1", None),
            ("u 1", "unheard", 9.0),
            ("u 1", "unheard", 8.0),
            ("stranger", "item 2", 1.0),
            ("stranger", "item 3", 2.0),
        ],
        columns=["user", "item", "score"],
    )
    counts = Counts()
    lists = rerank_frame(pd.concat([candidates, odd]), items, histories, k=4, counts=counts)
    assert (counts.users, counts.repeated, counts.without_score, counts.unknown_items) == (7, 1, 1, {"unheard"})
    assert counts.without_history == 1
    assert set(lists["user"]) == {*(f"u {u}" for u in range(6)), "stranger"}
    stranger = lists[lists["user"] == "stranger"]
    assert stranger["item"].tolist() == ["item 3", "item 2"]
    assert stranger["skl"].isna().all()
    assert len(counts.told()) == 4


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
