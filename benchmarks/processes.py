"""The memory of a command with all the processes that it starts (Linux)."""

from __future__ import annotations

from pathlib import Path


def memory(process: int) -> int:
    """Bytes that the process and those below it hold by themselves, and their share of what they share (PSS)."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        children = [
            int(child)
            for task in Path(f"/proc/{process}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    except (FileNotFoundError, ProcessLookupError):
        return 0  # it ended between the listing and the reading
    own = sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return own + sum(map(memory, children))
