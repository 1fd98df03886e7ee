"""Options say what the functions behind the commands do."""

import inspect

import pytest

from recbole_leaprec.analysis.shift import shift
from recbole_leaprec.analysis.tradeoff import tradeoff
from recbole_leaprec.analysis.users import users
from recbole_leaprec.cli.command import Command
from recbole_leaprec.cli.options import Lambdas
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


def read(name: str, option: str, text: str):
    """What an option of a command makes of a text."""
    found = next(one for one in take_command(name.split())._options() if one.name == option)
    return found.type.convert(text, found, None)


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("data csv", "user"),
        ("data csv", "min_rating"),
        ("data ml-1m", "min_rating"),
        ("report", "rerankers"),
        ("tune", "trials"),
        ("train", "ray_address"),
        ("evaluate", "checkpoint"),
    ],
)
def test_none_is_nothing_where_there_may_be_nothing(name, option):
    assert read(name, option, "None") is None


@pytest.mark.parametrize(("name", "option"), [("data csv", "no_category"), ("serve", "host"), ("data ml-1m", "out")])
def test_none_is_a_text_where_there_must_be_one(name, option):
    assert read(name, option, "None") == "None"


@pytest.mark.parametrize(
    ("name", "option"), [("serve", "threads"), ("serve", "max_seconds"), ("tradeoff", "samples"), ("data csv", "max_bad")]
)
def test_none_is_refused_where_there_must_be_a_number(name, option):
    with pytest.raises(ValueError, match=f"{option} must be a .*number.*, got None"):
        read(name, option, "None")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0:1e-10:3e-11", "--lambdas has 0 more than once, got '0:1e-10:3e-11': .* take a larger step"),
        ("0,0.5,0.50", "--lambdas has 0.5 more than once"),
        ("0:1:1e-6", "--lambdas must be at most 10,001 numbers, and '0:1:1e-6' has more: take a larger step"),
        ("0:1:1e-300", "--lambdas must be at most 10,001 numbers"),
    ],
)
def test_lambdas_that_are_too_many_or_there_twice_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        Lambdas().read("lambdas", text)


def test_ten_thousand_steps_are_taken():
    lambdas = Lambdas().read("lambdas", "0:1:0.0001")
    assert (len(lambdas), lambdas[0], lambdas[-1]) == (10_001, 0, 1)
