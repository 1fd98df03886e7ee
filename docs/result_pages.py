"""Makes pages of the site from all files in `results/` and `benchmarks/`, and gives them titles."""

from __future__ import annotations

import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

ABOUT = {
    "peers": ("Beside other libraries", "RecBole, RecTools and RePlay on the same rows, measured by the same code"),
    "ml-100k-run": (None, "what `make run` ends with"),
    "ml-1m-study": (None, "every reranker and ablation, tested at equal S_KL; where it agrees with the paper and where not"),
    "ml-1m-beyond": (None, "softmax and `setwise` against the authors' own checkpoint, three seeds"),
    "ml-1m-backbones": (None, "SASRec, GRU4Rec, Caser and BERT4Rec with and without the CD loss"),
    "ml-1m-rerankers": (None, "the plain ranking and six rerankers, five lambdas, times"),
    "ml-100k-models": (None, "what works, and how long an epoch takes"),
    "train": ("Training", "an epoch against RecBole's"),
    "data": ("Preparing the data", "time and memory against RecBole's"),
    "rerank": ("Reranking", "five catalogues, one and two threads, one user, GPU operations"),
    "recommend": ("Lists for a million users", "one process and Ray"),
    "candidates": ("Candidates of a million users", "one process and Ray"),
    "serve": ("The service under load", "latencies"),
    "parallel": ("Training by several processes", "times with one and more workers"),
    "convert": ("Converting tables", "lines per second, memory"),
    "scale": ("Steam, and ten times Steam", "time and memory of every step"),
    "startup": ("Starting", "how long until an answer"),
}
"""By file name: a title if the page has none, and what it shows. Pages are listed in this order; others follow."""

GROUPS = {"Accuracy and calibration": "results", "Speed and memory": "benchmarks"}

TITLE = re.compile(r"\A# (.+)\n")


def result_pages() -> dict[str, str]:
    """The text of every page by its file name, with the index."""
    order = list(ABOUT)
    pages: dict[str, str] = {}
    index = [
        "<!-- Made by docs/result_pages.py. -->\n\n# Results\n\n"
        "Every page names the commands that made it. They are shown here as they stand in `results/` and `benchmarks/` of the project."
    ]
    for group, folder in GROUPS.items():
        files = sorted(
            (ROOT / folder).glob("*.md"),
            key=lambda file: (order.index(file.stem) if file.stem in order else len(order), file.stem),
        )
        rows = []
        for file in files:
            title, text = titled(file)
            pages[file.name] = with_links_from_here(text, folder)
            rows.append(f"| [{title}]({file.name}) | {ABOUT.get(file.stem, ('', ''))[1]} |")
        index.append(f"## {group}\n\n| page | what it shows |\n|---|---|\n" + "\n".join(rows))
    listing = "\n".join(name.removesuffix(".md") for name in pages)
    index.append(f"```{{toctree}}\n:hidden:\n\n{listing}\n```\n")
    pages["index.md"] = "\n\n".join(index)
    return pages


def titled(file: Path) -> tuple[str, str]:
    """The title of a page, and its text with the title on top."""
    text = file.read_text(encoding="utf-8")
    if found := TITLE.match(text):
        return found[1], text
    title = ABOUT.get(file.stem, (None, ""))[0] or file.stem.capitalize()
    return title, f"# {title}\n\n{text}"


def with_links_from_here(text: str, folder: str) -> str:
    """A page with its links rewritten for `docs/results/`: to pages of both folders, to other pages, and to pictures."""

    def link(found: re.Match[str]) -> str:
        target = found[2]
        path = (ROOT / folder / target.partition("#")[0]).resolve()
        if "://" in target or target.startswith("#"):
            return found[0]
        if path.parent in {ROOT / name for name in GROUPS.values()} and path.suffix == ".md":
            return f"{found[1]}({target.rpartition('/')[2]})"
        if path.is_relative_to(ROOT / "docs"):
            return f"{found[1]}(../{target.partition('docs/')[2]})"
        return f"{found[1]}(../../{path.relative_to(ROOT).as_posix()})"

    return re.sub(r"(\])\(([^)\s]+)\)", link, text)


def with_links_to_these(text: str, folder: Path) -> str:
    """A page in `folder`, with its links to files that are pages of the site under another name changed to these pages.

    They are the files in `results/` and `benchmarks/`, and CONTRIBUTING.md.
    """

    def link(found: re.Match[str]) -> str:
        path = (folder / found[1]).resolve()
        if path == ROOT / "CONTRIBUTING.md":
            page = ROOT / "docs" / "contributing" / "index.md"
        elif path.parent in {ROOT / name for name in GROUPS.values()}:
            page = ROOT / "docs" / "results" / path.name
        else:
            return found[0]
        return f"]({os.path.relpath(page, folder)}{found[2] or ''})"

    return re.sub(r"\]\(([^)\s#:]+\.md)(#[^)\s]*)?\)", link, text)
