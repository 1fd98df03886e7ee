"""Curves, intervals and the shift of categories, against plain computations."""

import math
import random
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import yaml

from recbole_leaprec import ItemCategories, evaluate, run_leaprec
from recbole_leaprec.analysis import category_shift as category_shift_module
from recbole_leaprec.analysis import significance
from recbole_leaprec.analysis.category_shift import category_shift
from recbole_leaprec.analysis.significance import bootstrap_interval
from recbole_leaprec.analysis.tradeoff import tradeoff
from recbole_leaprec.cli import main
from recbole_leaprec.evaluator.per_user import METRICS
from recbole_leaprec.evaluator.resources import USER_METRICS
from recbole_leaprec.reranking import Reranking
from recbole_leaprec.run import trained_run
from tests import reference
from tests.toy import SMALL, write_dataset


def test_bootstrap_means_are_those_of_resampled_users():
    """An interval for a mean is nearly that of the normal distribution, and covers it as often as it says."""
    random_values = np.random.default_rng(1)
    values = random_values.normal([[0.0, 5.0]], [[1.0, 2.0]], size=(400, 2))
    low, high = bootstrap_interval(values, samples=4000)
    error = values.std(0) / math.sqrt(400)
    assert low == pytest.approx(values.mean(0) - 1.96 * error, abs=0.1 * error.max())
    assert high == pytest.approx(values.mean(0) + 1.96 * error, abs=0.1 * error.max())
    covered = 0
    for _ in range(200):
        low, high = bootstrap_interval(random_values.normal(size=(100, 1)), samples=300)
        covered += low[0] <= 0 <= high[0]
    assert 0.88 <= covered / 200 <= 0.99


