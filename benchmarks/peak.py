"""The peak of this process's resident memory (Linux)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def clear_peak() -> None:
    """Reset the peak to the memory that is held now."""
    Path("/proc/self/clear_refs").write_text("5")


def peak_now() -> int:
    """The peak since `clear_peak`, in bytes."""
    return _status("VmHWM")


def peak_of(work: Callable[[], Any]) -> tuple[Any, int]:
    """`(result of work, bytes)`: how far the peak rose above the memory that was held before."""
    clear_peak()
    before = _status("VmRSS")
    result = work()
    return result, peak_now() - before


def _status(key: str) -> int:
    """A value of /proc/self/status, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{key}:"))
