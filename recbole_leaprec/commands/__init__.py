"""The commands of `leaprec`, one per file: options with their defaults, help, and a call of one function of the package.

To add a command, add a file here that defines a command of the same name.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING

from recbole_leaprec.common.did_you_mean import unknown_name

if TYPE_CHECKING:
    from recbole_leaprec.cli.command import Command


def command_names() -> list[str]:
    """The names of all commands. A command in a folder has the folder's name before its own."""
    found = []
    for module in pkgutil.walk_packages(__path__, prefix=f"{__name__}."):
        if not module.ispkg:
            found.append(" ".join(module.name.removeprefix(f"{__name__}.").split(".")).replace("_", "-"))
    return sorted(found)


def take_command(words: list[str]) -> Command:
    """The command that a command line begins with; `train` if it begins with none. The name is removed from `words`.

    Raises:
        ValueError: there is no such command; the error names the nearest one.
    """
    names = command_names()
    name = words.pop(0) if words and not words[0].startswith("-") else "train"
    if any(other.startswith(f"{name} ") for other in names):  # a folder of commands
        name = " ".join([name, *([words.pop(0)] if words and not words[0].startswith("-") else [])])
    if name not in names:
        inside = [other for other in names if other.startswith(f"{name} ")]
        if inside:
            raise ValueError(f"{name} is one of {', '.join(inside)}; `leaprec {inside[0]} --help` says more")
        raise ValueError(unknown_name("command", name, names))
    path = name.replace("-", "_").split()
    return getattr(import_module(".".join([__name__, *path])), path[-1])
