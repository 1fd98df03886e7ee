"""The README is short, what it shows can be run, and what it says has a place to read on."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import recbole_leaprec
from recbole_leaprec.reranking import Reranking
from recbole_leaprec.settings.keys import PLUGIN_KEYS
from recbole_leaprec.trainer import LeapRecTrainer

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
KEYS = ROOT / "docs" / "reference" / "generated" / "keys.md"


def test_it_is_read_in_a_minute():
    assert len(README.splitlines()) <= 130


def linked_files(page: Path) -> list[Path]:
    targets = re.findall(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)", page.read_text(encoding="utf-8"))
    return [(page.parent / target).resolve() for target in targets if "://" not in target]


def test_every_link_leads_to_a_file_that_is_kept():
    kept = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if kept.returncode:
        pytest.skip("not a checkout")
    files = {ROOT / name for name in kept.stdout.splitlines()}
    assert [file for file in linked_files(ROOT / "README.md") if file not in files] == []


def places_with_figures() -> list[str]:
    """A row that links to a measured page stands for itself; the rest of a section, for itself."""
    text = re.sub(r"^```.*?^```$", "", README, flags=re.DOTALL | re.MULTILINE)
    found = []
    for section in text.split("\n## "):
        rows = [line for line in section.splitlines() if line.startswith("|") and MEASURED.search(line)]
        found += [*rows, "\n".join(line for line in section.splitlines() if line not in rows)]
    return [place for place in found if figures(place)]


MEASURED = re.compile(r"\]\(((?:results|benchmarks)/[\w-]+\.md)\)")


def figures(place: str) -> list[str]:
    """Numbers with a point, and whole ones that count users, seconds, megabytes or times; no versions, and no numbers of links."""
    words = re.sub(r"\]\([^)]*\)|`[^`]*`|Python 3\.\d+(?: to 3\.\d+)?", "", place)
    return re.findall(r"(?<![\w.,@])(?:\d*\.\d+|[\d,]+(?= times| s\b| ms\b| MB\b| test users| epochs))", words)


@pytest.mark.parametrize("place", places_with_figures(), ids=lambda place: place.strip("# |")[:30])
def test_every_figure_is_on_a_page_that_its_place_links_to_and_that_names_its_command(place):
    pages = [(ROOT / name).read_text(encoding="utf-8") for name in MEASURED.findall(place)]
    assert pages
    assert all(re.search(r"\b(?:python|leaprec|make) \w", page) for page in pages)
    stated = {
        figure for figure in figures(place) for page in pages if re.search(rf"(?<![\d.,]){re.escape(figure)}(?!\d)", page)
    }
    assert {*figures(place)} - stated == set()


def test_there_are_figures_to_check():
    assert sum(len(figures(place)) for place in places_with_figures()) > 20


def test_the_python_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(block, {})


def test_every_key_of_the_plugin_is_on_the_page_of_keys_that_it_links_to():
    assert KEYS in linked_files(ROOT / "README.md")
    assert [key for key in PLUGIN_KEYS if f"\n### `{key}`\n" not in KEYS.read_text(encoding="utf-8")] == []


def files_called(work: Callable[[], object]) -> list[str]:
    """The files of the package whose functions some work calls, each when it is first called."""
    package, found, constructors = Path(recbole_leaprec.__file__).parent, {}, []

    def see(frame, event, argument):
        if frame.f_code.co_name == "__init__" and event in ("call", "return"):  # what is made is no work on a batch yet
            constructors.append(frame) if event == "call" else constructors.pop()
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(package) and not constructors:
            found[path.relative_to(package).as_posix()] = True

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(before)
    return list(found)


@pytest.mark.parametrize("batch", ["A training batch", "An evaluation batch"])
def test_a_batch_takes_the_way_through_the_code(batch, prepare, tmp_path):
    config, dataset, (train, _, test) = prepare(output_dir=str(tmp_path / "run"), checkpoint_dir=str(tmp_path / "run"))
    trainer = LeapRecTrainer(config, config.model_class(config, dataset), dataset)
    called = files_called(
        (lambda: trainer._train_epoch(train, 0))
        if batch == "A training batch"
        else (lambda: trainer.evaluate_rerankings(test, [Reranking("leaprec", 0.3)]))
    )
    way = re.search(rf"^{batch}.*?:\n\n((?:    .*\n)+)", CONTRIBUTING, flags=re.MULTILINE)[1]
    first_of_lines = re.findall(r"^    (?:-> )?(\S+\.py)", way, flags=re.MULTILINE)
    assert len(first_of_lines) == 5
    assert [name for name in called if name in first_of_lines] == first_of_lines
    assert set(re.findall(r"`(\S+\.py)`", way)) <= {*called}
