"""Turns the words of a command line, in RecBole's style, into settings."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from typing import Any

from recbole_leaprec.common.did_you_mean import did_you_mean
from recbole_leaprec.common.reading import parse_yaml
from recbole_leaprec.reranking.registry import get_reranker
from recbole_leaprec.settings.keys import TEXT_KEYS, check_keys, check_values, is_text_key, known_keys
from recbole_leaprec.settings.model_names import check_model

_HELP = ("--help", "-h")


def normalised(argv: Iterable[str], flags: Collection[str] = ()) -> list[str]:
    """All words that are no options, then every option as one word, `--key=value`.

    Args:
        flags: options that are True if no value is given.

    Raises:
        ValueError: an option has no value, is given twice, or has another form.

    Example:
        >>> normalised(["a", "--out", "page.html", "b", "--users=3", "--dry_run", "-m", "SASRecCD"], flags=["dry_run"])
        ['a', 'b', '--out=page.html', '--users=3', '--dry_run=True', '--model=SASRecCD']
    """
    words: list[str] = []
    options: list[str] = []
    rest = deque(argv)
    while rest:
        word = rest.popleft()
        if not word.startswith("-"):
            words.append(word)
            continue
        if word in _HELP:
            return ["--help"]
        key, equals, value = word.partition("=")
        key = {"-m": "--model", "-d": "--dataset"}.get(key, key)
        if not key.startswith("--") or not key[2:]:
            raise ValueError(f"cannot read {word!r}: write --key=value")
        if not equals:
            if key[2:] in flags and (not rest or rest[0] not in ("True", "False")):
                rest.appendleft("True")
            value = rest.popleft() if rest else "--"
            if value.startswith("--"):
                raise ValueError(f"{key} has no value: write {key}=value")
        if any(option.startswith(f"{key}=") for option in options):
            raise ValueError(f"{key} is given twice")
        options.append(f"{key}={value}")
    return [*words, *options]


STATE = "state"
"""RecBole's key for how much is logged. Every command takes it, because `--state=debug` shows the traceback of an error."""


def read_keys(words: Iterable[str], options: Collection[str] = (), keys: Collection[str] | None = None) -> dict[str, Any]:
    """The settings in the words that are left after a command has taken its own options. Names and values are checked.

    Args:
        options: the command's options; an error message may name the nearest one.
        keys: the keys that the command takes, beside `STATE`; None for all keys of RecBole and the plugin.

    Raises:
        ValueError: an unknown key, or a value that its key does not take.
    """
    settings = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not key.startswith("--"):
            raise ValueError(f"cannot read {word!r}: write --key=value")
        settings[key[2:]] = read_value(key[2:], text)
    _check_names(settings, options, keys)
    check_values(settings)
    if isinstance(settings.get("model"), str):
        check_model(settings["model"])
    if "reranker" in settings:
        get_reranker(settings["reranker"])
    return settings


def _check_names(names: Iterable[str], options: Collection[str], keys: Collection[str] | None) -> None:
    """ValueError for a name that is neither an option nor a key of the command, with the nearest name."""
    known = {*options, STATE, *(known_keys() if keys is None else keys)}
    for name in names:
        if name in known or (keys is None and name.startswith("alias_of_")):
            continue
        near = did_you_mean(name, known)
        if keys is None:
            if near == did_you_mean(name, known_keys()):
                check_keys([name])  # no option is nearer
            raise ValueError(f"unknown option or key {name!r}{near}")
        taken = f"Keys that can be given here: {', '.join(sorted(keys))}" if keys else "No key can be given here"
        raise ValueError(f"unknown option or key {name!r}{near} {taken}")


def read_value(name: str, text: str) -> Any:
    """A value as yaml reads it; `None` is None, as in RecBole. The value of a text key is always text.

    Example:
        >>> read_value("topk", "[5,10]"), read_value("learning_rate", "1e-3"), read_value("dataset", "2024-01-01")
        ([5, 10], 0.001, '2024-01-01')
    """
    if text == "None":
        return None
    if name in TEXT_KEYS:
        return text
    try:
        value = parse_yaml(text)
    except ValueError as error:
        if is_text_key(name):  # for example a comma, as the sign between fields
            return text
        raise ValueError(f"--{name}: cannot read {text[:80]!r}: {error}") from error
    if isinstance(value, int | float) and ":" in text:  # yaml reads 1:30 as a number to the base of sixty
        return text
    if isinstance(value, str) and not is_text_key(name):  # such as inf, which yaml writes .inf
        try:
            return float(value)
        except ValueError:
            return value
    return value if isinstance(value, str) or value is None or not is_text_key(name) else text


def take_config_files(settings: dict[str, Any]) -> list[str]:
    """Remove `config_files` from the settings, and return its names of yaml files: `--config_files="a.yaml b.yaml"`."""
    return (settings.pop("config_files", None) or "").split()
