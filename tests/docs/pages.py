"""The pages that people read, and the programs that make the site, which are no part of the package."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS))

MADE = (DOCS / "_build", DOCS / "results", DOCS / "reference" / "generated")
"""What building the site writes."""


def written_pages() -> dict[str, str]:
    """README, CONTRIBUTING and every page of the site that is not made by a program, by name."""
    files = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
    kept = [file for file in files if not any(file.is_relative_to(folder) for folder in MADE)]
    return {file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8") for file in kept}


def blocks(text: str, kind: str) -> list[str]:
    """The fenced blocks of a kind."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
