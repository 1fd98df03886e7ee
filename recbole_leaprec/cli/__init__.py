"""The command line: `leaprec <command> --key=value`, in RecBole's style. Each command is a file in `commands/`."""

from __future__ import annotations

import os
import sys
import traceback
from itertools import pairwise

import click

from recbole_leaprec import __version__
from recbole_leaprec.cli.arguments import normalised
from recbole_leaprec.cli.command import INTERRUPTED
from recbole_leaprec.commands import take_command
from recbole_leaprec.common.interrupt import interruptible
from recbole_leaprec.common.reading import in_words


def main(argv: list[str] | None = None) -> int:
    """Run a command; without a name it is `train`. Every error is printed in one line.

    Returns:
        The command's exit code; 2 after bad input, 1 after an unexpected error (a fault of leaprec), 130 after Ctrl-C.
    """
    _wait_asleep()
    words = list(sys.argv[1:] if argv is None else argv)
    if words == ["--version"]:
        print(f"leaprec {__version__}")
        return 0
    debug = _asks_for_traceback(words)
    try:
        command = take_command(words)
        with interruptible():
            return (
                command.main(normalised(words, command.flags), prog_name=f"leaprec {command.name}", standalone_mode=False)
                or 0
            )
    except (KeyboardInterrupt, click.Abort) as error:
        interrupt = error if isinstance(error, KeyboardInterrupt) else error.__cause__
        print("; ".join(["interrupted", *getattr(interrupt, "__notes__", [])[-1:]]), file=sys.stderr)
        return INTERRUPTED
    except click.ClickException as error:
        return _ended(error.format_message(), 2)
    except Exception as error:
        if debug:
            traceback.print_exc()
        if isinstance(error, (ValueError, OSError)):
            return _ended(str(error), 2)
        where = getattr(error, "__notes__", [] if debug else ["--state=debug shows the traceback"])
        return _ended("; ".join([f"{in_words(error)}: this is a fault of leaprec, please report it", *where]), 1)


def _asks_for_traceback(words: list[str]) -> bool:
    """Whether `--state=debug` or `--state debug` is given. It is checked before anything can go wrong."""
    lower = [word.lower() for word in words]
    return "--state=debug" in lower or ("--state", "debug") in pairwise(lower)


def _ended(sentence: str, code: int) -> int:
    print(f"leaprec: error: {' '.join(line.strip() for line in sentence.splitlines())}", file=sys.stderr)
    return code


def _wait_asleep() -> None:
    """Make torch's threads sleep while they wait for each other, unless the user has set OMP_WAIT_POLICY.

    By default they spin. Beside one other busy process, training ml-100k on two cores took 172 s with threads that spin,
    and 10 s with threads that sleep. On a quiet machine, spinning is up to a third faster. torch reads the variable when
    it is imported.
    """
    if "torch" not in sys.modules:
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
