"""Folders that one process has for itself, and commands that are given the same."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from recbole_leaprec.cli import main
from recbole_leaprec.common.files import new_folder, scratch_folder, taken
from recbole_leaprec.training_state import STATE
from tests.toy import SMALL

HOLD = """
import sys, time
from pathlib import Path
from recbole_leaprec.common.files import taken
with taken(Path(sys.argv[1])):
    print("taken", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def hold():
    """Start a process that has a folder, as another command would."""
    started = []

    def start(folder: Path) -> subprocess.Popen:
        started.append(subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True))
        assert started[-1].stdout.readline() == "taken\n"
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def toy_words(toy: Path) -> list[str]:
    return ["--dataset=toy", f"--data_path={toy}", *(f"--{key}={value}" for key, value in SMALL.items())]


def test_of_two_trainings_with_one_folder_the_second_is_refused_and_a_killed_one_keeps_nobody_out(
    toy, tmp_path, capsys, hold
):
    """Issue 21, 3: both ended with 0, and shared the folder."""
    other = hold(tmp_path / "run")
    words = [*toy_words(toy), f"--output_dir={tmp_path / 'run'}"]
    assert main(words) == 2
    assert f"{tmp_path / 'run'} is being written to by another command; name another folder" in capsys.readouterr().err
    assert list((tmp_path / "run").iterdir()) == []
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert main(words) == 0
    assert (tmp_path / "run" / "result.json").is_file()


@pytest.mark.parametrize(
    ("command", "words"), [("shift", ["--longest=5", "--window=2"]), ("data describe", []), ("tradeoff", [])]
)
def test_of_two_commands_with_one_folder_the_second_is_refused(toy, tmp_path, monkeypatch, capsys, hold, command, words):
    """Issue 21, 3."""
    monkeypatch.chdir(tmp_path)
    hold(tmp_path / "out")
    assert main([*command.split(), *toy_words(toy), *words, "--output_dir=out"]) == 2
    assert "out is being written to by another command" in capsys.readouterr().err
    assert list((tmp_path / "out").iterdir()) == []


def test_new_folders_of_one_second_are_different_and_are_there(tmp_path, monkeypatch):
    """Issue 21, 3: two `shift` in one second shared a default folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("recbole_leaprec.common.files.time.strftime", lambda *_: "20240101-120000")
    folders = [new_folder("shift") for _ in range(3)]
    assert [folder.name for folder in folders] == [
        "shift-20240101-120000", "shift-20240101-120000-2", "shift-20240101-120000-3",
    ]  # fmt: skip
    assert all(folder.is_dir() for folder in folders)


def test_two_shifts_of_one_second_have_a_folder_each_and_one_that_fails_leaves_none(toy, tmp_path, monkeypatch, capsys):
    """Issue 21, 3."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("recbole_leaprec.common.files.time.strftime", lambda *_: "20240101-120000")
    for _ in range(2):
        assert main(["shift", *toy_words(toy), "--longest=5", "--window=2"]) == 0
    assert main(["shift", *toy_words(toy), "--category_field=nonsense"]) == 2
    names = sorted(path.name for path in (tmp_path / "output").iterdir())
    assert names == ["shift-20240101-120000", "shift-20240101-120000-2"]
    for name in names:
        assert (tmp_path / "output" / name / "shift.csv").is_file()


def test_a_command_that_fails_leaves_not_even_the_folder_of_all_outputs(toy, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    for command in (["shift"], ["data", "describe"], ["tradeoff"]):
        assert main([*command, *toy_words(toy), "--category_field=nonsense"]) == 2
    assert main(["report", "nowhere"]) == 2
    assert sorted(tmp_path.iterdir()) == before


def test_a_folder_is_let_go_and_goes_if_nothing_came_into_it(tmp_path):
    for _ in range(2):
        with taken(tmp_path / "a" / "b"), pytest.raises(ValueError, match="another command"), taken(tmp_path / "a" / "b"):
            pass
    assert list(tmp_path.iterdir()) == []
    with taken(tmp_path / "a"):
        (tmp_path / "a" / "file").touch()
    assert (tmp_path / "a" / "file").exists()


def test_what_a_killed_process_left_beside_a_file_goes_with_the_next(tmp_path):
    out = tmp_path / "lists.csv"
    left = tmp_path / ".lists.csv.scratch" / "new"
    left.mkdir(parents=True)
    (left / "part").touch()
    with scratch_folder(out) as scratch:
        assert list(scratch.iterdir()) == []
        with pytest.raises(ValueError, match=r"lists\.csv is being written by another command"), scratch_folder(out):
            pass
        (scratch / "part").touch()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("left", "sentence"),
    [
        (STATE, "go on with leaprec --resume=out"),
        ("model.pth", "no epoch was finished, and out holds nothing to go on with"),
    ],
)
def test_the_same_command_after_a_kill_says_how_to_go_on(toy, tmp_path, monkeypatch, capsys, left, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / left).touch()
    assert main([*toy_words(toy), "--output_dir=out"]) == 2
    told = capsys.readouterr().err
    assert "output_dir out already holds a training that has not ended" in told
    assert sentence in told


@pytest.mark.parametrize("longest", ["50", "99999999999999999999999"])
def test_shift_ends_with_the_longest_history_and_has_no_empty_rows(toy, tmp_path, capsys, longest):
    """Issue 21, 9, and from the newcomer's list: it took more than two minutes, and showed rows of NaN."""
    words = ["shift", *toy_words(toy), f"--longest={longest}", "--window=2", "--step=1", f"--output_dir={tmp_path / 'out'}"]
    assert main(words) == 0
    rows = (tmp_path / "out" / "shift.csv").read_text().splitlines()[1:]
    assert len(rows) == 25 - 2 + 1
    assert not any("nan" in row or ",," in row for row in rows)
    assert main(["shift", *toy_words(toy), "--window=26", f"--output_dir={tmp_path / 'other'}"]) == 2
    assert "window must not exceed the longest history, 25 items, got 26" in capsys.readouterr().err
