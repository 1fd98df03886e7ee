"""Options of commands: what they are called, what they take, and their defaults."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Any

import click

from recbole_leaprec.cli.arguments import read_value
from recbole_leaprec.did_you_mean import unknown_name
from recbole_leaprec.keys import check_count, check_number


class Option(click.Option):
    """`--name=value`.

    Attributes:
        shown: what the help says of the default, where the value itself would say little.
        needed: whether the command can do nothing without it.
    """

    def __init__(self, *words: Any, shown: str | None = None, needed: bool = False, **more: Any):
        super().__init__(*words, **more)
        self.shown, self.needed = shown, needed


def option(
    name: str, kind: click.ParamType, meaning: str, default: Any = None, *, shown: str | None = None, needed: bool = False
) -> Callable[[Any], Any]:
    """An option of a command, above its function; the function gets the value under the same name."""
    return click.option(f"--{name}", name, cls=Option, type=kind, help=meaning, default=default, shown=shown, needed=needed)


class _Kind(click.ParamType):
    """What an option takes. Errors are ValueErrors that name the option, as everywhere in the package."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):  # a default
            return value
        return self.read(param.name if param and param.name else "", value)

    def read(self, name: str, text: str) -> Any:
        raise NotImplementedError


class Text(_Kind):
    """Anything, as it is written; None for nothing."""

    name = "text"

    def read(self, name: str, text: str) -> str | None:
        return None if text == "None" else text


class File(Text):
    name = "file"


class Checkpoint(File):
    """A file that must be there: to find out that it is not takes no torch."""


class Folder(Text):
    name = "folder"


class Names(_Kind):
    """Names with commas or spaces between them, or as yaml has a list."""

    name = "names"

    def read(self, name: str, text: str) -> list[str]:
        value = read_value(name, text) if text.startswith("[") else None
        return [str(one) for one in value] if isinstance(value, list) else text.replace(",", " ").split()


class Lambdas(Names):
    """`0:1:0.1`, the end among them where a step falls on it; or numbers as `Names` has them.

    Example:
        >>> Lambdas().read("lambdas", "0:1:0.25"), Lambdas().read("lambdas", "0,0.5")
        ([0.0, 0.25, 0.5, 0.75, 1.0], [0.0, 0.5])
    """

    name = "lambdas"

    def read(self, name: str, text: str) -> list[Any]:
        try:
            if ":" not in text:
                return [float(word) for word in super().read(name, text)]
            start, stop, step = (float(part) for part in text.split(":"))
            steps = math.floor((stop - start) / step + 1e-9)
            if steps < 0:
                raise ValueError
            return [round(start + number * step, 10) for number in range(steps + 1)]
        except (ValueError, ZeroDivisionError, OverflowError):
            raise ValueError(
                f"--{name} must be start:stop:step, such as 0:1:0.1, or numbers with commas, got {text!r}"
            ) from None


class Count(_Kind):
    """A whole number, 1 or more."""

    name = "count"

    def read(self, name: str, text: str) -> int | None:
        value = read_value(name, text)
        if value is not None:
            check_count(name, value)
        return value


class Whole(_Kind):
    """A whole number, 0 or more."""

    name = "number"

    def read(self, name: str, text: str) -> int:
        value = read_value(name, text)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ValueError(f"{name} must be a whole number, 0 or more, got {value!r}")
        return value


class Number(_Kind):
    """A number, 0 or more, or more than `above`."""

    name = "number"

    def __init__(self, above: float | None = None):
        self._above = above

    def read(self, name: str, text: str) -> float | None:
        value = read_value(name, text)
        if value is not None:
            check_number(name, value, self._above)
        return value


class Flag(_Kind):
    """True or False."""

    name = "flag"

    def read(self, name: str, text: str) -> bool:
        value = read_value(name, text)
        if not isinstance(value, bool):
            raise ValueError(f"{name} must be True or False, got {value!r}")
        return value


class OneOf(_Kind):
    """One of some names."""

    name = "name"

    def __init__(self, names: Collection[str]):
        self._names = names

    def read(self, name: str, text: str) -> str:
        if text not in self._names:
            raise ValueError(unknown_name(name, text, self._names))
        return text


CHECKPOINT = option("checkpoint", Checkpoint(), "the model.pth of a run", needed=True)


def output_dir(shown: str) -> Callable[[Any], Any]:
    """Where the files of a command go."""
    return option("output_dir", Folder(), "folder for all files of this command", shown=shown)
