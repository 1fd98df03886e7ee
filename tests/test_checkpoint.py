"""Checkpoints: plain, whole, and only for the data they belong to."""

import shutil

import pytest
import torch

from recbole_leaprec import evaluate, run_leaprec
from recbole_leaprec.checkpoint import load_checkpoint
from tests.conftest import SMALL, write_dataset


@pytest.fixture
def run(toy, tmp_path):
    """The folder of a finished run on the toy data."""
    result = run_leaprec(
        "SASRecCD", "toy", config_dict={**SMALL, "data_path": str(toy), "output_dir": str(tmp_path / "run")}
    )
    return tmp_path / "run", result


def test_a_checkpoint_holds_tensors_and_plain_values_only(run):
    folder, _ = run
    content = torch.load(folder / "model.pth", weights_only=True)
    assert content["config"]["model"] == "SASRecCD"
    assert not list(folder.glob("*.part"))


def test_evaluate_gives_the_figures_of_the_run_again(run, tmp_path):
    folder, result = run
    again = evaluate(folder / "model.pth", {"output_dir": str(tmp_path / "again")})
    assert again["backbone"]["test"] == result["backbone"]["test"]
    assert again["rerank"][0]["test"] == result["rerank"][0]["test"]
    assert sorted(file.name for file in (tmp_path / "again").iterdir()) == [
        "config.yaml",
        "evaluate.log",
        "result.json",
        "tensorboard",
    ]


def test_evaluate_takes_another_reranker_list_length_and_metric(run, tmp_path):
    folder, _ = run
    changes = {"reranker": "none", "topk": [3], "metrics": ["MRR", "SKL"], "output_dir": str(tmp_path / "again")}
    again = evaluate(folder / "model.pth", changes)
    assert set(again["backbone"]["test"]) == {"mrr@3", "skl@3"}
    assert again["rerank"][0]["test"] == again["backbone"]["test"]


@pytest.mark.parametrize("write", [
    lambda path: path.write_text("not a checkpoint"),
    lambda path: path.write_bytes(b""),
    lambda path: torch.save({"state_dict": {}}, path),
    lambda path: torch.save([1, 2], path),
    lambda path: torch.save({"config": pytest.approx(1)}, path),
])  # fmt: skip
def test_other_files_are_not_taken_for_checkpoints(tmp_path, write):
    write(tmp_path / "model.pth")
    with pytest.raises(ValueError, match=r"model.pth is not a checkpoint of this plugin"):
        load_checkpoint(tmp_path / "model.pth")


def test_a_checkpoint_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"nowhere.pth does not exist"):
        load_checkpoint(tmp_path / "nowhere.pth")


def test_a_run_that_no_longer_fits_its_dataset_is_refused_and_nothing_written(run, toy, tmp_path):
    folder, _ = run
    shutil.rmtree(toy / "toy")
    write_dataset(toy, [("u", item, t) for t, item in enumerate("abcdefghijklmn")], dict.fromkeys("abcdefghijklmn", "Drama"))
    with pytest.raises(
        ValueError, match=r"trained on another state of dataset 'toy': users 30 then, 1 now; items 40 then, 14 now"
    ):
        evaluate(folder / "model.pth", {"output_dir": str(tmp_path / "again")})
    assert not (tmp_path / "again").exists()


def test_evaluate_cannot_change_the_model(run):
    folder, _ = run
    with pytest.raises(ValueError, match="evaluate cannot change 'hidden_size'"):
        evaluate(folder / "model.pth", {"hidden_size": 16})
    with pytest.raises(ValueError, match=r"evaluate cannot change 'rerank_lamda'; did you mean 'rerank_lambda'\?"):
        evaluate(folder / "model.pth", {"rerank_lamda": 0.5})
