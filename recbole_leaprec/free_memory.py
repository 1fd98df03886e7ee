"""Memory that is free goes back to the system."""

from __future__ import annotations

import ctypes
import sys


def give_back() -> None:
    """Hand over what was freed, between two pieces of work: glibc keeps it, in pieces that the next work can often not use.

    Other systems have their own ways, and this does nothing there.
    """
    if sys.platform == "linux" and hasattr(ctypes.CDLL(None), "malloc_trim"):
        ctypes.CDLL(None).malloc_trim(0)
