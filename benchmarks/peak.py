"""How much resident memory this process takes at its peak (Linux)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def clear_peak() -> None:
    """The peak starts again from what is held now."""
    Path("/proc/self/clear_refs").write_text("5")


def peak_now() -> int:
    """The most that this process has held since `clear_peak`, in bytes."""
    return _status("VmHWM")


def peak_of(work: Callable[[], Any]) -> tuple[Any, int]:
    """What `work` returns, and by how many bytes the peak rose above what was held before."""
    clear_peak()
    before = _status("VmRSS")
    result = work()
    return result, peak_now() - before


def _status(key: str) -> int:
    """A figure of /proc/self/status, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{key}:"))
