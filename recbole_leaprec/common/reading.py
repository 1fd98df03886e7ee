"""Reads files that somebody else wrote, and texts that somebody typed.

No code in them is run. Every problem becomes a ValueError of one sentence that names the file or text.
"""

from __future__ import annotations

import errno
import json
import pickle
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import yaml

_Row = TypeVar("_Row")

_WRONG = (
    ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, MemoryError, RuntimeError, TypeError, ValueError,
    pickle.UnpicklingError, struct.error, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""The errors that can come from reading bytes that are not in the expected format."""

_DEEPEST = 50
"""The largest depth of a yaml file: levels of brackets and indented lines."""
_MOST = 100_000
"""The largest number of values in a yaml file. A value counts again for each alias that points to it."""


@contextmanager
def reading(path: str | Path, what: str) -> Iterator[None]:
    """Turn errors inside the `with` block into a ValueError that names the file and says what it should be."""
    try:
        yield
    except (*_WRONG, OSError) as error:
        if isinstance(error, OSError) and error.errno not in (
            None,
            errno.EINVAL,
        ):  # errors of the machine; EINVAL means a position before the file's begin
            raise
        if isinstance(error, ValueError) and not isinstance(error, UnicodeError) and str(path) in str(error):
            raise
        raise ValueError(f"{path} is not {what}: {in_words(error)}") from error


def read_all(path: str | Path, what: str, rows: Iterator[_Row]) -> Iterator[_Row]:
    """All rows of an iterator. Its errors become ValueErrors about the file, as in `reading`."""
    while True:
        with reading(path, what):
            row = next(rows, None)
        if row is None:
            return
        yield row


def in_words(error: BaseException) -> str:
    """The first line of an error's message. The error's type is put before it if the message may say little."""
    lines = str(error).strip().splitlines()
    first = lines[0] if lines else ""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem:
        mark = error.problem_mark
        return error.problem + (f", in line {mark.line + 1}" if mark else "")
    return first if isinstance(error, (ValueError, OSError)) and first else f"{type(error).__name__} {first}".strip()


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # C is 8 times as fast
    """yaml's safe loader, but 1e-3 is a number (as in RecBole), and 2024-01-01 is a text (no key takes a date)."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9_]+)[eE][-+]?[0-9]+$"),
    list("-+.0123456789"),
)


def parse_yaml(text: str, trusted: bool = False) -> Any:
    """The plain values of a yaml text. ValueError if it is not yaml, is too deep or too large, or contains itself.

    Args:
        trusted: whether the text comes with a package. Then its shape is not checked, which would take as long as reading.
    """
    try:
        if not trusted:
            _check_shape(text)
        return yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, *_WRONG) as error:
        raise ValueError(in_words(error)) from error


def _check_shape(text: str) -> None:
    """Raise ValueError for a text whose values would overflow the stack or the memory of a reader."""
    around: list[tuple[str | None, int]] = []  # open collections: the anchor, and the number of values before it
    sizes: dict[str | None, int] = {}
    seen = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            around.append((event.anchor, seen))
            if len(around) > _DEEPEST:
                raise ValueError(f"it is more than {_DEEPEST} levels deep, in {_line(event)}")
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = around.pop()
            sizes[anchor] = seen - before
        elif isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _ in around):
                raise ValueError(f"*{event.anchor} is inside itself, in {_line(event)}")
            seen += sizes.get(event.anchor, 0)
        seen += 1
        if seen > _MOST:
            raise ValueError(f"it has more than {_MOST:,} values")


def _line(event: yaml.Event) -> str:
    return f"line {event.start_mark.line + 1}" if event.start_mark else "some line"


def read_text(path: str | Path) -> str:
    """The text of a file; ValueError if it is not UTF-8."""
    with reading(path, "a text in UTF-8"):
        return Path(path).read_text(encoding="utf-8")


def read_yaml(path: str | Path, what: str) -> Any:
    """The content of a yaml file; ValueError if it is not yaml. The message starts with `what`, before the file's name."""
    try:
        return parse_yaml(read_text(path))
    except ValueError as error:
        raise ValueError(f"{what} {path} is not yaml: {error}") from error


def read_settings(path: str | Path, what: str) -> dict[str, Any]:
    """The `key: value` lines of a yaml file; ValueError if it holds anything else."""
    content = read_yaml(path, what)
    if not isinstance(content, dict):
        raise ValueError(f"{what} {path} must hold `key: value` lines")
    for key in content:
        if not isinstance(key, str):
            raise ValueError(f"{what} {path} has the key {key!r}, which is no name")
    return content


def read_json(path: str | Path, what: str) -> dict[str, Any]:
    """The content of a JSON file that this package wrote; ValueError if it is damaged."""
    with reading(path, what):
        content = json.loads(read_text(path))
        if not isinstance(content, dict):
            raise ValueError("it holds no names and values")
        return content


def check_archive(path: str | Path) -> None:
    """Raise ValueError unless a file is a zip archive without compression, and all its parts match their checksums."""
    with zipfile.ZipFile(path) as archive:
        for part in archive.infolist():
            if part.compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"its part {part.filename!r} is packed")
        damaged = archive.testzip()
    if damaged is not None:
        raise ValueError(f"its part {damaged!r} is not as it was written (the checksum differs)")
