"""Ctrl-C wherever it falls, and what it says."""

import re
import shutil
import signal
import sys
import time
import weakref
from importlib import import_module

import pytest

from recbole_leaprec.cli import main
from recbole_leaprec.common.interrupt import interruptible
from tests.toy import SMALL


class Target:
    pass


class InterruptedWhenDeleted:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)


def lose_in_a_weak_reference():
    target = Target()
    reference = weakref.ref(target, lambda _: signal.raise_signal(signal.SIGINT))
    del target
    assert reference() is None


def lose_in_a_destructor():
    InterruptedWhenDeleted()


@pytest.mark.parametrize("lose", [lose_in_a_weak_reference, lose_in_a_destructor])
def test_an_interrupt_that_python_throws_away_comes_again(lose):
    went_on = False
    with pytest.raises(KeyboardInterrupt), interruptible():  # noqa: PT012
        lose()
        went_on = True
        time.sleep(30)
    assert went_on


def test_what_else_is_thrown_away_is_reported_as_before(monkeypatch):
    class Broken:
        def __del__(self):
            raise RuntimeError("in the destructor")

    reported = []
    monkeypatch.setattr(sys, "unraisablehook", lambda lost: reported.append(str(lost.exc_value)))
    before = sys.unraisablehook
    with interruptible():
        Broken()
    assert reported == ["in the destructor"]
    assert sys.unraisablehook is before


def interrupt_at(monkeypatch, place, which=1):
    """Have Ctrl-C come at the end of a call of a function of the package."""
    module, _, name = place.rpartition(".")
    function, calls = getattr(import_module(module), name), []

    def interrupted(*arguments, **named):
        done = function(*arguments, **named)
        calls.append(name)
        if len(calls) == which:
            raise KeyboardInterrupt
        return done

    monkeypatch.setattr(place, interrupted)


def words(toy, folder):
    return [
        "--dataset=toy",
        f"--data_path={toy}",
        *(f"--{key}={value}" for key, value in SMALL.items()),
        f"--output_dir={folder}",
    ]


def test_an_interrupted_training_says_what_is_left_and_how_to_go_on(toy, tmp_path, monkeypatch, capsys):
    """Issue 21, from the newcomer's list."""
    with monkeypatch.context() as patch:
        interrupt_at(patch, "recbole_leaprec.run.save_state")
        assert main(words(toy, tmp_path / "run")) == 130
    told = capsys.readouterr().err.splitlines()[-1]
    line = f"leaprec --resume={tmp_path / 'run'}"
    assert told == f"interrupted; all epochs that were finished are kept in {tmp_path / 'run'}; go on with {line}"
    assert main(line.split()[1:]) == 0
    assert (tmp_path / "run" / "result.json").is_file()


def test_a_training_that_is_interrupted_in_its_first_epoch_says_that_nothing_is_left(toy, tmp_path, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        patch.setattr("recbole_leaprec.run.LeapRecTrainer._train_epoch", lambda *_, **__: signal.raise_signal(signal.SIGINT))
        assert main(words(toy, tmp_path / "run")) == 130
    assert f"no epoch was finished, and {tmp_path / 'run'} holds nothing to go on with" in capsys.readouterr().err
    shutil.rmtree(tmp_path / "run")
    assert main(words(toy, tmp_path / "run")) == 0


@pytest.mark.parametrize(
    ("place", "left"),
    [
        ("recbole_leaprec.run.save_state", "all epochs that were finished are kept in"),
        ("recbole_leaprec.analysis.tradeoff.measure", "the trained model is in"),
    ],
)
def test_an_interrupted_tradeoff_says_what_is_left_and_how_to_go_on(toy, tmp_path, monkeypatch, capsys, place, left):
    """Issue 21, from the newcomer's list."""
    monkeypatch.chdir(tmp_path)
    measuring = ["--lambdas=0,0.5", "--samples=5"]
    with monkeypatch.context() as patch:
        interrupt_at(patch, place)
        assert main(["tradeoff", *words(toy, tmp_path / "out"), *measuring]) == 130
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.startswith(f"interrupted; {left} {tmp_path / 'out' / 'model'}")
    for line in re.findall(r"leaprec ([^,;]+)", told):
        assert main([*line.split(), *(measuring if line.startswith("tradeoff") else [])]) == 0
        if line.startswith("tradeoff"):
            assert "everything is in" in capsys.readouterr().out


def test_an_interrupted_tradeoff_of_a_checkpoint_begins_again_with_the_same_command(toy, tmp_path, monkeypatch, capsys):
    assert main(words(toy, tmp_path / "run")) == 0
    command = ["tradeoff", f"--checkpoint={tmp_path / 'run' / 'model.pth'}", "--lambdas=0,0.5", "--samples=5"]
    command.append(f"--output_dir={tmp_path / 'out'}")
    with monkeypatch.context() as patch:
        interrupt_at(patch, "recbole_leaprec.analysis.tradeoff.measure")
        assert main(command) == 130
    assert f"{tmp_path / 'out'} holds no curves yet; the same command begins again" in capsys.readouterr().err
    assert main(command) == 0
