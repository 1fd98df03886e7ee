"""Workers on a Ray of their own: they end as one process does, and go on when one is lost."""

import json
import os
import signal
from functools import partial
from pathlib import Path

import pytest

from recbole_leaprec import run_leaprec
from recbole_leaprec.cli import main
from recbole_leaprec.cluster import connected
from recbole_leaprec.parallel.fit import SCRATCH, Workers, fit_in_parallel
from recbole_leaprec.parallel.run import run_in_parallel
from recbole_leaprec.quick_start import resume
from recbole_leaprec.training_state import STATE
from tests.parallel.test_trainer import NO_DROPOUT
from tests.toy import SMALL

pytestmark = pytest.mark.ray


def settings(toy, folder, **changes):
    return {**SMALL, **NO_DROPOUT, "topk": [10], "epochs": 6, "data_path": str(toy), "output_dir": str(folder), **changes}


def measured(folder):
    result = json.loads((folder / "result.json").read_text())
    return [result["backbone"], [entry["test"] for entry in result["rerank"]], result["best_epoch"], result["epochs"]]


def once(marker: Path, at: int, trainer, valid_data, epoch):
    """Die after this epoch, the first time."""
    if epoch == at and not marker.exists():
        marker.write_text("")
        os.kill(os.getpid(), signal.SIGKILL)
    return {"epoch": epoch}


@pytest.mark.slow
def test_an_epoch_without_a_validation_at_the_end_counts(toy, tmp_path):
    changes = {"epochs": 3, "eval_step": 2}
    run_leaprec("SASRecCD", "toy", config_dict=settings(toy, tmp_path / "one", **changes))
    run_in_parallel(config_dict=settings(toy, tmp_path / "two", model="SASRecCD", dataset="toy", **changes), workers=2)
    assert measured(tmp_path / "two") == measured(tmp_path / "one")


@pytest.mark.slow
def test_two_workers_leave_what_one_process_leaves(toy, tmp_path):
    run_leaprec(
        "SASRecCD", "toy", config_dict=settings(toy, tmp_path / "one", metrics=["Hit", "NDCG", "SKL", "ItemCoverage"])
    )
    given = settings(toy, tmp_path / "two", metrics=["Hit", "NDCG", "SKL", "ItemCoverage"], model="SASRecCD", dataset="toy")
    result = run_in_parallel(config_dict=given, workers=2)
    assert measured(tmp_path / "two") == measured(tmp_path / "one")
    assert result["folder"] == str(tmp_path / "two")
    assert {path.name for path in (tmp_path / "two").iterdir()} == {path.name for path in (tmp_path / "one").iterdir()}
    assert "epoch 5 training" in (tmp_path / "two" / "train.log").read_text()


@pytest.mark.slow
def test_a_worker_that_is_lost_costs_time_and_a_training_can_go_on_in_one_process(toy, tmp_path):
    run_leaprec("SASRecCD", "toy", config_dict=settings(toy, tmp_path / "one"))
    with connected():
        for at, epochs in (
            (2, 4),
            (3, 6),
        ):  # the first worker is killed; the second time from the state on that the first one left
            folder, epochs_told = tmp_path / f"two{at}", []
            folder.mkdir()
            config = settings(toy, folder, model="SASRecCD", dataset="toy", epochs=epochs)
            config.pop("output_dir")
            fit_in_parallel(
                config,
                folder,
                Workers(2),
                partial(once, tmp_path / f"marker{at}", at),
                lambda told, seen=epochs_told: seen.append(told["epoch"]),
            )
            assert epochs_told == [epoch for epoch in range(epochs) if epoch != at]  # it was done, and is not done again
            assert (tmp_path / f"marker{at}").exists()
            assert (folder / STATE).is_file()
    (tmp_path / "two3" / "config.yaml").write_text(
        "\n".join(
            f"{key}: {json.dumps(value)}"
            for key, value in settings(toy, "", model="SASRecCD", dataset="toy").items()
            if key != "output_dir"
        )
    )
    resume(tmp_path / "two3")
    assert measured(tmp_path / "two3") == measured(tmp_path / "one")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("no more of this"), "^no more of this$"),
        (KeyError("genre"), "^KeyError 'genre'"),
        (OSError(28, "No space left on device"), "No space left on device$"),
    ],
)
def test_what_is_wrong_is_told_in_the_words_of_the_worker_and_not_tried_again(toy, tmp_path, error, told):
    tries = tmp_path / "tries"

    def fail(trainer, valid_data, epoch):
        with tries.open("a") as file:
            file.write("once ")
        raise error

    (tmp_path / f"{SCRATCH}killed").mkdir()  # by a training that was killed
    config = settings(toy, tmp_path, model="SASRecCD", dataset="toy")
    config.pop("output_dir")
    with connected(), pytest.raises(ValueError, match=told):
        fit_in_parallel(config, tmp_path, Workers(2), fail, print)
    assert tries.read_text() == "once "
    assert not list(tmp_path.glob(f"{SCRATCH}*"))


def test_options_of_workers_are_for_workers(toy, tmp_path, capsys):
    given = [f"--{key}={value}" for key, value in settings(toy, tmp_path / "run").items()]
    assert main([*given, "--dataset=toy", "--workers=2"]) == 2
    assert "workers is for --engine=ray, got 2 with the local engine" in capsys.readouterr().err
    assert main([*given, "--dataset=toy", "--engine=ray", "--workers=1000"]) == 2
    assert "1000 times a worker (workers, cpus_per_worker, gpus_per_worker) is asked for" in capsys.readouterr().err
