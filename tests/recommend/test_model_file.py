"""model.pth stands alone: lists come out of it without the data that it was trained on, and after that data has grown."""

import shutil

import pandas as pd
import pytest
import torch

from recbole_leaprec import run_leaprec
from recbole_leaprec.recommend import Recommender, recommend
from recbole_leaprec.settings.model_names import known_models
from tests.model.test_models import NEEDED
from tests.toy import SMALL


def train(toy, folder, model="SASRecCD", **changes):
    settings = {**SMALL, "topk": [10], "epochs": 1, "data_path": str(toy), "output_dir": str(folder), **changes}
    run_leaprec(model, "toy", config_dict={**settings, **NEEDED.get(model.removesuffix("CD"), {})})
    return folder / "model.pth"


def histories(toy, path):
    """All users of the toy data with all that they have, as a file."""
    inter = pd.read_csv(toy / "toy" / "toy.inter", sep="\t", names=["user", "item", "time"], header=0)
    ordered = inter.sort_values("time", kind="stable").groupby("user", sort=False)["item"].agg(" ".join)
    pd.DataFrame({"user": ordered.index, "items": ordered.to_numpy()}).to_csv(path, index=False)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("model", known_models())
def test_lists_of_every_model_need_no_dataset(model, toy, tmp_path):
    checkpoint, file = train(toy, tmp_path / "run", model), histories(toy, tmp_path / "histories.csv")
    before = recommend(checkpoint, tmp_path / "before.csv", file, show_progress=False)
    assert before["users"] == 30
    everyone = recommend(checkpoint, tmp_path / "everyone.csv", show_progress=False)
    assert everyone["skl"] == pytest.approx(before["skl"])
    shutil.rmtree(toy)
    recommend(checkpoint, tmp_path / "after.csv", file, show_progress=False)
    assert (tmp_path / "after.csv").read_bytes() == (tmp_path / "before.csv").read_bytes()
    lists = [
        {user: rows["item"].tolist() for user, rows in pd.read_csv(tmp_path / f"{name}.csv").groupby("user")}
        for name in ("before", "everyone")
    ]
    assert lists[0] == lists[1]


def test_data_may_grow_and_items_that_are_new_are_counted(toy, tmp_path):
    checkpoint = train(toy, tmp_path / "run")
    with open(toy / "toy" / "toy.inter", "a") as inter, open(toy / "toy" / "toy.item", "a") as items:
        inter.writelines(f"new\ti{n}\t{2_000_000_000 + n}\n" for n in range(5))
        inter.write("u1\tunheard\t2000000009\n")
        items.write("unheard\tAction\n")
    done = recommend(checkpoint, tmp_path / "lists.csv", show_progress=False)
    assert done["users"] == 31
    assert done["unknown_items"] == 1
    assert "new" in set(pd.read_csv(tmp_path / "lists.csv")["user"])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_titles_stand_beside_the_ids_where_the_model_has_them(toy, tmp_path, suffix):
    path = toy / "toy" / "toy.item"
    titles = {f"i{n}": f'The "{n}", or\'=x' for n in range(39)}  # the last item has none
    rows = [line.split("\t") for line in path.read_text().splitlines()[1:]]
    path.write_text(
        "\n".join(["item_id:token\tgenre:token_seq\tname:token", *(f"{i}\t{g}\t{titles.get(i, '')}" for i, g in rows)])
        + "\n"
    )
    checkpoint = train(toy, tmp_path / "run", title_field="name")
    shutil.rmtree(toy)
    file = tmp_path / "histories.csv"
    file.write_text("user,items\nu,i1 i2\nempty,\n")
    read = pd.read_csv if suffix == "csv" else pd.read_parquet
    for wanted in (True, False):
        recommend(checkpoint, tmp_path / f"{wanted}.{suffix}", file, k=38, titles=wanted, show_progress=False)
    lists, plain = (read(tmp_path / f"{wanted}.{suffix}") for wanted in (True, False))
    assert list(lists) == ["user", "rank", "item", "title", "score", "skl"]
    assert lists["title"].tolist() == [titles.get(item, item) for item in lists["item"]]
    pd.testing.assert_frame_equal(lists.drop(columns="title"), plain)


def test_the_file_holds_users_only_where_the_model_embeds_them(toy, tmp_path):
    for model, embeds in (("SASRecCD", False), ("CaserCD", True)):
        content = torch.load(train(toy, tmp_path / model, model), weights_only=True)
        assert (content["serving"]["users"] is not None) == embeds
        assert content["serving"]["names"] is None
        assert len(content["serving"]["items"]) == 41


