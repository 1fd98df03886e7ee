"""Options say what the functions behind the commands do."""

import inspect

import pytest

from recbole_leaprec.analysis.shift import shift
from recbole_leaprec.analysis.tradeoff import tradeoff
from recbole_leaprec.analysis.users import users
from recbole_leaprec.cli.command import Command
from recbole_leaprec.commands import command_names, take_command
from recbole_leaprec.convert.filters import Filters
from recbole_leaprec.convert.paper import FILTERS
from recbole_leaprec.recommend import recommend
from recbole_leaprec.report import report
from recbole_leaprec.tune import tune

FUNCTIONS = {"tradeoff": tradeoff, "shift": shift, "users": users, "report": report, "tune": tune, "recommend": recommend}


def options(name: str) -> dict:
    return {option.name: option.default for option in take_command(name.split())._options()}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_defaults_are_those_of_the_function(name):
    parameters = inspect.signature(FUNCTIONS[name]).parameters
    shared = {
        option: default
        for option, default in options(name).items()
        if option in parameters and parameters[option].default is not inspect.Parameter.empty and option != "output_dir"
    }
    assert shared
    assert shared == {option: parameters[option].default for option in shared}


@pytest.mark.parametrize("name", ["csv", *FILTERS])
def test_filters_of_a_converter_are_its_own(name):
    expected = Filters() if name == "csv" else FILTERS[name]
    found = options(f"data {name}")
    assert Filters(**{filter_: found[filter_] for filter_ in vars(expected)}) == expected


@pytest.mark.parametrize("name", command_names())
def test_every_command_says_what_it_does_with_an_example(name):
    command = take_command(name.split())
    assert isinstance(command, Command)
    assert command.name == name
    text = command.get_help(None)
    assert text.startswith(f"usage: leaprec {name}")
    assert name == "doctor" or "\n  leaprec " in text
    assert [
        option.name for option in command._options() if option.default is None and not option.shown and not option.needed
    ] == []
