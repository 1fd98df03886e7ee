"""Lists for users: what is in them, files of every kind, and the two engines."""

import math
from itertools import pairwise

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from recbole_leaprec import evaluate, miscalibration, sequential_preference
from recbole_leaprec.config import LeapRecConfig
from recbole_leaprec.data import create_dataset
from recbole_leaprec.quick_start import run_leaprec
from recbole_leaprec.recommend import Recommender, chunk_workers, recommend
from recbole_leaprec.recommend.histories import of_file
from recbole_leaprec.recommend.writer import open_writer
from tests import reference
from tests.toy import SMALL


@pytest.fixture
def trained(toy, tmp_path):
    """A trained model on the toy data, and what it was trained on."""
    settings = {**SMALL, "topk": [10], "data_path": str(toy), "output_dir": str(tmp_path / "run"), "epochs": 2}
    run_leaprec("SASRecCD", "toy", config_dict=settings)
    dataset = create_dataset(LeapRecConfig("SASRecCD", "toy", config_dict={**SMALL, "data_path": str(toy)}))
    dataset.build()
    return tmp_path / "run" / "model.pth", dataset


def histories_of(dataset) -> dict[str, list[str]]:
    tokens, offsets = dataset.field2id_token, dataset.sequences.offsets.tolist()
    items = tokens["item_id"][dataset.sequences.items]
    return {tokens["user_id"][u]: list(items[offsets[u] : offsets[u + 1]]) for u in range(1, dataset.user_num)}


def test_lists_are_whole_and_fresh_and_their_divergence_is_told(trained, tmp_path):
    checkpoint, dataset = trained
    summary = recommend(checkpoint, tmp_path / "lists.parquet", k=5, show_progress=False)
    lists = pd.read_parquet(tmp_path / "lists.parquet")
    histories = histories_of(dataset)
    assert summary["users"] == len(histories) == lists["user"].nunique()
    assert summary["unknown_items"] == summary["empty_histories"] == 0
    genres = {dataset.field2id_token["item_id"][i]: row for i, row in enumerate(reference.rows(dataset.categories))}
    ids = dataset.field2token_id["item_id"]
    for user, rows in lists.groupby("user", sort=False):
        assert rows["rank"].tolist() == [1, 2, 3, 4, 5]
        assert rows["item"].nunique() == 5
        assert not set(rows["item"]) & set(histories[user])
        assert set(rows["item"]) <= set(genres)
        p = sequential_preference([[ids[item] for item in histories[user]]], dataset.categories, 0.9)
        skl = miscalibration(p, torch.tensor([[ids[item] for item in rows["item"]]]), dataset.categories)
        assert rows["skl"].tolist() == pytest.approx([skl.item()] * 5)
    assert summary["skl"] == pytest.approx(lists.groupby("user")["skl"].first().mean())


def test_lambda_and_method_can_be_changed(trained, tmp_path):
    checkpoint, _ = trained
    means = []
    for lam in (0.0, 0.9):
        out = tmp_path / f"{lam}.parquet"
        means.append(recommend(checkpoint, out, config_dict={"rerank_lambda": lam}, show_progress=False)["skl"])
    assert means[1] < means[0]
    plain = pd.read_parquet(tmp_path / "0.0.parquet")
    assert plain.groupby("user")["score"].apply(lambda scores: scores.is_monotonic_decreasing).all()
    with pytest.raises(
        ValueError, match="'rerank_lamda' of a trained run cannot be changed here; did you mean 'rerank_lambda'"
    ):
        recommend(checkpoint, tmp_path / "x.csv", config_dict={"rerank_lamda": 0.5})


