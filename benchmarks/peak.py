"""How far a piece of work raises the resident memory of this process at its peak (Linux)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def peak_of(work: Callable[[], Any]) -> tuple[Any, int]:
    """What `work` returns, and by how many bytes the peak rose above what was held before."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from what is held now
    before = _status("VmRSS")
    result = work()
    return result, _status("VmHWM") - before


def _status(key: str) -> int:
    """A figure of /proc/self/status, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{key}:"))
