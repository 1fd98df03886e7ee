"""Every command line that the README and the site show would be taken."""

from __future__ import annotations

import configparser
import re
import shlex
from importlib import import_module

import pytest

from recbole_leaprec.cli.arguments import normalised, read_keys
from recbole_leaprec.cli.options import Option
from recbole_leaprec.commands import take_command
from recbole_leaprec.settings.keys import check_changes
from tests.docs.pages import ROOT, blocks, written_pages

from reference_pages import CHANGED_BY  # isort: skip

LEAPREC = ("leaprec", "python run_leaprec.py", "python -m recbole_leaprec")


def command_lines() -> list[tuple[str, str]]:
    """`(page, line)` for each line of the blocks of commands, and for each `leaprec ...` inside a sentence or a table."""
    found = []
    for name, text in written_pages().items():
        if name == "CONTRIBUTING.md":  # what it shows is done by tests/test_contributing.py
            continue
        for block in [
            *blocks(text, "bash"),
            *(match[0] for match in re.finditer(r"(?:^    leaprec .*\n)+", text, flags=re.MULTILINE)),
        ]:
            joined = block.replace("\\\n", " ")
            found += [
                (name, line.strip()) for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")
            ]
        found += [(name, line) for line in re.findall(r"`(leaprec [^`<]*-[^`<]*)`", text)]
    return found


def words_of(line: str) -> list[str]:
    """The words of the first command of a line, without what a shell does with its output."""
    words = shlex.split(line, comments=True)
    ends = [words.index(sign) for sign in ("|", "&", ">", "2>&1", "&&") if sign in words]
    return words[: min(ends)] if ends else words


def parse(words: list[str]) -> None:
    """Read a command line as `main` does, and stop before anything is run."""
    if words in (["--version"], ["--help"]):
        return
    command = take_command(words)
    options = [one for one in command.params if isinstance(one, Option)]
    with command.make_context("leaprec", normalised(words, command.flags)) as context:
        keys = read_keys(context.args, [one.name or "" for one in options], command.keys)
        trained = "train --resume" if context.params.get("resume") and command.name == "train" else command.name
        if context.params.get("checkpoint") or trained != command.name:
            check_changes(keys, CHANGED_BY[trained])
        missing = [one.name for one in options if one.needed and context.params[one.name or ""] is None]
        assert missing == []


def check_make(words: list[str]) -> None:
    for target in (word for word in words if "=" not in word):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE), f"no target {target}"


def check_pip(words: list[str]) -> None:
    assert words[0] == "install"
    extras = configparser.ConfigParser()
    extras.read(ROOT / "setup.cfg")
    for extra in re.findall(r"\[(\w+)\]", " ".join(words)):
        assert extra in extras["options.extras_require"]
    assert all((ROOT / name).is_file() for name in words if name.endswith(".txt"))


def check_python(words: list[str]) -> None:
    if words[0] != "-c":
        assert (ROOT / words[0]).is_file() or words[0] in {"scores.py", "measure.py", "ask.py"}, words[0]


def check_serve(words: list[str]) -> None:
    module, _, name = words[1].partition(":")
    assert callable(getattr(import_module(module), name))


def check_curl(words: list[str]) -> None:
    path = next(word for word in words if "localhost" in word).rpartition("/")[2]
    assert f'@app.post("/{path}"' in (ROOT / "recbole_leaprec" / "serve" / "app.py").read_text()


OTHERS = {"make": check_make, "pip": check_pip, "python": check_python, "serve": check_serve, "curl": check_curl}
RUN_BY_THE_TUTORIALS = {"ray", "export", "sleep", "head", "ls", "cat", "cd", "git"}


@pytest.mark.parametrize(("page", "line"), sorted({*command_lines()}))
def test_a_command_line_is_taken(page, line):
    words = words_of(line)
    started = next((form.split() for form in LEAPREC if words[: len(form.split())] == form.split()), None)
    if started:
        parse(words[len(started) :])
    elif words[0] in OTHERS:
        OTHERS[words[0]](words[1:])
    else:
        assert words[0] in RUN_BY_THE_TUTORIALS, f"{page}: nothing checks {line}"


@pytest.mark.parametrize(
    "line",
    [
        "leaprec --rerank_lamda=0.3",
        "leaprec recommend --out=x",
        "leaprec evaluate --checkpoint=x --epochs=3",
        "leaprec --epochs=many",
        "leaprec dance",
    ],
)
def test_a_command_line_with_a_mistake_is_not_taken(line):
    with pytest.raises((ValueError, AssertionError)):
        parse(line.split()[1:])


def test_there_are_command_lines():
    assert len(command_lines()) > 80
