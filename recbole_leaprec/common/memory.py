"""Gives memory that a process has freed back to the system."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

EVERY = 3
"""Memory is given back after this many batches.

More often would cost more time: after every batch, a quarter of the time of a training, because the next batch asks for the
same memory again.
"""


def giving_back(batches: Iterable[Any]) -> Iterator[Any]:
    """The same batches. After every `EVERY` batches, freed memory is given back to the system.

    Some batches leave holes in the C library's memory, and the next ones do not fit into them. Without this, a training on
    ML-1M needs more memory with every epoch (670 MB after the first, 780 MB after the third), and an evaluation after it yet
    more.
    """
    for number, batch in enumerate(batches, 1):
        yield batch
        if number % EVERY == 0:
            give_back()


def give_back() -> None:
    """Give back all freed memory. This works only with glibc; elsewhere it does nothing."""
    if trim := _malloc_trim():
        trim(0)


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library; TypeError is Windows
        return None