def test_a_file_of_the_version_before_is_refused_by_name(toy, tmp_path):
    checkpoint = train(toy, tmp_path / "run")
    content = torch.load(checkpoint, weights_only=True)
    del content["serving"]
    torch.save({**content, "format": "recbole-leaprec checkpoint 1"}, checkpoint)
    with pytest.raises(ValueError, match=r"was written by an earlier version, .*: train again"):
        Recommender(checkpoint)


@pytest.mark.parametrize("rules", [("allow",), ("deny",), ("allow", "deny")])
def test_lists_hold_what_is_allowed_and_nothing_that_is_denied(toy, tmp_path, rules):
    checkpoint = train(toy, tmp_path / "run", mask_history=False)
    words = {"allow": [f"i{n}" for n in range(0, 40, 2)] + ["unheard"], "deny": [f"i{n}" for n in range(0, 40, 4)]}
    given = {rule: tmp_path / f"{rule}.txt" for rule in rules}
    for rule, path in given.items():
        path.write_text("\n".join(words[rule]) + "\n\n")
    pd.DataFrame({"user": ["a", "b"], "items": ["i1 i2 i3", "unheard"]}).to_csv(tmp_path / "h.csv", index=False)
    result = recommend(checkpoint, tmp_path / "lists.csv", tmp_path / "h.csv", show_progress=False, **given)
    unheard = ["1 of the 21 items of --allow are unknown to the model"]
    assert result["told"] == (unheard if "allow" in rules else [])
    allowed = set(words["allow"]) if "allow" in rules else {f"i{n}" for n in range(40)}
    allowed -= set(words["deny"]) if "deny" in rules else set()
    lists = pd.read_csv(tmp_path / "lists.csv")
    assert lists.groupby("user").size().to_dict() == {"a": 10, "b": 10}
    assert set(lists["item"]) <= allowed


def test_rules_that_leave_nothing_are_refused(toy, tmp_path):
    checkpoint = train(toy, tmp_path / "run")
    with pytest.raises(ValueError, match="allow and deny leave no item that the model knows"):
        Recommender(checkpoint, allow=["unheard"])
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(ValueError, match=r"empty\.txt holds no item \(--deny\): write one per line"):
        recommend(checkpoint, tmp_path / "lists.csv", deny=tmp_path / "empty.txt", show_progress=False)
    with pytest.raises(ValueError, match="items: none of them is known to the model, whose items are such as 'i"):
        Recommender(checkpoint, categories={"unheard": ["Drama"]})
    some = Recommender(checkpoint, categories={"i1": ["Drama"], "i2": ["War"], "unheard": ["War"]})
    assert some.told == ["38 of the model's 40 items have no row in --items, and so no category"]


def test_a_column_says_what_a_users_list_must_not_hold(toy, tmp_path):
    checkpoint = train(toy, tmp_path / "run")
    frame = pd.DataFrame(
        {"user": ["a", "b", "c"], "items": ["i1 i2", "unheard", "i1 i2"], "leave_out": ["i3 i4 unheard", "i5", None]}
    )
    frame.to_csv(tmp_path / "h.csv", index=False)
    recommend(checkpoint, tmp_path / "all.csv", tmp_path / "h.csv", k=38, show_progress=False)
    lists = pd.read_csv(tmp_path / "all.csv").groupby("user")["item"].agg(set)
    everything = {f"i{n}" for n in range(40)}
    assert lists["a"] == everything - {"i1", "i2", "i3", "i4"}
    assert lists["b"] <= everything - {"i5"}
    assert len(lists["b"]) == 38
    assert lists["c"] == everything - {"i1", "i2"}


def test_categories_can_be_replaced_without_training_again(toy, tmp_path):
    checkpoint = train(toy, tmp_path / "run")
    items = pd.DataFrame(
        {"item": [f"i{n}" for n in range(40)], "categories": [["even" if n % 2 == 0 else "odd number"] for n in range(40)]}
    )
    items.to_parquet(tmp_path / "items.parquet")
    pd.DataFrame({"user": ["a"], "items": ["i0 i2 i4 i6"]}).to_csv(tmp_path / "h.csv", index=False)
    changes = {"reranker": "leaprec", "rerank_lambda": 1.0}
    recommend(
        checkpoint,
        tmp_path / "l.csv",
        tmp_path / "h.csv",
        items=tmp_path / "items.parquet",
        config_dict=changes,
        show_progress=False,
    )
    lists = pd.read_csv(tmp_path / "l.csv")
    assert all(int(item[1:]) % 2 == 0 for item in lists["item"])
    assert lists["skl"].iloc[0] == pytest.approx(0, abs=1e-6)
