"""Memory that a process has freed, given back to the system."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

EVERY = 10
"""Batches. Giving back after each would take a quarter of the time of a training, since the next batch asks for it again."""


def giving_back(batches: Iterable[Any]) -> Iterator[Any]:
    """The same batches; what was freed goes back to the system now and then.

    Some batches leave holes in the C library's memory that the next ones do not fit into. Without this, a training on ML-1M
    holds more with every epoch: 670 MB after the first, 780 MB after the third.
    """
    for number, batch in enumerate(batches, 1):
        yield batch
        if number % EVERY == 0:
            give_back()


def give_back() -> None:
    """Give back what can be given back. Only glibc's memory can: elsewhere this does nothing."""
    if trim := _malloc_trim():
        trim(0)


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library; TypeError is Windows
        return None
