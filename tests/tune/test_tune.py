"""Search spaces and objectives; and real searches on a local Ray."""

import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import ray.tune
import torch
import yaml
from hypothesis import given
from hypothesis import strategies as st

from recbole_leaprec import run_leaprec
from recbole_leaprec.checkpoint import load_checkpoint
from recbole_leaprec.cli import main
from recbole_leaprec.config import LeapRecConfig
from recbole_leaprec.trainer import LeapRecTrainer
from recbole_leaprec.tune import trial, tune
from recbole_leaprec.tune.objective import OUT_OF_BOUND, Point, hypervolume, parse_objective
from recbole_leaprec.tune.plot import parallel_coordinates
from recbole_leaprec.tune.progress import LiveTable
from recbole_leaprec.tune.records import collect
from recbole_leaprec.tune.settings import SearchSettings
from recbole_leaprec.tune.space import Distribution, read_space
from tests.toy import SMALL

ROOT = Path(__file__).resolve().parents[2]
METRICS = ["hit@10", "ndcg@10", "skl@10", "ckl@10"]
QUICK = {
    "dataset": "ml-100k",
    "MAX_ITEM_LIST_LENGTH": 10,
    "epochs": 6,
    "stopping_step": 100,
    "hidden_size": 12,
    "inner_size": 12,
}


def space_file(folder: Path, text: str, name: str = "space.yaml") -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_a_yaml_space_and_recboles_lines_are_read(tmp_path):
    path = space_file(
        tmp_path, "learning_rate: {loguniform: [5e-4, 0.01]}\ngamma: {choice: [0.0, 0.1]}\nn_layers: {randint: [1, 4]}\n"
    )
    assert read_space(path) == {
        "learning_rate": Distribution("loguniform", (0.0005, 0.01)),
        "gamma": Distribution("choice", (0.0, 0.1)),
        "n_layers": Distribution("randint", (1, 4)),
    }
    quoted = space_file(tmp_path, "learning_rate: {choice: [1e-3, 1.e-3, '0', inf]}\n")
    assert read_space(quoted)["learning_rate"].arguments == (0.001, 0.001, "0", "inf")  # a text stays one
    lines = "learning_rate loguniform -8,0\nembedding_size choice [64,96 ,128]\n\n# comment\ngamma uniform 0.0,1.0\n"
    read = read_space(space_file(tmp_path, lines, "hyper.test"))
    assert read["learning_rate"].arguments == pytest.approx((math.exp(-8), 1.0))  # RecBole gives logarithms
    assert read["embedding_size"] == Distribution("choice", (64, 96, 128))
    assert read["gamma"] == Distribution("uniform", (0.0, 1.0))


def test_the_spaces_that_ship_are_read():
    assert [read_space(path) for path in (ROOT / "properties" / "tune").glob("*.yaml")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gamma: {choise: [0.1]}", "gamma: unknown distribution 'choise'; did you mean 'choice'"),
        ("gamma: 0.1", "gamma must be one distribution"),
        ("gamma: {choice: []}", "got an empty one"),
        ("gamma: {uniform: [1.0, 0.0]}", "with low below high"),
        ("gamma: {uniform: [0.1]}", "with low below high"),
        ("learning_rate: {loguniform: [0, 1]}", "low must be above 0"),
        ("n_layers: {randint: [1.5, 3]}", "both must be whole"),
        ("gamma: {quniform: [0, 0.5, 0]}", "must be above 0, and low and high multiples of it"),
        ("gamma: {quniform: [0, 0.5, 0.2]}", r"multiples of it, got \[0, 0.5, 0.2\]"),
        ("seed: {randint: [1, 3]}", "seed is given as 3, and .*space.yaml draws it, too"),
        ("epochs: {choice: [5, 10]}", "epochs belongs to the whole search"),
        ("gama: {choice: [0.1]}", "unknown key 'gama'; did you mean 'gamma'"),
        ("gamma: {choice: [-1.0, 0.1]}", "gamma .* must be a number, 0 or more, got -1.0"),
        ("gamma: {choice: [0.1}", "is not yaml"),
        ("", "is empty"),
    ],
)
def test_a_bad_space_is_refused_and_nothing_is_written(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        tune(space_file(tmp_path, text), tmp_path / "out", config_dict={**QUICK, "seed": 3})
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "text",
    [
        "ndgc@10",
        "ndcg@5",
        "ndcg@10 subject to skl@20 <= 0.3",
        "ndcg@10 under 0.3",
        "hypervolume@5",
        "ndcg@10 subject to skl@10 <= nan",
    ],
)
def test_a_bad_objective_is_refused(text):
    with pytest.raises(ValueError, match="objective"):
        parse_objective(text, METRICS)


