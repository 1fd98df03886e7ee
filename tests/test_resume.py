"""A training that was killed goes on where it was, and ends as if nothing had happened."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from recbole_leaprec import run_leaprec
from recbole_leaprec.cli import main
from recbole_leaprec.quick_start import resume
from recbole_leaprec.training_state import STATE
from tests.fuzz.cases import FUZZED
from tests.toy import SMALL

ROOT = Path(__file__).parents[1]
KINDS = {
    "softmax, cosine": ("SASRecCD", {"loss_type": "softmax", "num_negatives": 7, "lr_schedule": "cosine"}),
    "GRU4RecCD": ("GRU4RecCD", {}),
    "weight average": ("SASRecCD", {"weight_average": 0.9}),
    "BERT4RecCD": ("BERT4RecCD", {}),
    "one row per prefix": ("NARMCD", {}),
    "early stopping": ("SASRecCD", {"stopping_step": 1}),
    "every third epoch": ("SASRecCD", {"eval_step": 3}),
}


def settings(toy, folder, **changes):
    metrics = ["Hit", "NDCG", "SKL", "ItemCoverage"]
    return {
        **SMALL,
        "metrics": metrics,
        "topk": [10],
        "epochs": 8,
        "data_path": str(toy),
        "output_dir": str(folder),
        **changes,
    }


def measured(folder):
    result = json.loads((folder / "result.json").read_text())
    return [result["backbone"], [entry["test"] for entry in result["rerank"]], result["best_epoch"], result["epochs"]]


class Killed(Exception):
    pass


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("after", [1, 3, 8])
def test_a_training_that_stops_anywhere_ends_with_the_same_metrics(toy, tmp_path, monkeypatch, kind, after):
    model, changes = KINDS[kind]
    run_leaprec(model, "toy", config_dict=settings(toy, tmp_path / "whole", **changes))

    from recbole_leaprec import run

    saved, calls = run.save_state, []

    def save_and_stop(*arguments):
        saved(*arguments)
        calls.append(arguments)
        if len(calls) == after:
            raise Killed

    monkeypatch.setattr(run, "save_state", save_and_stop)
    try:
        run_leaprec(model, "toy", config_dict=settings(toy, tmp_path / "part", **changes))
    except Killed:
        monkeypatch.setattr(run, "save_state", saved)
        random.seed(5)  # whatever has gone on meanwhile
        resume(tmp_path / "part")
    assert measured(tmp_path / "part") == measured(tmp_path / "whole")
    assert {path.name for path in (tmp_path / "part").iterdir()} == {path.name for path in (tmp_path / "whole").iterdir()}
    assert not (tmp_path / "part" / STATE).exists()


def kill_and_resume(toy, folder, kind, seed, kills=4):
    """Train, kill at moments that the seed draws, go on; returns how often it was killed, and whether the metrics are the same."""
    model, changes = KINDS[kind]
    given = settings(toy, folder / "whole", **changes, epochs=60, stopping_step=60)
    run_leaprec(model, "toy", config_dict=given)
    words = [f"--{key}={value}" for key, value in given.items() if key not in ("output_dir", "metrics")]
    words.append("--metrics=[Hit,NDCG,SKL,ItemCoverage]")
    command, killed, draw = [sys.executable, str(ROOT / "run_leaprec.py")], folder / "killed", random.Random(seed)
    count = 0
    for _ in range(40):
        if (killed / STATE).exists():
            process = subprocess.Popen(
                [*command, f"--resume={killed}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        else:
            start = [f"--model={model}", "--dataset=toy", *words, f"--output_dir={killed}"]
            process = subprocess.Popen([*command, *start], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        before = len(list(killed.glob(STATE)))
        deadline = time.monotonic() + 60
        while process.poll() is None and len(list(killed.glob(STATE))) == before == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        try:
            process.wait(timeout=draw.uniform(0.05, 0.6) + (2.5 if before else 0) if count < kills else 200)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            count += 1
            continue
        if (killed / "result.json").exists():
            break
    return count, measured(killed) == measured(folder / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("number", range(int(os.environ.get("LEAPREC_KILLED_TRAININGS", "1"))))
@pytest.mark.parametrize("kind", ["softmax, cosine", "GRU4RecCD", "BERT4RecCD"])
def test_trainings_that_are_killed_at_random_moments_end_with_the_same_metrics(toy, tmp_path, record_property, kind, number):
    kills, same = kill_and_resume(toy, tmp_path, kind, seed=f"{kind} {number}")
    record_property(FUZZED, f"{kind}, training {number}: {kills} kills")
    assert kills
    assert same


def test_every_epoch_leaves_a_state_with_or_without_a_validation(toy, tmp_path, monkeypatch):
    from recbole_leaprec import run

    saved, epochs = run.save_state, []
    monkeypatch.setattr(run, "save_state", lambda *arguments: (epochs.append(arguments[-1]), saved(*arguments)))
    run_leaprec("SASRecCD", "toy", config_dict=settings(toy, tmp_path / "run", epochs=5, eval_step=2))
    assert epochs == [0, 1, 2, 3, 4]  # the fifth has neither a validation nor an epoch after it


def test_what_cannot_go_on_is_told(toy, tmp_path, capsys):
    run_leaprec("SASRecCD", "toy", config_dict=settings(toy, tmp_path / "done", epochs=1))
    for words, message in (
        ([f"--resume={tmp_path / 'done'}"], "is done; its result.json is there"),
        ([f"--resume={tmp_path}"], "holds no config.yaml: there is no training to go on with"),
        ([f"--resume={tmp_path}", "--epochs=9"], "'epochs' of a trained run cannot be changed here"),
    ):
        assert main(words) == 2
        assert message in capsys.readouterr().err


def test_a_state_that_somebody_has_altered_is_refused_with_its_name(toy, tmp_path, monkeypatch, capsys):
    """Found by tests/fuzz: each of these ended in a traceback."""
    from recbole_leaprec import run

    saved = run.save_state

    def save_and_stop(*arguments):
        saved(*arguments)
        raise Killed

    monkeypatch.setattr(run, "save_state", save_and_stop)
    with pytest.raises(Killed):
        run_leaprec("SASRecCD", "toy", config_dict=settings(toy, tmp_path / "run"))
    state = tmp_path / "run" / STATE
    content = torch.load(state, weights_only=True)
    optimizer = content["optimizer"]
    group = {**optimizer["param_groups"][0], "lr": torch.zeros(0)}
    first = {**optimizer["state"][0], "exp_avg": torch.zeros(3)}
    for change in (
        {"epoch": "x"}, {"epoch": 5}, {"best_valid_result": torch.zeros(0)}, {"cur_step": [1]}, {"train_loss": {}}, {"random": {}},
        {"optimizer": {**optimizer, "param_groups": [group]}}, {"optimizer": {**optimizer, "state": {**optimizer["state"], 0: first}}},
        {"optimizer": {**optimizer, "state": {**optimizer["state"], 0: {**optimizer["state"][0], "exp_avg_sq": [1.0]}}}},
        {"dataset": {**content["dataset"], "users": torch.zeros(2)}},
    ):  # fmt: skip
        torch.save({**content, **change}, state)
        assert main([f"--resume={tmp_path / 'run'}"]) == 2, change
        assert str(state) in capsys.readouterr().err.splitlines()[-1]
