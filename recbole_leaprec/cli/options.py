"""Options of commands: their names, the values that they take, and their defaults."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

import click

from recbole_leaprec.cli.arguments import read_value
from recbole_leaprec.common.did_you_mean import unknown_name
from recbole_leaprec.settings.keys import check_count, check_number

MOST_LAMBDAS = 10_001
"""As many as 0:1:0.0001 has. Every lambda costs one list per user."""

DIGITS = 10
"""Lambdas of a range are rounded to this many decimals, so that 0.1 + 0.2 is 0.3."""


class Option(click.Option):
    """An option `--name=value`.

    Attributes:
        shown: how the help describes the default, if its value would not say enough.
        needed: whether the command needs it.
        takes_none: whether `None` means no value; if not, `None` is a text like any other.
    """

    def __init__(self, *words: Any, shown: str | None = None, needed: bool = False, takes_none: bool = False, **more: Any):
        super().__init__(*words, **more)
        self.shown, self.needed, self.takes_none = shown, needed, takes_none or self.default is None


def option(
    name: str,
    kind: click.ParamType,
    meaning: str,
    default: Any = None,
    *,
    shown: str | None = None,
    needed: bool = False,
    takes_none: bool = False,
) -> Callable[[Any], Any]:
    """A decorator that adds an option to a command's function. The function gets the value under the same name."""
    more: dict[str, Any] = {"shown": shown, "needed": needed, "takes_none": takes_none}
    return click.option(f"--{name}", name, cls=Option, type=kind, help=meaning, default=default, **more)


class _Kind(click.ParamType):
    """The kind of values that an option takes. Errors are ValueErrors that name the option, as in the whole package."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):  # a default
            return value
        if value == "None" and isinstance(param, Option) and param.takes_none:
            return None
        return self.read(param.name if param and param.name else "", value)

    def read(self, name: str, text: str) -> Any:
        raise NotImplementedError


class Text(_Kind):
    """Any text, unchanged."""

    name = "text"

    def read(self, name: str, text: str) -> str:
        return text


class File(Text):
    name = "file"


class Checkpoint(File):
    """A checkpoint file that must exist. This is checked before torch is loaded."""


class Folder(Text):
    name = "folder"


class Names(_Kind):
    """Names with commas or spaces between them, or a list in yaml."""

    name = "names"

    def read(self, name: str, text: str) -> list[Any]:
        value = read_value(name, text) if text.startswith("[") else None
        names = [str(one) for one in value] if isinstance(value, list) else text.replace(",", " ").split()
        if not names:
            raise ValueError(f"--{name} is empty: write {self.name} with commas between them, or leave it out")
        return names


class Lambdas(Names):
    """Lambdas as `start:stop:step`, with the stop itself if a step reaches it; or as numbers in the form of `Names`.

    Example:
        >>> Lambdas().read("lambdas", "0:1:0.25"), Lambdas().read("lambdas", "0,0.5")
        ([0.0, 0.25, 0.5, 0.75, 1.0], [0.0, 0.5])
    """

    name = "lambdas"

    def read(self, name: str, text: str) -> list[Any]:
        words = [] if ":" in text else super().read(name, text)
        try:
            lambdas = [float(word) for word in words] if words else _range(*map(float, text.split(":")))
        except (TypeError, ValueError, ZeroDivisionError, OverflowError):
            raise ValueError(
                f"--{name} must be start:stop:step, such as 0:1:0.1, or numbers with commas, got {text!r}"
            ) from None
        if len(lambdas) > MOST_LAMBDAS:
            raise ValueError(
                f"--{name} must be at most {MOST_LAMBDAS:,} numbers, and {text[:80]!r} has more: take a larger step"
            )
        twice = next((lam for lam, times in Counter(lambdas).items() if times > 1), None)
        if twice is not None:
            raise ValueError(
                f"--{name} has {twice:g} more than once, got {text[:80]!r}: leave it out once, or take a larger step"
            )
        return lambdas


def _range(start: float, stop: float, step: float) -> list[float]:
    """The numbers from start to stop, at most one more than `MOST_LAMBDAS`; ValueError if no step leads to the stop."""
    steps = math.floor((stop - start) / step + 1e-9)
    if steps < 0:
        raise ValueError
    return [round(start + number * step, DIGITS) for number in range(min(steps, MOST_LAMBDAS) + 1)]


class Count(_Kind):
    """A whole number, 1 or more."""

    name = "count"

    def read(self, name: str, text: str) -> int:
        value = read_value(name, text)
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
    """A number, 0 or more; or, with `above`, a number above it."""

    name = "number"

    def __init__(self, above: float | None = None):
        self._above = above

    def read(self, name: str, text: str) -> float:
        value = read_value(name, text)
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
    """The option for the folder of a command's files. `shown` describes its default."""
    return option("output_dir", Folder(), "folder for all files of this command", shown=shown)
