"""The site builds without a warning and without a network, and its links lead somewhere."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.docs.pages import DOCS, ROOT

from check_links import mistakes  # isort: skip
from result_pages import result_pages, with_links_from_here, with_links_to_these  # isort: skip


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_every_link_leads_somewhere(tmp_path):
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-b",
        "html",
        "-d",
        str(tmp_path / "trees"),
        str(DOCS),
    ]
    done = subprocess.run([*command, str(tmp_path / "site")], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert mistakes(tmp_path / "site") == []


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ('<a href="other.html">', "index.html: other.html leads nowhere"),
        ('<a href="#there">', "index.html: #there is not a place of that page"),
        (
            '<script src="https://cdn.example/x.js">',
            "index.html: loads https://cdn.example/x.js, which is not part of the site",
        ),
        ('<img src="index.html">', "index.html: the picture index.html has no alternative text"),
    ],
)
def test_a_mistake_in_a_page_is_told(body, told, tmp_path):
    (tmp_path / "index.html").write_text(f'<p id="here">{body}')
    assert mistakes(tmp_path) == [told]


def test_a_good_page_has_no_mistake(tmp_path):
    (tmp_path / "index.html").write_text(
        '<p id="here"><a href="#here"></a><a href="https://recbole.io"><img src="index.html" alt="a page">'
    )
    assert mistakes(tmp_path) == []


def test_every_page_of_results_and_benchmarks_is_a_page_of_the_site_and_names_its_command():
    files = [*(ROOT / "results").glob("*.md"), *(ROOT / "benchmarks").glob("*.md")]
    pages = result_pages()
    assert {file.name for file in files} | {"index.md"} == pages.keys()
    assert [file.name for file in files if f"]({file.name})" not in pages["index.md"]] == []
    assert [
        name for name in pages if name != "index.md" and not any(word in pages[name] for word in ("python ", "leaprec "))
    ] == []


def test_links_between_these_pages_lead_to_the_pages_of_the_site():
    text = "[a](ml-1m-study.md#b) ![c](d.png) [e](../benchmarks/train.md) [f](../docs/guides/protocol.md) [g](https://recbole.io)"
    assert with_links_from_here(text, "results") == (
        "[a](ml-1m-study.md#b) ![c](../../results/d.png) [e](train.md) [f](../guides/protocol.md) [g](https://recbole.io)"
    )


def test_links_to_the_files_of_results_lead_to_the_pages_of_the_site():
    text = "[a](../../results/ml-1m-study.md#b) [c](../../benchmarks/train.md) ![d](../../results/e.png) [f](lambda.md) [g](https://recbole.io)"
    assert with_links_to_these(text, DOCS / "guides") == (
        "[a](../results/ml-1m-study.md#b) [c](../results/train.md) ![d](../../results/e.png) [f](lambda.md) [g](https://recbole.io)"
    )
