"""The command line as users type it."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import click
import pytest
import yaml

import recbole_leaprec
from recbole_leaprec.cli import main
from recbole_leaprec.cli.arguments import normalised, read_value
from recbole_leaprec.commands import take_command
from tests.toy import SMALL

ROOT = Path(__file__).parents[2]


def leaprec(*arguments, cwd, **more):
    command = [sys.executable, str(ROOT / "run_leaprec.py"), *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300, **more)


@pytest.mark.slow
def test_a_run_on_ml_100k_from_another_folder_leaves_everything_and_ends_with_the_table(tmp_path):
    done = leaprec("--model=SASRecCD", "--dataset=ml-100k", "--epochs=2", "--output_dir=out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "training: 100%" in done.stderr
    header, backbone, reranked = done.stdout.split("test\n")[1].splitlines()[:3]
    assert header.split() == ["HR@10", "nDCG@10", "S_KL@10", "C_KL@10", "seconds"]

    out = tmp_path / "out"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]
    assert {file.name for file in out.iterdir()} == {"result.json", "config.yaml", "model.pth", "train.log", "tensorboard"}
    result = json.loads((out / "result.json").read_text())
    test = result["backbone"]["test"]
    assert backbone.split() == ["backbone", *(f"{test[m]:.4f}" for m in ("hit@10", "ndcg@10", "skl@10", "ckl@10"))]
    assert reranked.startswith("leaprec lambda=0.3")
    assert result["rerank"][0]["test"]["skl@10"] < 0.7 * test["skl@10"]
    assert set(result["backbone"]["valid"]) == set(test)
    assert {"versions", "config", "seed", "timing"} <= set(result)
    assert "epoch 1 training" in (out / "train.log").read_text()

    again = leaprec("--config_files=out/config.yaml", "--output_dir=again", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    second = json.loads((tmp_path / "again" / "result.json").read_text())
    assert second["backbone"] == result["backbone"]
    assert second["rerank"][0]["test"] == result["rerank"][0]["test"]
    assert second["config"] == result["config"] == yaml.safe_load((out / "config.yaml").read_text())

    evaluated = leaprec("evaluate", "--checkpoint=out/model.pth", "--output_dir=eval", cwd=tmp_path)
    assert evaluated.returncode == 0, evaluated.stderr
    assert evaluated.stdout.split("seconds")[1].splitlines()[1] == backbone
    third = json.loads((tmp_path / "eval" / "result.json").read_text())
    assert third["rerank"][0]["test"] == result["rerank"][0]["test"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model=SASRekCD"], "unknown model 'SASRekCD'; did you mean 'SASRecCD'?"),
        (["--dataset=ml-1n"], "unknown dataset 'ml-1n'; did you mean 'ml-1m'?"),
        (["--rerank_lamda=0.5"], "unknown key 'rerank_lamda'; did you mean 'rerank_lambda'?"),
        (["--alpha=2"], "alpha (decay of the sequential preference per step) must be a number in (0, 1], got 2"),
        (["--category_field=genre"], "no field 'genre' (category_field). its fields are item_id, movie_title, release_year, class"),
        (["--topk=[10,5000]"], "topk (list lengths K) must not exceed the number of items, 1682"),
        (["--epochs"], "--epochs has no value"),
        (["epochs=3"], "unknown command 'epochs=3'"),
        (["--epochs=3", "--epochs=4"], "--epochs is given twice"),
        (["--topk=[5"], "--topk: cannot read '[5'"),
        (["trane"], "unknown command 'trane'; did you mean 'train'?"),
        (["evaluate"], "--checkpoint=FILE is needed"),
        (["evaluate", "--checkpont=x"], "unknown option or key 'checkpont'; did you mean 'checkpoint'"),
        (["evaluate", "--checkpoint=nowhere.pth"], "nowhere.pth does not exist"),
        (["--config_files=nowhere.yaml"], "config file nowhere.yaml does not exist"),
        (["tradeoff", "--lambdas=0:1:0"], "--lambdas must be start:stop:step, such as 0:1:0.1, or numbers with commas, got '0:1:0'"),
        (["tradeoff", "--lambdas=0.5,2"], "lambdas must be numbers in [0, 1], got 2.0"),
        (["tradeoff", "--rerankers=leaprek"], "unknown reranker 'leaprek'; did you mean 'leaprec'?"),
        (["tradeoff", "--checkpoint=nowhere.pth"], "nowhere.pth does not exist"),
        (["tune", "--trial=2"], "unknown option or key 'trial'; did you mean 'trials'?"),
        (["tune", "--resume=True", "--search=tpe"], "trials alone may be others; leave out search"),
        (["recommend", "--historie=x.csv"], "unknown option or key 'historie'; did you mean 'histories'?"),
        (["recommend", "--checkpoint=x.pth"], "--out=FILE is needed"),
        (["--dataset=toy", "--data_path=2024-01-01"], "There is no folder 2024-01-01/toy (data_path)"),
        (["tune", "--space=&a {x: *a}"], "space file &a {x: *a} does not exist (--space)"),
        (["--val_interval={genre: '[1,2]'}"], "Field [genre] not defined in dataset"),
        (["--cpus_per_worker=7"], "cpus_per_worker is for --engine=ray, got 7 with the local engine"),
        (["--cpus_per_worker=1"], "cpus_per_worker is for --engine=ray, got 1 with the local engine"),
        (["--gpus_per_worker=1"], "gpus_per_worker is for --engine=ray, got 1 with the local engine"),
        (["--ray_address=host:6379"], "ray_address is for --engine=ray, got host:6379 with the local engine"),
        (["data", "describe", "toy", "--dataset=ml-100k"], "the dataset is 'toy', and --dataset=ml-100k is another: leave one of them out"),
        (["tradeoff", "--rerankers="], "--rerankers is empty: write names with commas between them, or leave it out"),
        (["report", "--rerankers=[]"], "--rerankers is empty"),
        (["tradeoff", "--lambdas="], "--lambdas is empty"),
        (["tradeoff", "--checkpoint=a.pth,./a.pth"], "checkpoint ./a.pth is given twice: name each model once"),
        (["doctor", "--epochs=3"], "unknown option or key 'epochs'. No key can be given here"),
        (["data", "csv", "--alias_of_item_id=[a]"], "unknown option or key 'alias_of_item_id'. Keys that can be given here: show_progress"),
    ],
)  # fmt: skip
def test_bad_arguments_get_one_clear_line_and_leave_nothing(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert f"leaprec: error: {message}" in error or message in error
    assert error.strip().count("\n") == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["recommend", "rerank"])
@pytest.mark.parametrize("option", ["ray_address=host:6379", "workers=2"])
def test_lists_of_the_local_engine_take_no_option_of_ray(tmp_path, monkeypatch, capsys, command, option):
    monkeypatch.chdir(tmp_path)
    Path("x.pth").touch()
    given = {"recommend": ["--checkpoint=x.pth"], "rerank": ["--candidates=c.csv", "--items=i.csv", "--histories=h.csv"]}
    assert main([command, *given[command], "--out=lists.csv", f"--{option}"]) == 2
    name, value = option.split("=")
    assert f"{name} is for --engine=ray, got {value} with the local engine" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["evaluate", "recommend", "users", "serve", "tradeoff", "train"])
def test_a_key_that_belongs_to_the_trained_model_is_refused_at_once_with_those_that_can_be_given(tmp_path, command):
    """Without torch, which takes seconds to load."""
    (tmp_path / "x.pth").touch()
    words = {"recommend": ["--checkpoint=x.pth", "--out=lists.csv"], "train": ["--resume=run"]}
    given = [command, *words.get(command, ["--checkpoint=x.pth"]), "--epochs=3"]
    program = f"import sys\nfrom recbole_leaprec.cli import main\nprint(main({given}), 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.stdout.split() == ["2", "False"], done.stderr
    assert "'epochs'" in done.stderr
    assert "gpu_id" in done.stderr.partition("'epochs'")[2]


def test_the_nearest_key_is_named_with_all_that_can_be_given(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["evaluate", "--rerank_lamda=0.5"]) == 2
    told = capsys.readouterr().err
    assert (
        "unknown option or key 'rerank_lamda'; did you mean 'rerank_lambda'? Keys that can be given here: alpha, beta, "
        in told
    )


@pytest.mark.parametrize("place", ["file", "file/inside"])
def test_an_output_dir_that_cannot_be_made_is_refused(tmp_path, monkeypatch, capsys, place):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    assert main([f"--output_dir={place}"]) == 2
    assert f"output_dir {place} cannot be made: " in capsys.readouterr().err


def test_a_file_without_model_and_dataset_leaves_them_at_their_defaults(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text("gamma: -1\n")
    assert main(["--config_files=mine.yaml"]) == 2
    assert "gamma (weight of the calibration-disentangled term in the loss) must be" in capsys.readouterr().err


def test_a_folder_that_holds_a_run_is_not_written_over(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "result.json").write_text("{}")
    assert main(["--output_dir=out"]) == 2
    assert "output_dir out already holds a run" in capsys.readouterr().err


def test_the_version_is_told(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"leaprec {recbole_leaprec.__version__}\n"


@pytest.mark.parametrize("command", ["train", "evaluate"])
def test_help_says_what_a_command_does_and_shows_defaults(command, capsys):
    assert main([command, "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("usage: leaprec")
    assert "--rerank_lambda" in text
    assert ("(default 0.3)" if command == "train" else "(default: as trained)") in text
    assert ("--loss_type" in text) == (command == "train")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--a=1", "--b", "x"], {"a": 1, "b": "x"}),
        (["--a=1e-3", "--b=True", "--c=None", "--d=~"], {"a": 0.001, "b": True, "c": None, "d": None}),
        (["--a={'LS': 'valid_and_test'}"], {"a": {"LS": "valid_and_test"}}),
        (["--dataset=ml-1m", "--path=a=b"], {"dataset": "ml-1m", "path": "a=b"}),
        (
            ["--data_path=2024-01-01", "--dataset=2024-01-01 10:00:00"],
            {"data_path": "2024-01-01", "dataset": "2024-01-01 10:00:00"},
        ),
    ],
)
def test_values_are_read_as_users_mean_them(words, expected):
    assert {word[2:].partition("=")[0]: read_value(*word[2:].split("=", 1)) for word in normalised(words)} == expected


def test_the_wheel_carries_the_properties_and_works_without_the_checkout(tmp_path):
    source = tmp_path / "source"  # a build leaves files beside the sources
    for name in ("recbole_leaprec", "properties"):
        shutil.copytree(ROOT / name, source / name)
    for name in ("setup.cfg", "setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(source)]
    subprocess.run(build, check=True, capture_output=True, timeout=300)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        shipped = {name.removeprefix("recbole_leaprec/") for name in wheel.namelist()}
        wheel.extractall(tmp_path / "site")
    kept = {str(file.relative_to(ROOT)) for file in (ROOT / "properties").rglob("*.yaml")}
    assert kept <= shipped
    package = ROOT / "recbole_leaprec"
    needed = [file for kind in ("py", "html", "css", "js") for file in package.rglob(f"*.{kind}")]
    assert {file.suffix for file in needed} == {".py", ".html", ".css", ".js"}
    assert {str(file.relative_to(package)) for file in needed} <= shipped
    program = "import recbole_leaprec.settings.keys as c, recbole_leaprec.cli as m; print(c.PROPERTIES); m.main(['--help'])"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env={"PYTHONPATH": str(tmp_path / "site")},
                          capture_output=True, text=True, timeout=120)  # fmt: skip
    assert done.stdout.startswith(str(tmp_path / "site")), done.stderr
    assert "(default 0.3)" in done.stdout


@pytest.mark.parametrize(("given", "expected"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_threads_sleep_while_they_wait_unless_the_user_says_otherwise(given, expected):
    program = "import os\nfrom recbole_leaprec.cli import main\nmain(['nothing'])\nprint(os.environ['OMP_WAIT_POLICY'])"
    environment = {key: value for key, value in os.environ.items() if key != "OMP_WAIT_POLICY"}
    if given:
        environment["OMP_WAIT_POLICY"] = given
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=100)
    assert done.stdout.strip() == expected, done.stderr


TOY = [f"--{key}={value}" for key, value in {**SMALL, "dataset": "toy"}.items()]


def test_what_nobody_expected_is_one_line_with_the_traceback_in_the_log_and_exit_code_1(toy, tmp_path, monkeypatch, capsys):
    """Issue 21: one place where the errors of commands become sentences."""

    def fail(*_, **__):
        raise KeyError("a key of\nours")

    words = [*TOY, f"--data_path={toy}", f"--output_dir={tmp_path / 'run'}"]
    monkeypatch.setattr("recbole_leaprec.run.Run.evaluate", fail)
    assert main(words) == 1
    told = capsys.readouterr().err.partition("leaprec: error: ")[2]
    log = tmp_path / "run" / "train.log"
    assert (
        told == rf"KeyError 'a key of\nours': this is a fault of leaprec, please report it; the traceback is in {log}" + "\n"
    )
    written = log.read_text()
    assert "Traceback (most recent call last)" in written
    assert 'raise KeyError("a key of' in written


def test_before_there_is_a_log_the_line_says_how_to_see_the_traceback(toy, monkeypatch, capsys):
    def fail(*_, **__):
        raise TypeError("ours")

    monkeypatch.setattr("recbole_leaprec.run.Run.prepare", fail)
    assert main([*TOY, f"--data_path={toy}"]) == 1
    told = capsys.readouterr().err
    assert "Traceback" not in told
    assert told.endswith("TypeError ours: this is a fault of leaprec, please report it; --state=debug shows the traceback\n")
    for words in (["--state=debug"], ["--state", "debug"]):
        assert main([*TOY, f"--data_path={toy}", *words]) == 1
        shown = capsys.readouterr().err
        assert "Traceback (most recent call last)" in shown
        assert shown.endswith("leaprec: error: TypeError ours: this is a fault of leaprec, please report it\n")


@pytest.mark.parametrize("command", ["rerank", "report", "data csv", "evaluate", "doctor"])
def test_every_command_shows_the_traceback_when_asked(tmp_path, monkeypatch, capsys, command):
    def fail(*_, **__):
        raise TypeError("ours")

    file = tmp_path / "file"
    file.touch()
    needed = [
        f"--{option.name}={file}" for option in take_command(command.split()).params if getattr(option, "needed", False)
    ]
    monkeypatch.setattr(click.Command, "invoke", fail)
    assert main([*command.split(), *needed, "--state=debug"]) == 1
    told = capsys.readouterr().err
    assert "Traceback (most recent call last)" in told
    assert told.endswith("leaprec: error: TypeError ours: this is a fault of leaprec, please report it\n")


def test_bad_input_is_one_line_and_the_traceback_is_in_the_log_where_there_is_one(toy, tmp_path, monkeypatch, capsys):
    def fail(*_, **__):
        raise ValueError("model.pth is bad")

    monkeypatch.setattr("recbole_leaprec.run.Run.evaluate", fail)
    assert main([*TOY, f"--data_path={toy}", f"--output_dir={tmp_path / 'run'}"]) == 2
    assert capsys.readouterr().err.endswith("leaprec: error: model.pth is bad\n")
    assert 'raise ValueError("model.pth is bad")' in (tmp_path / "run" / "train.log").read_text()
    assert main(["--epochs=x", "--state=debug"]) == 2
    assert "Traceback (most recent call last)" in capsys.readouterr().err
