"""Small datasets as atomic files, and configs that use them."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest
from hypothesis import settings

from recbole_leaprec.config import LeapRecConfig
from recbole_leaprec.data import create_dataset, data_preparation
from tests.browser import browser, open_page  # noqa: F401
from tests.fuzz.cases import FUZZED
from tests.toy import GENRES, SMALL, write_dataset
from tests.toy_study import finished_study  # noqa: F401

signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell takes away from what runs in its background
os.environ["RAY_AUTH_MODE"] = "disabled"  # else a local Ray leaves a token in the home, and clusters ask for it from then on
settings.register_profile("default", deadline=None, print_blob=True)
settings.load_profile("default")


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items):
    """Mark tests with a browser, and keep together what shares a start: Ray, the browser's page, the fuzzers' process."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)
        groups = [name for name in ("ray", "browser") if item.get_closest_marker(name)]
        if item.path.parent.name == "fuzz":
            groups.append("fuzz")
        if groups:
            item.add_marker(pytest.mark.xdist_group(groups[0]))


def pytest_terminal_summary(terminalreporter):
    """What the fuzzers ran, in whichever process."""
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, told in getattr(report, "user_properties", ()):
                if name == FUZZED and report.when == "call":
                    terminalreporter.write_line(told)


@pytest.fixture
def toy(tmp_path) -> Path:
    """30 users with 3 to 25 interactions over 40 items of 4 genres; rows in random order, times with ties."""
    draw = random.Random(7)
    inter = []
    for user in range(30):
        for item in draw.sample(range(40), draw.choice([3, 4, 8, 25])):
            inter.append((f"u{user}", f"i{item}", draw.randrange(1_000_000_000, 1_000_000_020)))
    draw.shuffle(inter)
    items = {f"i{i}": " ".join(draw.sample(GENRES, draw.choice([0, 1, 1, 2, 3]))) for i in range(40)}
    return write_dataset(tmp_path / "data", inter, items)


@pytest.fixture
def make_config(toy):
    """A config of a small model on the toy data, with changes."""

    def make(model="SASRecCD", **changes):
        places = {
            "data_path": str(toy),
            "checkpoint_dir": str(toy),
        }  # RecBole's trainer would make `saved` where the tests run
        return LeapRecConfig(model, "toy", config_dict={**SMALL, **places, **changes})

    return make


@pytest.fixture
def prepare(make_config):
    """`(config, dataset, (train, valid, test))` on the toy data."""

    def make(model="SASRecCD", **changes):
        config = make_config(model, **changes)
        dataset = create_dataset(config)
        return config, dataset, data_preparation(config, dataset)

    return make
