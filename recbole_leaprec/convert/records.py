"""Lines that each hold an object, in JSON or as Python writes it; nothing in them is executed."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recbole_leaprec.convert.bad_lines import BadLines
from recbole_leaprec.convert.streams import read_lines

LONGEST = 2**20
"""Bytes of a line that are parsed; a longer one is no record, and as a Python literal would take hundreds of times its memory."""


def read_records(path: Path, bad: BadLines, show_progress: bool = True) -> Iterator[dict[str, Any]]:
    """The objects of a file, one per line; lines that hold none are counted as bad.

    The first line that can be read says whether they are JSON or Python literals.
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
    """What Python has printed. `ast.literal_eval` builds values and calls nothing; too deep a nesting is an error of the parser."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
