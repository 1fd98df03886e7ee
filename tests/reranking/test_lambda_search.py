"""The smallest lambda that is calibrated enough, against trying every one of them."""

import shutil

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbole_leaprec import evaluate, run_leaprec
from recbole_leaprec.recommend import recommend
from recbole_leaprec.reranking import Reranking
from recbole_leaprec.reranking.lambda_search import smallest_lambda
from tests.toy import SMALL


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(0, 1.2))
def test_the_smallest_of_all_lambdas_is_found_where_skl_falls(drops, target):
    """S_KL as stairs that go down at some lambdas."""

    def skl(lam: float) -> float:
        return 1 - sum(lam >= drop for drop in drops) / len(drops)

    met = [part / 1000 for part in range(1001) if skl(part / 1000) <= target]
    if not met:
        with pytest.raises(ValueError, match="no lambda meets the S_KL"):
            smallest_lambda(lambda lambdas: [skl(lam) for lam in lambdas], target)
        return
    found, reached = smallest_lambda(lambda lambdas: [skl(lam) for lam in lambdas], target)
    assert found == met[0]
    assert reached == skl(found)


@pytest.fixture
def checkpoint(toy, tmp_path):
    settings = {**SMALL, "topk": [10], "data_path": str(toy), "output_dir": str(tmp_path / "run")}
    run_leaprec("SASRecCD", "toy", config_dict=settings)
    return tmp_path / "run" / "model.pth"


def test_evaluation_and_lists_take_the_lambda_that_meets_the_target_on_validation(checkpoint, tmp_path):
    sweep = [Reranking("leaprec", part / 1000) for part in range(0, 1001)]
    valid = evaluate(checkpoint, {"output_dir": str(tmp_path / "valid")}, sweep, split="valid")["rerank"]
    values = [entry["valid"]["skl@10"] for entry in valid]
    target = (values[0] + values[-1]) / 2
    result = evaluate(checkpoint, {"target_skl": target, "output_dir": str(tmp_path / "target")})
    lam = result["rerank"][0]["lambda"]
    assert 0 < lam < 1
    assert values[round(lam * 1000)] <= target < values[round(lam * 1000) - 1]
    recommend(checkpoint, tmp_path / "target.csv", config_dict={"target_skl": target}, show_progress=False)
    recommend(checkpoint, tmp_path / "lambda.csv", config_dict={"rerank_lambda": lam}, show_progress=False)
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "target.csv"), pd.read_csv(tmp_path / "lambda.csv"))


def test_a_target_that_no_lambda_meets_is_an_error_and_leaves_no_lists(checkpoint, tmp_path):
    with pytest.raises(
        ValueError,
        match=r"target_skl, with leaprec on validation: no lambda meets the S_KL of 1e-07; the least is .* at lambda",
    ):
        recommend(checkpoint, tmp_path / "lists.csv", config_dict={"target_skl": 1e-7}, show_progress=False)
    assert not (tmp_path / "lists.csv").exists()


def test_a_model_has_the_lambda_that_its_target_found_and_what_is_asked_for_later_wins(toy, tmp_path):
    settings = {**SMALL, "topk": [10], "data_path": str(toy), "target_skl": 0.3}
    result = run_leaprec("SASRecCD", "toy", config_dict={**settings, "output_dir": str(tmp_path / "run")})
    lam, checkpoint = result["rerank"][0]["lambda"], tmp_path / "run" / "model.pth"
    assert result["target_met"]
    assert lam not in (0, 0.3, 1)
    assert evaluate(checkpoint, {"output_dir": str(tmp_path / "a")})["rerank"][0]["lambda"] == lam
    changed = evaluate(checkpoint, {"rerank_lambda": 0.9, "output_dir": str(tmp_path / "b")})
    assert changed["rerank"][0]["lambda"] == 0.9
    assert evaluate(checkpoint, {"reranker": "none", "output_dir": str(tmp_path / "c")})["rerank"][0]["reranker"] == "none"
    with pytest.raises(ValueError, match="target_skl finds rerank_lambda: give one of them"):
        evaluate(checkpoint, {"rerank_lambda": 0.9, "target_skl": 0.2})
    assert "target_skl: 0.3" in (tmp_path / "run" / "config.yaml").read_text()  # trains the same again
    histories = tmp_path / "histories.csv"
    histories.write_text("user,items\nu1,i1 i2 i3\nu2,i4\n")
    shutil.rmtree(toy / "toy")  # lists need no data, not even for lambda
    recommend(checkpoint, tmp_path / "own.csv", histories, show_progress=False)
    recommend(checkpoint, tmp_path / "lambda.csv", histories, config_dict={"rerank_lambda": lam}, show_progress=False)
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "own.csv"), pd.read_csv(tmp_path / "lambda.csv"))


def test_a_run_whose_target_is_out_of_reach_is_finished_with_the_nearest(toy, tmp_path, caplog):
    settings = {**SMALL, "topk": [10], "data_path": str(toy), "target_skl": 1e-7, "output_dir": str(tmp_path / "run")}
    result = run_leaprec("SASRecCD", "toy", config_dict=settings)
    assert result["target_met"] is False
    assert "no lambda meets the S_KL of 1e-07; the least is" in caplog.text
    assert (tmp_path / "run" / "result.json").is_file()
    recommend(tmp_path / "run" / "model.pth", tmp_path / "lists.csv", show_progress=False)
    assert (tmp_path / "lists.csv").is_file()
