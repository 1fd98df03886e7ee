"""Reads files with one object per line, in JSON or as a Python literal. Nothing in them is executed."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recbole_leaprec.convert.bad_lines import BadLines
from recbole_leaprec.convert.streams import read_lines

LONGEST = 2**20
"""Bytes of the longest line that is parsed. A longer one is no record, and parsing it as a Python literal could take
hundreds of times its memory."""


def read_records(path: Path, bad: BadLines, show_progress: bool = True) -> Iterator[dict[str, Any]]:
    """The objects of a file, one per line. Lines without an object are counted as bad.

    The first line that can be read decides whether all lines are JSON or Python literals.
    """
    form = None
    for number, line in read_lines(path, show_progress):
        if len(line) > LONGEST:
            bad.add(number, f"longer than {LONGEST:,} bytes")
            continue
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            bad.add(number, f"not UTF-8 ({error.reason})")
            continue
        record = None
        for read in (form,) if form else (_json, _literal):
            record = read(text)
            if record is not None:
                form = read
                break
        if record is None:
            bad.add(number, "not an object", text)
        else:
            yield record


def _json(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _literal(text: str) -> dict[str, Any] | None:
    """A dict that Python has printed, else None. `ast.literal_eval` calls nothing, and refuses very deep nesting."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