def test_smaller_is_better_for_a_divergence():
    objective = parse_objective("skl@10", METRICS)
    assert objective.score({"skl@10": 0.3})[0] > objective.score({"skl@10": 0.4})[0]
    assert parse_objective("NDCG@10", METRICS).score({"ndcg@10": 0.2}) == (0.2, None)


POINTS = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 4)), min_size=1, max_size=8)


@pytest.mark.slow
@given(POINTS, st.floats(0, 4))
def test_the_best_lambda_that_meets_a_bound_is_found(values, limit):
    points = [Point(n / 10, {"ndcg@10": ndcg, "skl@10": skl}) for n, (ndcg, skl) in enumerate(values)]
    score, lam = parse_objective(f"ndcg@10 subject to skl@10 <= {limit}", METRICS).score({}, points)
    allowed = [ndcg for ndcg, skl in values if skl <= limit]
    if allowed:
        assert score == max(allowed)
        assert values[round(lam * 10)][0] == score
        assert values[round(lam * 10)][1] <= limit
    else:
        assert score < -1e5  # below any that meets it
        assert values[round(lam * 10)][1] == min(skl for _, skl in values)


@given(POINTS)
def test_hypervolume_is_the_area_that_the_points_dominate(values):
    cells, worst = 40, 4.0
    count = sum(
        any(x < ndcg and y > skl for ndcg, skl in values)
        for x in ((i + 0.5) / cells for i in range(cells))
        for y in ((j + 0.5) * worst / cells for j in range(cells))
    )
    assert hypervolume(values, worst) == pytest.approx(count * worst / cells**2, abs=2 * (1 + worst) / cells)


def test_the_plot_has_a_line_a_trial_and_opens_without_network():
    trials = pd.DataFrame(
        {"score": [0.1, None, 0.3], "config/gamma": [0.0, 0.1, 0.2], "config/hidden_act": ["gelu", "relu", "gelu"]}
    )
    page = parallel_coordinates(trials, ["gamma", "hidden_act"], "ndcg@10")
    assert "2 trials by ndcg@10" in page
    assert "gelu" in page
    assert "<script src=" not in page


def search_settings(folder, **changes):
    """Those of a small search, with changes."""
    settings = {
        "config": {}, "objective": "ndcg@10", "metrics": [], "trials": 1, "search": "random", "early_stopping": False,
        "concurrent": None, "cpus": 1, "gpus": 0, "folder": str(folder), "space": {},
    }  # fmt: skip
    return SearchSettings(**{**settings, **changes})


