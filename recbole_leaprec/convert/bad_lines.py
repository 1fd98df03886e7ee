"""Counts lines that cannot be read, and keeps the first ones to show them. Too many stop the run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

SHOWN = 3
"""How many bad lines are kept to be shown."""


@dataclass
class BadLines:
    """The bad lines of a file.

    Attributes:
        most: how many are allowed.
    """

    path: Path
    most: int
    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, number: int | None, what: str, text: str = "") -> None:
        """Count a bad line; ValueError if there are more than allowed."""
        self.count += 1
        if len(self.first) < SHOWN:
            where = "a line" if number is None else f"line {number:,}"
            self.first.append(f"{where}: {what}" + (f": {text[:120]!r}" if text else ""))
        if self.count > self.most:
            raise ValueError(
                f"{self.path}: more than {self.most} lines cannot be read (--max_bad); the first: {'; '.join(self.first)}"
            )

    def check_share(self, good: int) -> None:
        """ValueError if there are more bad lines than good ones: then the file has another form, and all are wrong."""
        if self.count > good:
            raise ValueError(
                f"{self.path}: {self.count:,} lines cannot be read and {good:,} can; the first of the former: {'; '.join(self.first)}"
            )

    def told(self) -> str:
        """A sentence about the bad lines; empty if there are none."""
        if not self.count:
            return ""
        lines = "1 line" if self.count == 1 else f"{self.count:,} lines"
        return f"{lines} of {self.path.name} left out as unreadable: {'; '.join(self.first)}"
