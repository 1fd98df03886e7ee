"""Commands in forks of one process that has everything loaded: a case costs a fraction of a second, and not a start of Python.

`python -m tests.fuzz.forks` is that process. It has used no thread before it forks, so that its forks may.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
CPU_SECONDS = 60
"""What a case may take; and wall time of four times that, on a machine that others use, too."""
LATE = 4 * CPU_SECONDS
MEMORY = 16 * 2**30
"""Bytes of addresses: what is loaded has several times as many as it uses."""
LOADED = "loaded.txt"


@dataclass(frozen=True)
class Outcome:
    """What became of a command.

    Attributes:
        code: the exit code, or minus the signal that ended it.
        seconds, cpu: how long it took, and how much CPU time.
    """

    words: list[str]
    code: int
    out: str
    err: str
    seconds: float
    cpu: float


class Forks:
    """The process that forks; close it at the end."""

    def __init__(self, folder: Path):
        """`folder`: where the outputs of commands are kept until they are read."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        quiet = {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", "RAY_AUTH_MODE": "disabled"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.forks"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **quiet, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
        )  # fmt: skip

    def run(self, words: Sequence[str], cwd: Path, seconds: float = LATE, file_size: int | None = None) -> Outcome:
        """`leaprec` with these words, in the folder `cwd`; killed after so many seconds. Files can have `file_size` bytes at most."""
        return self.run_all([words], cwd, seconds, file_size)[0]

    def run_all(
        self, commands: Sequence[Sequence[str]], cwd: Path, seconds: float = LATE, file_size: int | None = None
    ) -> list[Outcome]:
        """Several at once."""
        answers = self._ask({"commands": commands, "cwd": str(cwd), "seconds": seconds, "file_size": file_size})
        return [Outcome(**one) for one in answers]

    def load(self, words: Sequence[str], cwd: Path) -> None:
        """Run a command in the process itself: what it imports and compiles is there for all that come after."""
        assert self._ask({"load": words, "cwd": str(cwd)}) == 0, (self._folder / LOADED).read_text()

    def _ask(self, asked: dict[str, Any]) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        print(json.dumps(asked | {"kept": str(self._folder)}), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


def _serve() -> None:
    import torch
    from tqdm import tqdm

    torch.set_num_threads(1)
    tqdm.monitor_interval = 0  # which would be a thread
    tqdm.set_lock(threading.RLock())  # its own is shared by forks, and one that is killed could keep it for ever
    answers, errors = os.dup(1), os.dup(2)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    for line in sys.stdin:
        asked = json.loads(line)
        answer = _load(**asked) if "load" in asked else _run_all(**asked)
        os.dup2(errors, 2)
        os.write(answers, (json.dumps(answer) + "\n").encode())


def _load(load: list[str], cwd: str, kept: str) -> int:
    from recbole_leaprec.cli import main

    for stream in (1, 2):
        os.dup2(os.open(os.path.join(kept, LOADED), os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
    os.chdir(cwd)
    code = main(load)
    sys.stdout.flush()
    gc.collect()
    gc.freeze()  # so that forks need not copy what they never change
    return code


def _run_all(commands: list[list[str]], cwd: str, seconds: float, file_size: int | None, kept: str) -> list[dict[str, Any]]:
    started, files, running, answers = time.monotonic(), [], {}, {}
    for number, words in enumerate(commands):
        names = [os.path.join(kept, f"{number}.{stream}") for stream in ("out", "err")]
        files.append(names)
        child = os.fork()
        if child == 0:
            _command(words, cwd, names, file_size)
        running[child] = number
    for child in running:
        left = max(0.0, started + seconds - time.monotonic())
        _, status, used = _wait(child, left)
        number = running[child]
        out, err = (Path(name).read_text(errors="replace") for name in files[number])
        answers[number] = {
            "words": commands[number], "code": os.waitstatus_to_exitcode(status), "out": out, "err": err,
            "seconds": time.monotonic() - started, "cpu": used.ru_utime + used.ru_stime,
        }  # fmt: skip
    return [answers[number] for number in range(len(commands))]


def _wait(child: int, seconds: float) -> Any:
    """As `os.wait4`; the child and its own children are killed when their time is over."""
    deadline = time.monotonic() + seconds
    while True:
        found = os.wait4(child, os.WNOHANG)
        left = deadline - time.monotonic()
        if not found[0] and left > 0:
            signal.sigtimedwait([signal.SIGCHLD], left)
            continue
        with suppress(ProcessLookupError):  # it has ended, and left nobody
            os.killpg(child, signal.SIGKILL)
        return found if found[0] else os.wait4(child, 0)


def _command(words: list[str], cwd: str, names: list[str], file_size: int | None) -> None:
    """The child: never returns."""
    code = 70
    try:
        os.setpgid(0, 0)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
        for stream, name in enumerate(names, 1):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.chdir(cwd)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        most = MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))  # a case that fills the memory would stop all others, too
        if file_size is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # as Python has it: writing raises an OSError
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))
        from recbole_leaprec.cli import main

        code = main(words)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
        code = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve()