def test_the_lists_of_the_test_users_are_those_that_evaluation_measures(trained):
    """History without the last item, through the recommender: S_KL and hits as `evaluate` reports them."""
    checkpoint, dataset = trained
    histories = histories_of(dataset)
    frame = pd.DataFrame({"user": list(histories), "items": [items[:-1] for items in histories.values()]})
    lists = Recommender(checkpoint, k=10)(frame)
    expected = evaluate(checkpoint, {"output_dir": str(checkpoint.parent / "again"), "show_progress": False})["rerank"][0][
        "test"
    ]
    hits = [histories[user][-1] in set(rows["item"]) for user, rows in lists.groupby("user")]
    assert sum(hits) / len(hits) == pytest.approx(expected["hit@10"], abs=5e-5)
    assert lists[lists["rank"] == 1]["skl"].mean() == pytest.approx(expected["skl@10"], abs=5e-5)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_new_users_unknown_items_and_empty_histories(trained, tmp_path, suffix):
    checkpoint, dataset = trained
    known = dataset.field2id_token["item_id"][1:4].tolist()
    rows = [("new", f"{known[0]} nonsense {known[1]}"), ("none", "nonsense rubbish"), ("empty", ""), ("other", known[2])]
    frame = pd.DataFrame(rows, columns=["user", "items"])
    path = tmp_path / f"histories.{suffix}"
    frame.to_csv(path, index=False) if suffix == "csv" else frame.assign(items=frame["items"].str.split()).to_parquet(path)
    summary = recommend(checkpoint, tmp_path / "out.csv", histories=path, k=3, show_progress=False)
    assert (summary["users"], summary["unknown_items"], summary["empty_histories"]) == (4, 3, 2)
    lists = pd.read_csv(tmp_path / "out.csv").set_index("user")
    assert list(dict.fromkeys(lists.index)) == ["new", "none", "empty", "other"]
    counts = torch.bincount(create_training_counts(dataset), minlength=dataset.item_num)
    popular = sorted(counts.tolist(), reverse=True)[:3]
    for user in ("none", "empty"):  # the most popular items, and no preference to be far from
        assert lists.loc[user, "score"].tolist() == popular
        assert lists.loc[user, "skl"].isna().all()
    assert not set(lists.loc["new", "item"]) & set(known[:2])
    assert lists.loc["new", "skl"].notna().all()


def create_training_counts(dataset):
    """Items of all interactions but each user's last two."""
    offsets, items = dataset.sequences.offsets.tolist(), dataset.sequences.items
    return torch.cat([items[begin : end - 2] for begin, end in pairwise(offsets) if end > begin])


def test_a_trec_run_sorts_into_the_order_of_the_lists(trained, tmp_path):
    checkpoint, _ = trained
    recommend(trained[0], tmp_path / "run.trec", k=4, show_progress=False)
    recommend(checkpoint, tmp_path / "lists.parquet", k=4, show_progress=False)
    lists = pd.read_parquet(tmp_path / "lists.parquet")
    run = pd.read_csv(tmp_path / "run.trec", sep=" ", names=["user", "q0", "item", "rank", "score", "tag"])
    assert set(run["q0"]) == {"Q0"}
    assert set(run["tag"]) == {"leaprec"}
    assert run[["user", "item", "rank"]].values.tolist() == lists[["user", "item", "rank"]].values.tolist()
    by_score = run.sort_values(["user", "score"], ascending=[True, False], kind="stable")
    assert (by_score.groupby("user")["rank"].diff().dropna() == 1).all()


def test_scores_of_a_trec_run_fall_from_rank_to_rank_however_long_a_list_is(tmp_path):
    ranks = [*range(1, 5001), 10**6, 10**6 + 1, 2**31 - 2, 2**31 - 1]
    rows = pd.DataFrame({"user": "u", "rank": ranks, "item": [f"i{rank}" for rank in ranks], "score": 0.0, "skl": 0.0})
    with open_writer(tmp_path / "run.trec") as writer:
        writer.write(rows)
    scores = [float(line.split()[4]) for line in (tmp_path / "run.trec").read_text().splitlines()]
    assert all(first > second > 0 for first, second in pairwise(scores))


@pytest.mark.parametrize("name", ["a b", "a\nb", "a\tb", "a\r", "a\u2028b", "\u00a0"])
def test_a_trec_run_refuses_names_with_spaces_or_line_breaks_of_users_and_of_items(trained, tmp_path, name):
    """Issue 21, 2: refused, and not encoded."""
    pd.DataFrame({"user": ["a", name], "items": ["i1 i2", "i1"]}).to_parquet(tmp_path / "h.parquet")
    with pytest.raises(ValueError, match="a TREC run cannot hold"):
        recommend(trained[0], tmp_path / "run.trec", tmp_path / "h.parquet", show_progress=False)
    rows = pd.DataFrame({"user": "a", "rank": [1], "item": name, "score": 1.0, "skl": 0.0})
    with pytest.raises(ValueError, match="a TREC run cannot hold"), open_writer(tmp_path / "run.trec") as writer:
        writer.write(rows)
    assert [path.name for path in tmp_path.glob("run.trec*")] == []


@pytest.mark.ray
def test_ray_makes_the_same_file_to_the_last_byte(trained, tmp_path, monkeypatch):
    checkpoint, _ = trained
    monkeypatch.setattr(chunk_workers, "CHUNK", 2)
    monkeypatch.setattr(chunk_workers, "BATCH", 4)
    for engine in ("local", "ray"):
        for suffix in ("parquet", "csv"):
            out = tmp_path / f"{engine}.{suffix}"
            recommend(checkpoint, out, engine=engine, workers=2 if engine == "ray" else None, show_progress=False)
    for suffix in ("parquet", "csv"):
        assert (tmp_path / f"ray.{suffix}").read_bytes() == (tmp_path / f"local.{suffix}").read_bytes()
    assert not list(tmp_path.glob(".*.scratch"))