@pytest.mark.parametrize("chunk", [7, 2**22])
def test_bootstrap_by_hand_on_a_few_users(monkeypatch, chunk):
    monkeypatch.setattr(significance, "_CHUNK", chunk)
    values = np.array([[1.0], [2.0], [6.0]])
    rows, generator = max(1, chunk // 3), np.random.default_rng(0)
    drawn = np.concatenate([generator.integers(3, size=(min(rows, 50 - n), 3)) for n in range(0, 50, rows)])
    means = [np.mean([values[user, 0] for user in row]) for row in drawn]
    low, high = bootstrap_interval(values, samples=50, level=0.8)
    assert low[0] == pytest.approx(np.quantile(means, 0.1))
    assert high[0] == pytest.approx(np.quantile(means, 0.9))


def test_figures_are_resampled_alike():
    values = np.random.default_rng(2).normal(size=(50, 1))
    low, high = bootstrap_interval(np.concatenate([values, values + 1], 1), samples=200)
    assert low[1] - low[0] == pytest.approx(1)
    assert high[1] - high[0] == pytest.approx(1)


@pytest.mark.parametrize("at_once", [1, 60, 2**22])
def test_shift_is_the_divergence_between_windows_that_far_apart(monkeypatch, at_once):
    monkeypatch.setattr(category_shift_module, "_AT_ONCE", at_once)
    draw = random.Random(3)
    names = ["a", "b", "c"]
    lists = [[], *([name for name in names if draw.random() < 0.5] for _ in range(12))]
    categories = ItemCategories(names, [[names.index(name) for name in own] for own in lists])
    rows = [reference.distribution(own, names) if number else [0.0] * 3 for number, own in enumerate(lists)]
    histories = [[draw.randrange(1, 13) for _ in range(length)] for length in (0, 4, 9, 15, 30)]
    items = torch.tensor([item for history in histories for item in history])
    offsets = torch.tensor([0, *np.cumsum([len(history) for history in histories]).tolist()])
    window, intervals = 4, [0, 1, 5, 11, 40]
    table = category_shift(items, offsets, categories, intervals, window, beta=0.05)
    for interval, (_, row) in zip(intervals, table.iterrows(), strict=True):
        means = []
        for history in histories:
            pairs = []
            for start in range(len(history) - window - interval + 1):
                q, p = (
                    reference.mean([rows[item] for item in history[at : at + window]], 3) for at in (start, start + interval)
                )
                pairs.append(reference.kl(p, q, 0.05))
            if pairs:
                means.append(sum(pairs) / len(pairs))
        assert row["users"] == len(means)
        if means:
            assert row["kl"] == pytest.approx(sum(means) / len(means), abs=1e-9)
        else:
            assert math.isnan(row["kl"])


def test_windows_of_the_same_mix_have_a_shift_of_0_and_no_rounding_noise():
    """Issue 21, from the newcomer's list: short histories had nothing but noise of 1e-16 in their picture."""
    categories = ItemCategories(["a", "b", "c"], [[], [0], [0, 1], [0, 1, 2], [2]])
    items = torch.tensor([1, 2, 3, 4] * 5 + [3, 3, 4, 1, 1])
    table = category_shift(items, torch.tensor([0, 20, 25]), categories, [0, 4, 1], 4)
    assert table["kl"].tolist()[:2] == [0, 0]
    assert table["kl"].tolist()[2] > 1e-3


@pytest.fixture
def checkpoint(toy, tmp_path):
    settings = {**SMALL, "topk": [5, 10], "data_path": str(toy), "output_dir": str(tmp_path / "run")}
    run_leaprec("SASRecCD", "toy", config_dict=settings)
    return tmp_path / "run" / "model.pth"


@pytest.mark.parametrize("k", [5, 10])
def test_the_means_over_users_are_the_metrics(checkpoint, tmp_path, k):
    with trained_run(checkpoint, {"topk": [k], "output_dir": str(tmp_path / "again")}) as (run, trainer):
        for one in trainer.evaluate_rerankings(run.test_data, [Reranking(), Reranking("leaprec", 0.7)], per_user=True):
            means = one.struct.get(USER_METRICS).mean(0).tolist()
            assert {f"{name}@{k}": round(mean, 4) for name, mean in zip(METRICS, means, strict=True)} == one.metrics


def test_a_curve_has_a_row_for_every_lambda_and_the_figures_of_evaluate(checkpoint, tmp_path):
    folder = tmp_path / "curve"
    table = tradeoff(folder, [checkpoint], ["leaprec", "setwise"], [0.2, 0.9], samples=100, show_progress=False)
    assert table[["reranker", "lambda"]].to_numpy().tolist() == [
        ["none", 0.0], ["leaprec", 0.2], ["leaprec", 0.9], ["setwise", 0.2], ["setwise", 0.9],
    ]  # fmt: skip
    asked = [Reranking("leaprec", 0.2), Reranking("leaprec", 0.9), Reranking("setwise", 0.2), Reranking("setwise", 0.9)]
    result = evaluate(checkpoint, {"output_dir": str(tmp_path / "again")}, asked)
    expected = [result["backbone"]["test"], *(entry["test"] for entry in result["rerank"])]
    for metric in ("hit@10", "ndcg@10", "skl@10", "ckl@10"):
        assert table[metric].tolist() == pytest.approx([metrics[metric] for metrics in expected], abs=6e-5)
        assert (table[f"{metric}_low"] <= table[metric]).all()
        assert (table[metric] <= table[f"{metric}_high"]).all()
    pd.testing.assert_frame_equal(pd.read_csv(folder / "tradeoff.csv"), table)
    assert (folder / "tradeoff.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (folder / "tradeoff.svg").read_text()
    with pytest.raises(ValueError, match=r"holds a tradeoff\.csv already"):
        tradeoff(folder, [checkpoint])


def test_models_with_another_preference_are_drawn_together_only_if_told_one_for_all(checkpoint, toy, tmp_path):
    settings = {**SMALL, "topk": [5, 10], "alpha": 1.0, "data_path": str(toy), "output_dir": str(tmp_path / "static")}
    run_leaprec("SASRecCD", "toy", config_dict=settings)
    both, folder = [checkpoint, tmp_path / "static" / "model.pth"], tmp_path / "both"
    with pytest.raises(
        ValueError, match=r"alpha must be the same for all, got 0\.9 \(.*run.*\) and 1\.0 \(.*static.*\); what is given"
    ):
        tradeoff(folder, both, ["leaprec"], [0.5])
    assert not folder.exists()
    with pytest.raises(ValueError, match=r"alpha .* must be a number in \(0, 1\], got \[0\.9\]"):
        tradeoff(folder, both, ["leaprec"], [0.5], config_dict={"alpha": [0.9]})
    table = tradeoff(folder, both, ["leaprec"], [0.5], config_dict={"alpha": 0.9}, samples=20, show_progress=False)
    assert len(table) == 4


def test_the_command_trains_first_without_a_checkpoint_and_takes_several(tmp_path, monkeypatch, capsys):
    inter = [(f"u{u}", f"i{(u * 3 + t) % 12}", t) for u in range(12) for t in range(6)]
    write_dataset(tmp_path / "data", inter, {f"i{n}": "ab"[n % 2] for n in range(12)})
    monkeypatch.chdir(tmp_path)
    keys = ["--dataset=toy", "--data_path=data", "--category_field=genre", "--epochs=1", "--topk=3", "--valid_metric=NDCG@3",
            "--hidden_size=8", "--config_files=quiet.yaml", "--use_gpu=False"]  # fmt: skip
    Path("quiet.yaml").write_text("show_progress: False\n")
    assert main(["tradeoff", "--output_dir=one", "--rerankers=leaprec", "--lambdas=0:1:0.5", "--samples=20", *keys]) == 0
    shown = capsys.readouterr()
    assert "SASRecCD" in shown.out
    assert not {"training:", "evaluating:"} & {*shown.err.split()}  # before, such a line of a file did nothing
    assert yaml.safe_load(Path("one/evaluation-0/config.yaml").read_text())["use_gpu"] is False  # as in training
    shutil.copy("one/model/model.pth", "other.pth")
    both = "one/model/model.pth,other.pth"
    assert (
        main(
            [
                "tradeoff",
                f"--checkpoint={both}",
                "--output_dir=two",
                "--lambdas=0.3",
                "--samples=20",
                "--show_progress=False",
            ]
        )
        == 0
    )
    table = pd.read_csv("two/tradeoff.csv")
    assert table["reranker"].tolist() == ["none", "leaprec", "calirec", "calirec_plus"] * 2


def test_the_shift_of_a_dataset_is_written_and_drawn(toy, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    keys = [f"--data_path={toy}", "--dataset=toy", "--category_field=genre"]
    assert main(["shift", "--window=3", "--longest=6", "--step=2", "--output_dir=out", *keys]) == 0
    table = pd.read_csv("out/shift.csv")
    assert table["interval"].tolist() == [0, 2, 4, 6]
    assert table["kl"][0] == pytest.approx(0, abs=1e-9)
    assert (table["kl"][1:] > 0.1).all()
    assert (tmp_path / "out" / "shift.svg").is_file()
    assert "everything is in out" in capsys.readouterr().out
    assert main(["shift", "--output_dir=out", *keys]) == 2
    assert main(["shift", "--window=0", *keys]) == 2
