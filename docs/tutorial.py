"""Run a tutorial as a reader would, and compare its output with the page, or write the output into the page.

    python docs/tutorial.py docs/tutorials/calibrate.md
    python docs/tutorial.py docs/tutorials/*.md --write

All `bash` blocks run in one shell, in order. A `text` block right after one is its output. A block of any other kind
after a line that ends in `name`: is a file with that name. Ports of the page are replaced by free ones.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r"`([\w./-]+)`:\s*\Z")
VARIES = "<!-- varies -->"
"""Stands before a `text` block that may differ between machines. Only its number of lines must be the same."""

PORTS = ("6379", "8000", "10001")
NUMBER = re.compile(r"\d+(?:\.\d+)?")
END_OF_BLOCK = "\x1e"


@dataclass(frozen=True)
class Step:
    """Commands, and the place of their output in the page, if it has one."""

    commands: str
    shown: tuple[int, int] | None
    varies: bool


def read(page: str) -> tuple[dict[str, str], list[Step]]:
    """The files and the steps of a page."""
    files, steps = {}, []
    blocks = list(BLOCK.finditer(page))
    for number, block in enumerate(blocks):
        kind, text = block.groups()
        after = blocks[number + 1] if number + 1 < len(blocks) else None
        if kind == "bash":
            between = page[block.end() : after.start()] if after else ""
            follows = after is not None and after[1] == "text" and between.replace(VARIES, "").strip() == ""
            steps.append(Step(text, after.span(2) if after and follows else None, VARIES in between))
        elif kind != "text" and (named := NAMED.search(page[: block.start()])):
            files[named[1]] = text
    return files, steps


def run(page: str, folder: Path) -> list[str]:
    """The output of each step.

    Raises:
        RuntimeError: a command failed; the error has its output.
    """
    files, steps = read(page)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    script = "set -e -o pipefail\n" + "".join(f"{step.commands}printf '\\x1e'\n" for step in steps)
    for port in PORTS:
        if port in script:
            free = str(free_port())
            script = script.replace(port, free)
            for name, text in files.items():
                (folder / name).write_text(text.replace(port, free), encoding="utf-8")
    with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as told:
        environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        shell = subprocess.Popen(
            ["bash", "-c", script], cwd=folder, stdout=printed, stderr=told, env=environment, start_new_session=True
        )
        try:
            code = shell.wait()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)  # processes that it left in the background
        printed.seek(0)
        told.seek(0)
        outputs = printed.read().split(END_OF_BLOCK)
        if code:
            step = steps[len(outputs) - 1].commands
            raise RuntimeError(f"this step failed:\n{step}\n{outputs[-1]}\n{told.read()[-5000:]}")
    return [tidy(output, folder) for output in outputs[: len(steps)]]


def tidy(output: str, folder: Path) -> str:
    """The output without empty lines around it, spaces at the ends of lines, and the folder that it was run in."""
    return re.sub(r" +$", "", output.strip("\n").replace(f"{folder}/", ""), flags=re.MULTILINE)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def differences(page: str, outputs: list[str]) -> list[str]:
    """The places where the page does not show the real output."""
    found = []
    for step, output in zip(read(page)[1], outputs, strict=True):
        if step.shown is None:
            continue
        shown = page[slice(*step.shown)].strip("\n")
        alike = len(shown.splitlines()) == len(output.splitlines()) if step.varies else same(shown, output)
        if not alike:
            found.append(f"{step.commands}the page shows\n{shown}\nand it printed\n{output}")
    return found


def same(shown: str, printed: str) -> bool:
    """Whether two outputs have the same words in the same order, and numbers that agree within a tenth, or 0.02.

    Numbers may differ a little because sums of floats differ between machines.

    Example:
        >>> same("HR@10 0.141  S_KL@10 0.27", "HR@10 0.150 S_KL@10 0.25"), same("HR@10 0.141", "HR@10 0.19")
        (True, False)
        >>> same("HR  seconds\\n0.5      0.1", "HR  seconds\\n0.5     20.1"), same("12 users", "13 users")
        (True, False)
    """
    shown, printed = without_seconds(shown), without_seconds(printed)
    if NUMBER.sub("0", shown).split() != NUMBER.sub("0", printed).split():
        return False
    return all(
        abs(float(one) - float(other)) <= max(0.1 * float(one), 0.02) if "." in one else one == other
        for one, other in zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True)
    )


def without_seconds(text: str) -> str:
    """A table without its last column, if that is `seconds`."""
    width = None
    lines = []
    for line in text.splitlines():
        if line.endswith(" seconds"):
            width = len(line) - len(" seconds")
        elif not line.strip():
            width = None
        lines.append(line if width is None else line[:width].rstrip())
    return "\n".join(lines)


def with_outputs(page: str, outputs: list[str]) -> str:
    """The page with the real output in place of the shown one."""
    for step, output in reversed(list(zip(read(page)[1], outputs, strict=True))):
        if step.shown is not None:
            page = f"{page[: step.shown[0]]}{output}\n{page[step.shown[1] :]}"
    return page


def main(*words: str) -> int:
    write = "--write" in words
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in (word for word in words if word != "--write"):
            page = Path(name).read_text(encoding="utf-8")
            outputs = run(page, Path(folder))
            if write:
                Path(name).write_text(with_outputs(page, outputs), encoding="utf-8")
            for difference in [] if write else differences(page, outputs):
                wrong += 1
                print(f"{name}: {difference}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
