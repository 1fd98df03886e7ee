"""What somebody else has written is read without running it, and refused in one sentence."""

import errno
from pathlib import Path

import pytest

from recbole_leaprec.cli import main
from recbole_leaprec.common.reading import parse_yaml, read_json, reading
from recbole_leaprec.config import LeapRecConfig
from recbole_leaprec.study.spec import Spec
from recbole_leaprec.tune.space import read_space

ran: list[str] = []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1e-3", 0.001),
        ("1.5E+2", 150.0),
        ("2024-01-01", "2024-01-01"),
        ("a: &x [1, 2]\nb: *x", {"a": [1, 2], "b": [1, 2]}),
        ("[" * 50 + "]" * 50, eval("[" * 50 + "]" * 50)),
    ],
)
def test_yaml_has_plain_values(text, expected):
    assert parse_yaml(text) == expected


LAUGHS = "\n".join(["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9))])

BAD_YAML = [
    ("!!python/name:tests.test_reading.ran", "could not determine a constructor for the tag"),
    ("!!python/object/apply:tests.test_reading.ran.append [x]", "could not determine a constructor for the tag"),
    ("[" * 3000, "more than 50 levels deep, in line 1"),
    ("a: [" + "{b: [" * 100, "more than 50 levels deep"),
    ("&a {x: *a}", r"\*a is inside itself, in line 1"),
    (LAUGHS, "more than 100,000 values"),
    ("a: [", "in line"),
    ("a\0b", "control characters are not allowed"),
]


@pytest.mark.parametrize(("text", "message"), BAD_YAML)
def test_yaml_that_would_run_recurse_or_grow_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        parse_yaml(text)
    assert ran == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *((text.encode(), message) for text, message in BAD_YAML),
        (b"1: 2\n", "has the key 1, which is no name"),
        (b"null: 2\n", "has the key None, which is no name"),
        (b"topk: 5\nmetrics: \xff\xfe\n", "is not a text in UTF-8"),
        (b"- a\n", "must hold `key: value` lines"),
    ],
)
def test_a_bad_config_file_is_named_in_one_line(tmp_path, monkeypatch, capsys, content, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_bytes(content)
    with pytest.raises(ValueError, match=rf"mine\.yaml.*{message}"):
        LeapRecConfig("SASRecCD", "ml-100k", ["mine.yaml"])
    assert main(["--config_files=mine.yaml"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("leaprec: error: ")
    assert told.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["mine.yaml"]
    assert ran == []


@pytest.mark.parametrize("read", [Spec.read, read_space])
def test_files_of_studies_and_searches_are_read_in_the_same_way(tmp_path, read):
    for number, (text, message) in enumerate([*BAD_YAML, ("1: {choice: [2]}", "1")]):
        path = tmp_path / f"{number}.yaml"
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            read(path)


def test_values_of_the_command_line_are_read_in_the_same_way(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for text in ("[" * 3000, "!!python/name:os.system", "&a {x: *a}"):
        assert main([f"--topk={text}"]) == 2
        told = capsys.readouterr().err
        assert told.startswith("leaprec: error: --topk: cannot read ")
        assert len(told) < 400
    assert main(["tune", "--space=&a {x: *a}", "--epochs=1"]) == 2
    assert "space file &a {x: *a} does not exist" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_what_is_wrong_with_a_file_is_told_with_its_name_and_what_the_machine_has_against_it_is_not():
    with pytest.raises(ValueError, match=r"^a\.bin is not a list: KeyError 'x'$"), reading("a.bin", "a list"):
        raise KeyError("x")
    with pytest.raises(FileNotFoundError), reading("a.bin", "a list"):
        Path("/nowhere/a.bin").read_bytes()


def test_a_damaged_json_file_is_named(tmp_path):
    for content in (b'{"a": ', b"[1]", b"\xff", b"[" * 100_000):
        (tmp_path / "result.json").write_bytes(content)
        with pytest.raises(ValueError, match=r"result\.json is not"):
            read_json(tmp_path / "result.json", "a result")


def test_a_place_before_the_start_of_a_file_is_the_files_fault():
    """Found by tests/fuzz: a damaged archive ended with `[Errno 22] Invalid argument`, and no name."""
    with (
        pytest.raises(ValueError, match=r"a\.pth is not a checkpoint: .*Invalid argument"),
        reading("a.pth", "a checkpoint"),
    ):
        raise OSError(errno.EINVAL, "Invalid argument")