def test_row_groups_are_even_however_rows_come(tmp_path, monkeypatch):
    monkeypatch.setattr("recbole_leaprec.recommend.writer.ROWS", 10)
    files = []
    for step in (1, 7, 23, 100):
        rows = pd.DataFrame({"user": [f"u{n}" for n in range(47)], "rank": 1, "item": "i", "score": 0.5, "skl": math.nan})
        path = tmp_path / f"{step}.parquet"
        with open_writer(path) as writer:
            for start in range(0, 47, step):
                writer.write(rows.iloc[start : start + step])
        files.append(path.read_bytes())
        assert pq.ParquetFile(path).num_row_groups == 5
        assert pd.read_parquet(path)["user"].tolist() == rows["user"].tolist()
    assert len(set(files)) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"out": "lists.txt"}, "--out must end in .parquet, .csv, .trec"),
        ({"out": "nowhere/lists.csv"}, "there is no folder"),
        ({"histories": "nothing.csv"}, "histories file nothing.csv does not exist"),
        ({"engine": "spark"}, "unknown engine 'spark'"),
        ({"k": 0}, "k must be a whole number, 1 or more, got 0"),
        ({"k": 41}, "k must not exceed the number of items, 40, got 41"),
        ({"checkpoint": "nothing.pth"}, "checkpoint nothing.pth does not exist"),
        ({"config_dict": {"topk": [20]}}, "topk: k says how long the lists are"),
        ({"config_dict": {"metrics": ["Hit"]}}, "'metrics' of a trained run cannot be changed here"),
        ({"workers": 2}, "workers is for --engine=ray, got 2"),
        (
            {"config_dict": {"preference_history": "training"}},
            "preference_history and mask_history: training are for evaluation",
        ),
    ],
)
def test_bad_arguments_are_refused_and_nothing_is_written(trained, tmp_path, changes, message, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ValueError, match=message):
        recommend(**{"checkpoint": trained[0], "out": "lists.csv", **changes})
    assert sorted(tmp_path.iterdir()) == before


def test_a_histories_file_needs_its_two_columns(trained, tmp_path):
    (tmp_path / "bad.csv").write_text("person,items\n1,2\n")
    with pytest.raises(ValueError, match="has no column user; it has person, items"):
        recommend(trained[0], tmp_path / "lists.csv", histories=tmp_path / "bad.csv")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a,i1 i2\nb,\"['i1', 'i2']\"", "looks like a printed list: write the item tokens with spaces"),
        (",i1 i2", "has a row without a user"),
    ],
)
def test_a_histories_file_that_makes_no_sense_is_refused_and_leaves_nothing(trained, tmp_path, rows, message):
    (tmp_path / "bad.csv").write_text(f"user,items\n{rows}\n")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ValueError, match=message):
        recommend(trained[0], tmp_path / "lists.csv", histories=tmp_path / "bad.csv", show_progress=False)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("twice", ["user", "items", "leave_out"])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_two_columns_of_one_name_in_a_histories_file_are_refused(trained, tmp_path, twice, suffix):
    """Issue 21, 8."""
    names = ["user", "items", "leave_out", twice]
    if suffix == "csv":
        (tmp_path / "h.csv").write_text(f"{','.join(names)}\nu,i1,i2,i3\n")
    else:
        pq.write_table(pa.Table.from_arrays([pa.array(["i1"])] * 4, names=names), tmp_path / "h.parquet")
    with pytest.raises(ValueError, match=rf"h\.{suffix}: there are two columns '{twice}'"):
        recommend(trained[0], tmp_path / "lists.csv", tmp_path / f"h.{suffix}", show_progress=False)
    assert not (tmp_path / "lists.csv").exists()


@pytest.mark.parametrize("column", ["items", "leave_out"])
def test_times_in_the_place_of_items_are_refused(trained, tmp_path, column):
    times = pa.array([1], pa.timestamp("ns"))
    columns = {"user": ["u"], "items": ["i1"], "leave_out": ["i2"], column: times}
    pq.write_table(pa.table(columns), tmp_path / "h.parquet")
    with pytest.raises(ValueError, match=rf"h\.parquet: {column} has values of type timestamp\[ns\]"):
        recommend(trained[0], tmp_path / "lists.csv", tmp_path / "h.parquet", show_progress=False)


