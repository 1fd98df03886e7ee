"""What CONTRIBUTING.md says about adding to the project, done in a copy of it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.toy import write_dataset

ROOT = Path(__file__).parents[1]
SECTIONS = dict(re.findall(r"### (.*?)\n(.*?)(?=\n### |\Z)", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL))
SHOWN = {
    "A command": "lengths: ",
    "A reranker": "most_wanted lambda=0.3",
    "A backbone": "ShortSASRecCD on ml-100k",
    "A metric": "categorycount@10",
    "A dataset": "SASRecCD on shop",
}


def follow(text: str, project: Path) -> None:
    """Write the files of a section, and put its lines at the end of the file that it names for them."""
    elsewhere = re.search(r"one line in\s+`(.*?)`", text)
    for before, block in re.findall(r"(.*?)```\w+\n(.*?)```", text, re.DOTALL):
        if named := re.search(r"`([\w/.-]+)`:\s*$", before):
            (project / named[1]).write_text(block)
        else:
            with open(project / elsewhere[1], "a") as file:
                file.write(block)


def test_there_is_a_section_for_everything_that_one_may_add():
    assert SHOWN.keys() == SECTIONS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("title", SHOWN)
def test_following_a_section_adds_what_it_says(title, tmp_path):
    for name in ("recbole_leaprec", "properties"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "run_leaprec.py", tmp_path)
    toy = write_dataset(
        tmp_path / "made", [(f"u{u}", f"i{(u + n) % 12}", n) for u in range(9) for n in range(6)],
        {f"i{i}": ["Action", "Drama"][i % 2] for i in range(12)},
    )  # fmt: skip
    for kind in ("inter", "item"):
        (tmp_path / "dataset" / "shop").mkdir(parents=True, exist_ok=True)
        shutil.copy(toy / "toy" / f"toy.{kind}", tmp_path / "dataset" / "shop" / f"shop.{kind}")
    follow(SECTIONS[title], tmp_path)
    words = re.findall(r"^    leaprec (.*)$", SECTIONS[title], re.MULTILINE)[-1].split()
    done = subprocess.run(
        [sys.executable, "run_leaprec.py", *words], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert SHOWN[title] in done.stdout
