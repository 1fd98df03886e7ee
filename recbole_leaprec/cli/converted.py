"""Lines that every command shows after it has made a dataset."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path


def left_out_line(left_out: Mapping[str, int]) -> str:
    """What was left out, and why.

    Example:
        >>> left_out_line({"that repeat a user and an item": 1_200}), left_out_line({})
        ('left out: 1,200 that repeat a user and an item', 'left out: none')
    """
    return f"left out: {', '.join(f'{count:,} {why}' for why, count in left_out.items()) or 'none'}"


def next_line(out: Path) -> str:
    """Where the dataset is, and the command that trains on it, as a shell takes it.

    Example:
        >>> next_line(Path("my data/shop"))
        "everything is in my data/shop; now: leaprec --dataset=shop --data_path='my data'"
    """
    return (
        f"everything is in {out}; now: leaprec --dataset={shlex.quote(out.name)} --data_path={shlex.quote(str(out.parent))}"
    )