def test_a_trial_reads_validation_alone(tmp_path, monkeypatch, toy):
    seen, reports = [], []
    evaluate = LeapRecTrainer.evaluate_rerankings

    def watched(self, eval_data, *arguments, **more):
        seen.append(eval_data.dataset.targets)
        return evaluate(self, eval_data, *arguments, **more)

    monkeypatch.setattr(LeapRecTrainer, "evaluate_rerankings", watched)
    monkeypatch.setattr(ray.tune, "report", reports.append)
    config = LeapRecConfig("SASRecCD", "toy", config_dict={
        "category_field": "genre", "data_path": str(toy), "epochs": 3, "topk": [10], "hidden_size": 8, "MAX_ITEM_LIST_LENGTH": 8,
    })  # fmt: skip
    text = "ndcg@10 subject to skl@10 <= 0.4"
    settings = search_settings(tmp_path, config=config.plain(), objective=text, metrics=METRICS)
    records = []
    trial._train({"gamma": 0.2}, settings, tmp_path / "trial", lambda **figures: records.append(figures))
    dataset = seen[0]
    assert all((targets == dataset).all() for targets in seen)  # always the same items, those before the last
    assert len(reports) == 3
    assert reports[-1]["score"] == records[-1]["score"]
    assert 0 <= records[-1]["lambda"] <= 1
    assert not any("test" in key for record in records for key in record)


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A search of which some trials stop early and some fail."""
    folder = tmp_path_factory.mktemp("tune")
    # A rate that learns nothing falls behind; hidden_size 12 cannot be split into 5 heads, which RecBole says in the trial.
    space = space_file(folder, "learning_rate: {choice: [1.0e-9, 0.01]}\nn_heads: {choice: [1, 2, 3, 5]}\n")
    result = tune(
        space, folder / "out", config_dict={**QUICK, "seed": 20}, search="random", trials=6, concurrent=2,
        objective="ndcg@10 subject to skl@10 <= 0.8", show_progress=False,
    )  # fmt: skip
    return folder / "out", result


@pytest.mark.ray
def test_trials_fail_and_stop_early_and_the_search_goes_on(searched):
    folder, _ = searched
    trials = pd.read_csv(folder / "trials.csv")
    assert len(trials) == 6
    failed = trials[trials["config/n_heads"] == 5]
    assert set(failed["status"]) == {"failed"}
    assert failed["error"].str.contains("hidden size").all()
    early = trials[trials["status"] == "stopped early"]
    assert len(early)
    assert (early["epochs"] < QUICK["epochs"]).all()
    assert (trials[trials["status"] == "finished"]["epochs"] == QUICK["epochs"]).all()
    assert trials["score"].dropna().is_monotonic_decreasing


@pytest.mark.ray
def test_the_winner_is_kept_and_evaluated_on_test_at_its_lambda(searched):
    folder, result = searched
    best = result["best"]
    assert result["test"]["rerank"][0]["lambda"] == best["lambda"]
    assert sorted(path.name for path in folder.glob("trials/*/model.pth")) in ([], ["model.pth"])
    kept = load_checkpoint(folder / "best" / "model.pth")["config"]
    assert (kept["rerank_lambda"], kept["target_skl"]) == (best["lambda"], None)  # lists are made with it, without data
    assert not any("test" in key for path in folder.glob("trials/*/trial.json") for key in json.loads(path.read_text()))
    assert json.loads((folder / "search.json").read_text())["best"] == best
    assert "ndcg@10" in (folder / "trials.html").read_text()[-5000:]


@pytest.mark.ray
def test_best_yaml_trains_the_winner_again(searched, tmp_path):
    folder, result = searched
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # as a trial with its one CPU: sums over other parts end in other last digits
    try:
        again = run_leaprec(
            config_file_list=[str(folder / "best.yaml")],
            config_dict={"output_dir": str(tmp_path / "again"), "show_progress": False},
        )
    finally:
        torch.set_num_threads(before)
    assert again["backbone"]["valid"] == result["best"]["valid"]
    assert yaml.safe_load((folder / "best.yaml").read_text())["rerank_lambda"] == result["best"]["lambda"]
    assert again["backbone"]["test"] == result["test"]["backbone"]["test"]


@pytest.mark.ray
def test_a_search_that_was_interrupted_goes_on(tmp_path):
    space = space_file(tmp_path, "learning_rate: {loguniform: [0.001, 0.01]}\ngamma: {choice: [0.0, 0.1]}\n")
    folder = tmp_path / "out"
    command = [sys.executable, str(ROOT / "run_leaprec.py"), "tune", f"--space={space}", f"--output_dir={folder}", "--trials=4",
               "--concurrent=1", "--early_stopping=False", f"--config_files={tmp_path / 'quiet.yaml'}",
               *(f"--{key}={value}" for key, value in QUICK.items())]  # fmt: skip
    (tmp_path / "quiet.yaml").write_text("show_progress: False\n")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment) as process:
        deadline = time.monotonic() + 300
        while not _records(folder, "finished"):
            assert process.poll() is None, process.stdout.read()
            assert time.monotonic() < deadline
            time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        output = process.communicate(timeout=120)[0]
    assert process.returncode == 130, output
    assert "1 of 4 trials are done and test was not looked at; go on with" in output
    assert "trials:" not in output  # a bar: before, the line of the file did nothing
    before = _records(folder, "finished")
    assert 1 <= len(before) < 4
    assert (folder / "best.yaml").is_file()
    assert "test" not in json.loads((folder / "search.json").read_text())

    for changes in ({"config_dict": {"gamma": 0}}, {"objective": "hit@10"}, {"space": space}):
        with pytest.raises(ValueError, match=r"with the settings it was started with.*leave out"):
            tune(output_dir=folder, resume=True, **changes)
    result = tune(output_dir=folder, resume=True, show_progress=False)
    after = _records(folder, "finished")
    assert len(after) == 4
    assert {name: after[name] for name in before} == before  # not run again
    assert not result["interrupted"]
    assert result["test"]["backbone"]["test"]
    assert result["best"]["score"] == max(record["score"] for record in after.values())
    with pytest.raises(ValueError, match="already holds a search"):
        tune(space, folder, config_dict=QUICK)

    (folder / "best" / "test" / "result.json").unlink()  # a search that is done does not look at test again
    assert tune(output_dir=folder, resume=True, show_progress=False) == result
    assert not (folder / "best" / "test" / "result.json").exists()
    with pytest.raises(ValueError, match="trials must be at least the 4 that are done, got 2"):
        tune(output_dir=folder, resume=True, trials=2)
    longer = tune(output_dir=folder, resume=True, trials=5, show_progress=False)
    assert longer["done"] == longer["trials"] == 5


def search_with_kills(folder: Path, seed: int, kills: int = 2) -> tuple[int, int]:
    """Search, kill the search at moments that the seed draws, go on; returns how often it was killed, and how many trials were done then."""
    space = space_file(folder, "learning_rate: {loguniform: [0.001, 0.01]}\ngamma: {choice: [0.0, 0.1]}\n")
    out, draw = folder / "out", random.Random(seed)
    start = [f"--space={space}", "--trials=4", "--concurrent=1", "--early_stopping=False"]
    start += [f"--{key}={value}" for key, value in QUICK.items()]
    killed, kept = 0, {}
    for _ in range(40):
        words = ["--resume=True"] if (out / "settings.json").exists() else start
        command = [sys.executable, str(ROOT / "run_leaprec.py"), "tune", f"--output_dir={out}", *words]
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
        try:
            _, told = process.communicate(timeout=draw.uniform(1, 30) if killed < kills else 300)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            killed += 1
            for path in [*out.glob("*.json"), *out.glob("*.yaml"), *out.glob("trials/*/*.json")]:
                assert yaml.safe_load(path.read_text()) is not None, path
            kept |= _records(out, "finished")
            continue
        assert process.returncode == 0, told
        break
    after = _records(out, "finished")
    assert {name: after[name] for name in kept} == kept  # what was done stays, and is not done again
    assert len(after) == 4
    result = json.loads((out / "search.json").read_text())
    assert result["best"]["score"] == max(record["score"] for record in after.values())
    assert (out / "best" / "test" / "result.json").is_file()
    return killed, len(kept)


@pytest.mark.slow
@pytest.mark.ray
def test_a_search_that_is_killed_at_random_moments_goes_on(tmp_path):
    killed, _ = search_with_kills(tmp_path, seed=3)
    assert killed == 2


def _records(folder: Path, status: str) -> dict[str, dict]:
    records = [json.loads(path.read_text()) for path in folder.glob("trials/*/trial.json")]
    return {record["trial"]: record for record in records if record["status"] == status}


def test_a_cluster_that_is_not_there_is_an_error_within_seconds(tmp_path):
    space = space_file(tmp_path, "gamma: {choice: [0.0, 0.1]}\n")
    for address, message in (("127.0.0.1:9", "no Ray cluster answers at '127.0.0.1:9'"), ("nowhere", "must be host:port")):
        with pytest.raises(ValueError, match=message):
            tune(space, tmp_path / "out", config_dict=QUICK, ray_address=address)
    assert not (tmp_path / "out").exists()


def test_a_bound_that_no_lambda_meets_is_told(tmp_path, monkeypatch, capsys):
    best = {"trial": "abc", "objective": "ndcg@10 subject to skl@10 <= 0", "score": OUT_OF_BOUND - 0.25, "within_bound": False,
            "lambda": 1.0, "sample": {"gamma": 0.1}}  # fmt: skip
    result = {"best": best, "folder": str(tmp_path), "interrupted": True, "done": 1, "trials": 2}
    monkeypatch.setattr("recbole_leaprec.tune.tune", lambda **_: result)
    assert main(["tune", "--space=x"]) == 130
    assert (
        "no trial meets 'ndcg@10 subject to skl@10 <= 0'; abc misses it by the least, 0.2500 at lambda 1"
        in capsys.readouterr().out
    )


def test_an_interruption_before_any_validation_says_how_to_go_on(tmp_path, monkeypatch, capsys):
    result = {"best": None, "folder": str(tmp_path), "interrupted": True, "done": 0, "trials": 2}
    monkeypatch.setattr("recbole_leaprec.tune.tune", lambda **_: result)
    assert main(["tune", "--space=x"]) == 130
    assert f"tune --resume=True --output_dir={tmp_path}" in capsys.readouterr().out


def test_of_equal_trials_the_first_to_start_wins_whenever_it_ends(tmp_path):
    settings = search_settings(tmp_path, trials=3, config={"epochs": 1}, space={"gamma": ["choice", [0, 1]]})
    scores = {"late": (0.3, 2.0), "early": (0.3, 1.0), "worse": (0.2, 0.0)}
    for name, (score, started) in scores.items():
        folder = tmp_path / "trials" / name
        folder.mkdir(parents=True)
        (folder / "model.pth").touch()
        record = {"trial": name, "status": "finished", "epochs": 1, "score": score, "started": started, "config/gamma": 0}
        (folder / "trial.json").write_text(json.dumps(record))
    for order in (["late", "early", "worse"], ["worse", "early", "late"]):
        for name in scores:
            (tmp_path / "trials" / name / "model.pth").touch()
        with LiveTable(settings, tmp_path, [], show=False) as table:
            for name in order:
                table.on_trial_complete(0, [], SimpleNamespace(trial_id=name))
        assert [path.parent.name for path in tmp_path.glob("trials/*/model.pth")] == ["early"]
        assert collect(tmp_path, settings)["trial"].tolist() == ["early", "late", "worse"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cpus_per_trial": 0}, "cpus_per_trial must be a number, more than 0, got 0"),
        ({"gpus_per_trial": "one"}, "gpus_per_trial must be a number, 0 or more, got 'one'"),
        ({"early_stopping": "no"}, "early_stopping must be True or False, got 'no'"),
        ({"objective": "gauc@10"}, "there is no metric 'gauc@10'"),
        ({"config_dict": {**QUICK, "gpu_id": 0}}, "gpu_id: Ray gives GPUs to trials; say how many with gpus_per_trial"),
        ({"config_dict": {**QUICK, "dataset": "nowhere"}}, "unknown dataset 'nowhere'"),
    ],
)
def test_what_would_fail_every_trial_is_said_before_any(tmp_path, options, message):
    space = space_file(tmp_path, "gamma: {choice: [0.0, 0.1]}\n")
    with pytest.raises(ValueError, match=re.escape(message)):
        tune(space, tmp_path / "out", **{"config_dict": {**QUICK, "metrics": ["NDCG", "GAUC"]}, **options})
    assert not (tmp_path / "out").exists()


def test_titles_that_cannot_be_read_are_told_before_any_trial(tmp_path, toy):
    path = toy / "toy" / "toy.item"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r"))
    given = {**SMALL, "dataset": "toy", "data_path": str(toy), "title_field": "genre"}
    with pytest.raises(ValueError, match=r"toy\.item, line 1:"):
        tune(space_file(tmp_path, "gamma: {choice: [0.0, 0.1]}\n"), tmp_path / "out", config_dict=given)
    assert not (tmp_path / "out").exists()


@pytest.mark.ray
def test_ctrl_c_belongs_to_the_caller_again_after_a_search(searched):
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.ray
def test_trials_that_no_machine_can_hold_are_refused(tmp_path):
    space = space_file(tmp_path, "gamma: {choice: [0.0, 0.1]}\n")
    with pytest.raises(
        ValueError, match=r"a trial .* asks for 1 CPU and 64 GPU, and a machine here has \d+ CPU and \d+ GPU at most"
    ):
        tune(space, tmp_path / "out", config_dict=QUICK, gpus_per_trial=64)
    assert not (tmp_path / "out").exists()


def test_a_metric_without_a_k_can_be_tuned_for():
    assert parse_objective("gauc", ["gauc", "ndcg@5", "skl@5"]).metric == "gauc"
    assert parse_objective("hypervolume", ["gauc", "ndcg@5", "skl@5"]).hypervolume == 5
    with pytest.raises(ValueError, match="there is no metric 'ndcg@10'"):
        parse_objective("hypervolume", ["gauc"])


def test_there_is_nothing_to_resume_in_an_empty_folder(tmp_path, monkeypatch, capsys):
    with pytest.raises(ValueError, match="no search to resume"):
        tune(output_dir=tmp_path, resume=True)
    monkeypatch.chdir(tmp_path)
    assert main(["tune", "--resume=True"]) == 2
    assert "--resume=True needs --output_dir, the folder of the search" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
