"""The page's script is made of modules; taken together they must mean what each says by itself."""

import re
from collections import Counter
from importlib.resources import files

import pytest

from recbole_leaprec.page.script import PARTS, read, script

TOP = re.compile(r"^(?:export )?(?:async )?(?:const|let|var|class|function\*?) (.*?)(?:\(| =| \{|;)", flags=re.MULTILINE)


def exported(part: str) -> set[str]:
    return {*re.findall(r"^export (?:const|function) (\w+)", read(part), flags=re.MULTILINE)}


def imported(part: str) -> list[tuple[str, str]]:
    """`(name, from which part)`, as written."""
    lines = re.findall(r'^import\b(.*?) from "\./(.*?)\.js";', read(part), flags=re.MULTILINE | re.DOTALL)
    return [(name.strip(), whose) for names, whose in lines for name in names.strip(" {}\n").split(",")]


def test_every_file_is_a_part_once():
    there = [file.name for file in files("recbole_leaprec.page").joinpath("js").iterdir()]
    assert sorted(f"{name}.js" for name in PARTS) == sorted(there)


@pytest.mark.parametrize("part", PARTS)
def test_a_part_imports_what_parts_before_it_export(part):
    before = {(name, whose) for whose in PARTS[: PARTS.index(part)] for name in exported(whose)}
    assert {*imported(part)} <= before


def test_every_exported_name_is_imported_somewhere():
    used = {entry for part in PARTS for entry in imported(part)}
    assert {(name, part) for part in PARTS for name in exported(part)} - used == set()


def test_no_name_at_the_top_is_in_two_parts():
    names = Counter(name for part in PARTS for name in TOP.findall(read(part)))
    assert {"data", "el", "users"} <= {*names}
    assert [name for name, times in names.items() if times > 1 or not name.isidentifier()] == []


def test_no_module_words_are_left():
    assert re.findall(r"^(?:import|export)\b.*", script(), flags=re.MULTILINE) == []
