"""The class of commands: options, keys that a command takes beside them, and help."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from recbole_leaprec.cli.arguments import STATE, read_keys
from recbole_leaprec.cli.options import Checkpoint, Flag, Option
from recbole_leaprec.common.files import check_checkpoint, new_folder, remove_empty
from recbole_leaprec.settings.keys import PLUGIN_KEYS, default_settings

INTERRUPTED = 130
"""The exit code after Ctrl-C."""


class Command(click.Command):
    """A command of `leaprec`. Every `--name=value` that is not one of its options is a key of RecBole or the plugin.

    Attributes:
        keys: the keys that it takes; None for all.
        about_keys: the text about keys in the help.
        listed: the keys of the plugin that the help lists.
        as_trained: whether a key that is not given has the value that the model was trained with.
    """

    keys: Collection[str] | None = None
    about_keys: str = ""
    listed: Collection[str] = ()
    as_trained: bool = False

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {"--help", *(f"--{option.name}" for option in self._options())}
        keys = [word for word in args if word.startswith("--") and word.partition("=")[0] not in own]
        super().parse_args(ctx, [word for word in args if word not in keys])
        ctx.args = [*ctx.args, *keys]
        return ctx.args

    def invoke(self, ctx: click.Context) -> Any:
        keys = read_keys(ctx.args, [option.name or "" for option in self._options()], self.keys)
        if self.keys is not None and STATE not in self.keys:
            keys.pop(STATE, None)
        ctx.params["keys"] = keys
        for option in self._options():
            if option.needed and ctx.params[option.name or ""] is None:
                raise ValueError(f"--{option.name}={option.type.name.upper()} is needed, {option.help}")
        for option in self._options():
            if isinstance(option.type, Checkpoint):
                check_checkpoint(ctx.params[option.name or ""])
        return super().invoke(ctx)

    @property
    def flags(self) -> list[str]:
        """The options that are True or False."""
        return [option.name or "" for option in self._options() if isinstance(option.type, Flag)]

    def _options(self) -> list[Option]:
        return [option for option in self.params if isinstance(option, Option)]

    def get_help(self, ctx: click.Context) -> str:
        """The help text: usage, docstring of the function, `about_keys`, and options and keys with their defaults."""
        words = [f"{one.name}".upper() + " [...]" for one in self.params if isinstance(one, click.Argument)]
        needed = [f"--{option.name}={option.type.name.upper()}" for option in self._options() if option.needed]
        rest = ["[--option=value ...]"] if len(self._options()) > len(needed) else []
        rest += ["[--key=value ...]"] if self.about_keys else []
        parts = [
            " ".join(["usage: leaprec", self.name or "", *words, *needed, *rest]),
            re.sub(r"(?m)^ *(?=leaprec )", "  ", inspect.cleandoc(self.help or "")),  # examples
        ]
        if self.about_keys:
            parts.append(self.about_keys)
        if self._options():
            width = max(len(option.name or "") for option in self._options())
            parts.append("\n".join(["options:", *(_option_line(option, width) for option in self._options())]))
        if self.listed:
            parts.append(
                "\n".join(["keys of the plugin:", *(self._key_line(name) for name in PLUGIN_KEYS if name in self.listed)])
            )
        return "\n\n".join(parts)

    def _key_line(self, name: str) -> str:
        key, default = PLUGIN_KEYS[name], _DEFAULTS_ELSEWHERE.get(name) or default_settings().get(name, "by model")
        told = "default: as trained" if self.as_trained and name != "output_dir" else f"default {default}"
        return f"  --{name:<18} {key.meaning}: {key.allowed} ({told})"


def command(
    name: str,
    *,
    keys: Collection[str] | None = None,
    about_keys: str = "",
    listed: Collection[str] = (),
    as_trained: bool = False,
) -> Callable[[Callable[..., int | None]], Command]:
    """Make a command out of a function. The function gets the options by name, and the keys as the dict `keys`.

    The function's docstring is the help. Imports at the top of its file are also done for `--help`, so keep them light.
    """

    def make(function: Callable[..., int | None]) -> Command:
        made = click.command(
            name,
            cls=Command,
            help=function.__doc__,
            context_settings={"allow_extra_args": True},
        )(function)
        made.keys, made.about_keys, made.listed, made.as_trained = keys, about_keys, listed, as_trained
        return made

    return make


def _option_line(option: Option, width: int) -> str:
    if option.needed:
        default = "needed"
    elif option.shown is not None:
        default = f"default: {option.shown}"
    else:
        default = f"default {_told(option.default)}"
    return f"  --{option.name:<{width}}  {option.help} ({default})"


def _told(value: Any) -> str:
    """A default as a user would type it.

    Example:
        >>> _told((0.0, 0.5)), _told(10)
        ('0,0.5', '10')
    """
    if isinstance(value, list | tuple):
        return ",".join(_told(one) for one in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


_DEFAULTS_ELSEWHERE = {"category_field": "by dataset", "title_field": "by dataset"}


@contextmanager
def loading(what: str = "torch and RecBole") -> Iterator[None]:
    """Show `loading ...` on a terminal while something slow is loaded, and clear the line afterwards."""
    if not sys.stderr.isatty():
        yield
        return
    print(f"loading {what} ...", end="\r", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        print(" " * len(f"loading {what} ..."), end="\r", file=sys.stderr, flush=True)


def is_given(context: click.Context, name: str) -> bool:
    """Whether an option is on the command line, even if its value is the default."""
    return context.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE


def program() -> str:
    """The words that this program was started with: `leaprec`, or `python <file>`."""
    return "leaprec" if Path(sys.argv[0]).name == "leaprec" else f"python {sys.argv[0]}"


@contextmanager
def folder_for(name: str, given: str | None) -> Iterator[str]:
    """The folder for the files of a command: the given one, or a new one. A new folder is removed if it stays empty."""
    if given:
        yield given
        return
    above = [parent for parent in (Path("output"),) if not parent.exists()]
    folder = new_folder(name)
    try:
        yield str(folder)
    finally:
        remove_empty([folder, *above])
