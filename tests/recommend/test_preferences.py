"""Preferences as a table, in the place of histories."""

import re

import numpy as np
import pandas as pd
import pytest

from recbole_leaprec import ItemCategories, rerank_frame, sequential_preference
from recbole_leaprec.cli import main
from recbole_leaprec.recommend.rerank_part import Counts
from recbole_leaprec.reranking import Reranking
from tests.recommend.test_rerank import tables, write


def shares_of(items, histories, alpha):
    """The preference of each history, a row per category that has a share."""
    ids = {token: number for number, token in enumerate(items["item"], 1)}
    categories = ItemCategories.from_lists([[], *items["categories"]])
    p = sequential_preference([[ids[item] for item in past] for past in histories["items"]], categories, alpha)
    rows = [
        (user, name, share)
        for user, own in zip(histories["user"], p.tolist(), strict=True)
        for name, share in zip(categories.names, own, strict=True)
        if share
    ]
    return pd.DataFrame(rows, columns=["user", "category", "share"])


@pytest.mark.parametrize(("method", "alpha"), [("leaprec", 0.9), ("setwise", 0.9), ("calirec", 1.0), ("mcf", 1.0)])
def test_the_preferences_of_histories_give_the_lists_of_histories(method, alpha):
    candidates, items, histories = tables()
    expected = rerank_frame(candidates, items, histories, Reranking(method, 0.6), k=7, alpha=alpha)
    shares = shares_of(items, histories, alpha)
    lists = rerank_frame(candidates, items, reranking=Reranking(method, 0.6), k=7, preferences=shares)
    pd.testing.assert_frame_equal(lists, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_of_preferences_gives_the_lists_of_histories(tmp_path, monkeypatch, kind):
    monkeypatch.setattr("recbole_leaprec.recommend.rerank_file.PART", 150)
    candidates, items, histories = tables()
    expected = rerank_frame(candidates, items, histories, k=5)
    scale = pd.Series(np.random.default_rng(0).uniform(0.1, 50, len(histories)), histories["user"])
    shares = shares_of(items, histories, 0.9)
    shares["share"] *= shares["user"].map(scale)  # of which each user's sum is made one
    if kind == "csv":
        items = items.assign(categories=items["categories"].map("|".join))
    words = write(tmp_path, kind, candidates=candidates, items=items, preferences=shares.sample(frac=1, random_state=0))
    words += [f"--out={tmp_path / 'lists.parquet'}", "--k=5", "--show_progress=False"]
    assert main(["rerank", *words]) == 0
    lists = pd.read_parquet(tmp_path / "lists.parquet").sort_values(["user", "rank"], ignore_index=True)
    wanted = expected.sort_values(["user", "rank"], ignore_index=True)
    pd.testing.assert_frame_equal(lists, wanted, check_dtype=False, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("engine", ["local", pytest.param("ray", marks=pytest.mark.ray)])
def test_repeated_pairs_add_up_and_users_without_a_preference_are_counted(tmp_path, capsys, engine):
    candidates, items, histories = tables(users=6)
    shares = shares_of(items, histories, 0.9)
    halves = pd.concat([shares, shares.iloc[:3]]).assign(
        share=lambda rows: rows["share"].where(rows.index > 2, rows["share"] / 2)
    )
    halves = halves[halves["user"] != "u 4"]
    halves = halves.assign(share=halves["share"].where(halves["user"] != "u 5", 0.0))
    told = [
        "2 users have no preference and got the highest scores, without an S_KL",
        "3 preferences repeat a user and a category; their shares add up",
    ]
    counts = Counts()
    lists = rerank_frame(candidates, items, k=5, preferences=halves, counts=counts)
    assert counts.told() == told
    expected = rerank_frame(candidates, items, k=5, preferences=shares[~shares["user"].isin(["u 4", "u 5"])])
    pd.testing.assert_frame_equal(lists, expected)
    assert lists[lists["skl"].isna()]["user"].unique().tolist() == ["u 4", "u 5"]
    words = write(tmp_path, "parquet", candidates=candidates, items=items, preferences=halves)
    words += [f"--out={tmp_path / 'lists.parquet'}", "--k=5", "--show_progress=False", f"--engine={engine}"]
    assert main(["rerank", *words]) == 0
    assert capsys.readouterr().out.splitlines()[:-1] == told
    written = pd.read_parquet(tmp_path / "lists.parquet")
    pd.testing.assert_frame_equal(written, expected, check_dtype=False, rtol=1e-6)  # of one part, so in the same order


SPELT = "no item has the category 'Film Noire'; did you mean 'Film Noir'? Write it as the items do, or leave its rows out"


@pytest.mark.parametrize(
    ("category", "share", "message"),
    [
        ("Film Noire", 0.5, SPELT),
        ("Film Noir", -0.5, "user 'u 0' has the share -0.5 of the category 'Film Noir'; each row needs"),
        ("Film Noir", None, "user 'u 0' has the share nan of the category 'Film Noir'; each row needs"),
        ("Film Noir", float("inf"), "user 'u 0' has the share inf of the category 'Film Noir'; each row needs"),
        (None, 0.5, "user 'u 0' has the share 0.5 of the category None; each row needs"),
    ],
)
def test_shares_that_make_no_sense_are_refused_and_nothing_is_written(tmp_path, capsys, category, share, message):
    candidates, items, _ = tables(users=2)
    odd = pd.DataFrame({"user": ["u 1", "u 0"], "category": ["D", category], "share": [1.0, share]})
    with pytest.raises(ValueError, match=re.escape(f"preferences: {message}")):
        rerank_frame(candidates, items, preferences=odd)
    words = write(tmp_path, "parquet", candidates=candidates, items=items, preferences=odd)
    before = sorted(tmp_path.iterdir())
    assert main(["rerank", *words, f"--out={tmp_path / 'out.csv'}", "--show_progress=False"]) == 2
    assert f"preferences.parquet: {message}" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before


def test_histories_or_preferences_and_not_both(tmp_path, capsys):
    candidates, items, histories = tables(users=2)
    shares = shares_of(items, histories, 0.9)
    words = write(tmp_path, "parquet", candidates=candidates, items=items, histories=histories, preferences=shares)
    for chosen, message in (
        (words, "histories or preferences: lists are calibrated to one of the two (--histories, --preferences), got both"),
        (
            words[:2],
            "histories or preferences: lists are calibrated to one of the two (--histories, --preferences), got none of them",
        ),
        ([*words[:2], words[3], "--alpha=0.5"], "alpha makes a preference out of a history"),
        ([*words[:3], "--workers=2"], "workers is for --engine=ray, got 2 with the local engine"),
    ):
        assert main(["rerank", *chosen, f"--out={tmp_path / 'out.csv'}", "--show_progress=False"]) == 2
        assert message in capsys.readouterr().err
    with pytest.raises(ValueError, match="got both"):
        rerank_frame(candidates, items, histories, preferences=shares)
    assert not (tmp_path / "out.csv").exists()
