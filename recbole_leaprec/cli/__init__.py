"""The command line: `leaprec <command> --key=value`, in RecBole's style. Each command is a file in `commands/`."""

from __future__ import annotations

import os
import sys

import click

from recbole_leaprec import __version__
from recbole_leaprec.cli.arguments import normalised
from recbole_leaprec.cli.command import INTERRUPTED
from recbole_leaprec.commands import take_command
from recbole_leaprec.interrupt import interruptible


def main(argv: list[str] | None = None) -> int:
    """Run a command; the bare form is `train`. Returns the exit code: 2 after a bad argument, with one line on why."""
    _wait_asleep()
    words = list(sys.argv[1:] if argv is None else argv)
    if words == ["--version"]:
        print(f"leaprec {__version__}")
        return 0
    debug = "--state=debug" in [word.lower() for word in words]
    try:
        command = take_command(words)
        with interruptible():
            return (
                command.main(normalised(words, command.flags), prog_name=f"leaprec {command.name}", standalone_mode=False)
                or 0
            )
    except (ValueError, OSError, click.ClickException) as error:
        if debug and not isinstance(error, click.ClickException):
            raise
        told = error.format_message() if isinstance(error, click.ClickException) else error
        print(f"leaprec: error: {told}", file=sys.stderr)
        return 2
    except (KeyboardInterrupt, click.Abort):
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def _wait_asleep() -> None:
    """Have torch's threads sleep while they wait for each other, unless the user says otherwise.

    They spin by default. Beside one other busy process, training ml-100k on two cores took 172 s so, and 10 s with threads that
    sleep; on a quiet machine spinning is up to a third faster. torch reads this when it is imported.
    """
    if "torch" not in sys.modules:
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
