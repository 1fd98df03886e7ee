"""The reference says everything that can be typed."""

from __future__ import annotations

import re

import click
import pytest

from recbole_leaprec.cli.options import Count, Option
from recbole_leaprec.commands import command_names, take_command
from recbole_leaprec.reranking.registry import RERANKERS
from recbole_leaprec.settings.keys import PLUGIN_KEYS, RECBOLE_KEYS, Key, known_keys
from recbole_leaprec.study.spec import KEYS as STUDY_KEYS
from tests.docs.pages import DOCS, written_pages

import reference_pages as reference  # isort: skip

PAGES = reference.reference_pages()


def test_the_pages_that_are_kept_are_those_that_the_code_makes():
    kept = {path.name: path.read_text(encoding="utf-8") for path in (DOCS / "reference" / "generated").glob("*.md")}
    assert {name for name in kept.keys() | PAGES.keys() if kept.get(name) != PAGES.get(name)} == set(), "run `make docs`"


@pytest.mark.parametrize("name", command_names())
def test_a_command_has_a_page_with_a_row_for_each_of_its_options(name):
    page = PAGES[f"command-{name.replace(' ', '-')}.md"]
    assert f"\n# leaprec {name}\n" in page
    for option in take_command(name.split()).params:
        if isinstance(option, Option):
            rows = [line for line in page.splitlines() if f"`--{option.name}` |" in line]
            assert len(rows) == 1, f"--{option.name} of {name} has no row"
            cells = [cell.strip() for cell in rows[0].split(" | ")]
            assert len(cells) == 4
            assert all(cells)
    assert f"(command-{name.replace(' ', '-')}.md)" in PAGES["commands.md"]


@pytest.mark.parametrize("name", [*PLUGIN_KEYS, *RECBOLE_KEYS])
def test_a_key_that_is_checked_has_a_section_with_its_meaning_its_values_and_its_default(name):
    key = (PLUGIN_KEYS | RECBOLE_KEYS)[name]
    section = PAGES["keys.md"].split(f"### `{name}`\n")[1].split("\n### ")[0]
    assert key.meaning[1:] in section
    assert f"- Takes: {key.allowed}\n" in section
    assert "- Default: " in section


def test_every_other_key_has_a_row():
    rows = PAGES["recbole-keys.md"]
    assert [key for key in known_keys() - PLUGIN_KEYS.keys() - RECBOLE_KEYS.keys() if f"`{key}` |" not in rows] == []


def test_a_key_that_is_added_to_the_code_is_added_to_the_page(monkeypatch):
    assert "freshness" not in PAGES["keys.md"]
    monkeypatch.setitem(PLUGIN_KEYS, "freshness", Key("weight of new items", "a number", lambda value: True))
    assert "Weight of new items" in reference.keys_page()


def test_an_option_whose_kind_has_no_words_yet_is_told():
    class Colour(click.ParamType):
        name = "colour"

    assert reference.takes(Count()) == "a whole number, 1 or more"
    with pytest.raises(StopIteration):
        reference.takes(Colour())


@pytest.mark.parametrize("name", command_names())
def test_the_keys_that_a_page_names_are_those_that_the_command_takes(name):
    command = take_command(name.split())
    if command.keys is not None:
        assert reference.CHANGED_BY.get(name, command.keys) == command.keys
        assert all(f"[`{key}`]" in PAGES[f"command-{name.replace(' ', '-')}.md"] for key in command.keys)


def test_defaults_are_those_of_the_yaml_files():
    assert reference.default_of("rerank_lambda") == "`0.3`"
    assert reference.default_of("MAX_ITEM_LIST_LENGTH").startswith("`50`; `200` for ml-1m")


def test_every_key_of_a_study_has_a_row():
    assert [key for key in STUDY_KEYS if f"| `{key}` |" not in PAGES["study-keys.md"]] == []


def test_every_reranker_is_in_the_guide_and_in_the_reference():
    guide = (DOCS / "guides" / "rerankers.md").read_text()
    assert [
        name for name in RERANKERS if f"\n| `{name}` |" not in guide or f"\n| `{name}` |" not in PAGES["rerankers.md"]
    ] == []


def test_the_names_that_the_package_exports_are_on_the_page_of_python():
    import recbole_leaprec

    page = written_pages()["docs/reference/python.md"]
    assert [
        name for name in recbole_leaprec.__all__ if name != "__version__" and f"recbole_leaprec.{name}" not in page
    ] == []


def test_the_glossary_has_a_place_for_every_word_and_no_page_uses_another_for_one_of_them():
    pages = written_pages()
    places = re.findall(r"^### (.+)$", pages["docs/glossary.md"], flags=re.MULTILINE)
    assert places == [
        "list", "history", "category", "profile", "preference", "S_KL and C_KL", "score", "plain ranking", "backbone", "reranker",
        "lambda", "CD", "candidates, catalogue", "checkpoint", "recipe",
    ]  # fmt: skip
    others = re.compile(r"\b(slate|top-N|un-?calibrated|user profile|taste profile|genre distribution)\b")
    assert {name: found[0] for name, text in pages.items() if (found := others.search(text))} == {}
