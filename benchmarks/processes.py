"""The memory of a command and all processes that it starts (Linux)."""

from __future__ import annotations

from pathlib import Path


def memory(process: int) -> int:
    """Bytes of a process and its child processes (PSS): what each holds alone, and its share of what it shares."""
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
