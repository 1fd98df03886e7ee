"""Datasets that are made for measuring have the shape that is asked for, and tastes that drift."""

import sys
from pathlib import Path

import pytest

from recbole_leaprec.analysis.category_shift import category_shift
from recbole_leaprec.convert.paper import Sizes
from tests.convert.test_csv import load

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import synthetic

SIZES = Sizes(users=150, items=80, categories=7, interactions=12_000, mean_length=80.0, categories_per_item=1.6)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "made"
    return synthetic.write(SIZES, folder, seed=3), load(folder), folder


def test_a_set_has_the_sizes_that_were_asked_for(made):
    written, dataset, _ = made
    assert (written.users, written.items, written.categories, written.interactions) == (150, 80, 7, 12_000)
    assert written.categories_per_item == pytest.approx(1.6, abs=0.05)
    assert (dataset.user_num - 1, dataset.item_num - 1, len(dataset.sequences.items)) == (150, 80, 12_000)


def test_the_category_mix_shifts_the_more_the_further_apart(made):
    _, dataset, _ = made
    table = category_shift(dataset.sequences.items, dataset.sequences.offsets, dataset.categories, [0, 10, 20, 40, 80])
    assert table["kl"].is_monotonic_increasing
    assert table["kl"].iloc[-1] > 1.2 * table["kl"].iloc[2]


def test_a_seed_fixes_everything(made, tmp_path):
    synthetic.write(SIZES, tmp_path / "made", seed=3)
    for kind in ("inter", "item"):
        assert (tmp_path / "made" / f"made.{kind}").read_bytes() == (made[2] / f"made.{kind}").read_bytes()
    synthetic.write(SIZES, tmp_path / "other", seed=4)
    assert (tmp_path / "other" / "other.inter").read_bytes() != (made[2] / "made.inter").read_bytes()