@pytest.mark.parametrize("before", [0, 200_000])
def test_histories_that_are_not_utf_8_are_named_wherever_that_is(tmp_path, before):
    """Issue 21, 8; pyarrow reads a megabyte at a time, and the first is looked at before all others."""
    (tmp_path / "h.csv").write_bytes(b"user,items\n" + b"u,i1 i2\n" * before + b"v\xff,i1\n")
    with pytest.raises(ValueError, match=r"h\.csv is not a file of histories that can be read: .*UTF8"):
        list(of_file(tmp_path / "h.csv", 100_000))


@pytest.mark.parametrize("option", ["allow", "deny"])
def test_rules_that_are_not_utf_8_are_named(trained, tmp_path, option):
    """Issue 21, 8."""
    (tmp_path / "rules.txt").write_bytes(b"i1\n\xff\n")
    with pytest.raises(ValueError, match=r"rules\.txt is not a text in UTF-8"):
        recommend(trained[0], tmp_path / "lists.csv", **{option: tmp_path / "rules.txt"}, show_progress=False)


def test_a_file_without_any_known_item_is_told(trained, tmp_path, caplog):
    (tmp_path / "odd.csv").write_text('user,items\na,"1,2"\n')
    result = recommend(trained[0], tmp_path / "lists.csv", histories=tmp_path / "odd.csv", show_progress=False)
    assert result["empty_histories"] == result["users"] == 1
    assert "is known to the model, whose items are such as 'i" in caplog.text


def test_a_user_without_enough_items_gets_a_shorter_list(trained, tmp_path):
    checkpoint, dataset = trained
    everything = dataset.field2id_token["item_id"][1:-1].tolist()  # all but one item
    pd.DataFrame({"user": ["u"], "items": [everything]}).to_parquet(tmp_path / "h.parquet")
    recommend(checkpoint, tmp_path / "lists.csv", histories=tmp_path / "h.parquet", show_progress=False)
    assert pd.read_csv(tmp_path / "lists.csv")["item"].tolist() == [dataset.field2id_token["item_id"][-1]]


def test_users_who_have_seen_nearly_everything_are_counted_once_in_all(trained, tmp_path, caplog, monkeypatch):
    checkpoint, dataset = trained
    monkeypatch.setattr(chunk_workers, "BATCH", 1)
    items = dataset.field2id_token["item_id"][1:].tolist()
    pd.DataFrame({"user": list("abc"), "items": [items, items[1:], items[:3]]}).to_parquet(tmp_path / "h.parquet")
    result = recommend(checkpoint, tmp_path / "lists.csv", histories=tmp_path / "h.parquet", show_progress=False)
    assert (result["users"], result["without_list"]) == (2, 1)
    warned = [record.getMessage() for record in caplog.records if "fewer than" in record.getMessage()]
    assert warned == ["2 of 3 users have fewer than 10 items to recommend: 1 lists are shorter, and 1 users have none"]


def test_the_most_popular_items_are_items_and_in_a_fixed_order(trained, tmp_path):
    checkpoint, dataset = trained
    (tmp_path / "new.csv").write_text("user,items\na,\n")
    k = dataset.item_num - 1
    recommend(checkpoint, tmp_path / "lists.csv", histories=tmp_path / "new.csv", k=k, show_progress=False)
    table = pd.read_csv(tmp_path / "lists.csv")
    assert table["rank"].tolist() == list(range(1, k + 1))
    ids = [dataset.field2token_id["item_id"][item] for item in table["item"]]
    assert sorted(ids) == list(range(1, k + 1))
    assert ids == sorted(ids, key=lambda item: (-table["score"][ids.index(item)], item))


def test_a_pair_is_a_history_and_a_number_is_none(trained, tmp_path):
    histories = {"user": ["a", "b"], "items": [["i1", "i2"], ["i2", "i3"]]}
    schema = pa.schema([("user", pa.string()), ("items", pa.list_(pa.string(), 2))])
    pq.write_table(pa.table(histories, schema), tmp_path / "pairs.parquet")
    recommend(trained[0], tmp_path / "pairs.csv", histories=tmp_path / "pairs.parquet", show_progress=False)
    pd.DataFrame({"user": ["a", "b"], "items": [1.5, None]}).to_parquet(tmp_path / "odd.parquet")
    with pytest.raises(ValueError, match=r"the history 1\.5 is a number: it must hold the item tokens"):
        recommend(trained[0], tmp_path / "lists.csv", histories=tmp_path / "odd.parquet", show_progress=False)
    pd.DataFrame({"user": ["a", "a"], "items": [1, 2]}).to_parquet(tmp_path / "long.parquet")
    with pytest.raises(
        ValueError, match=r"items has values of type int64; it needs .*, a row for each user and not for each item"
    ):
        recommend(trained[0], tmp_path / "lists.csv", histories=tmp_path / "long.parquet")
