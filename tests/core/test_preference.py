"""Sequential preference against Eq. 2."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from recbole_leaprec import ItemCategories, sequential_preference
from recbole_leaprec.core.preference import preference_table
from tests import reference
from tests.strategies import catalogues, histories

ALPHAS = st.sampled_from([0.1, 0.5, 0.9, 1.0])


@given(catalogues(), ALPHAS, st.data())
def test_table_is_eq_2_at_every_position_of_every_user(catalogue, alpha, data):
    names, lists = catalogue
    users = data.draw(st.lists(st.one_of(st.just([]), histories(len(lists))), min_size=1, max_size=5))
    offsets = torch.tensor([0, *torch.tensor([len(user) for user in users]).cumsum(0).tolist()])
    items = torch.tensor([item for user in users for item in user], dtype=torch.long)
    table = preference_table(items, offsets, ItemCategories.from_lists(lists), alpha)
    expected = [
        reference.preference([reference.distribution(lists[i], names) for i in user[: t + 1]], alpha)
        for user in users
        for t in range(len(user))
    ]
    assert table.flatten().tolist() == pytest.approx([share for row in expected for share in row], abs=1e-6)


@given(catalogues(), ALPHAS, st.data())
def test_preference_of_a_history_is_that_at_its_end_and_sums_to_one(catalogue, alpha, data):
    names, lists = catalogue
    history = data.draw(histories(len(lists)))
    p = sequential_preference([history, []], ItemCategories.from_lists(lists), alpha)
    expected = reference.preference([reference.distribution(lists[i], names) for i in history], alpha)
    assert p[0].tolist() == pytest.approx(expected, abs=1e-6)
    assert p[0].sum().item() == pytest.approx(1, abs=1e-5)
    assert p[1].tolist() == [0.0] * len(names)


def test_the_whole_history_counts_not_only_a_recent_window():
    categories = ItemCategories.from_lists([[], ["a"], ["b"]])
    p = sequential_preference([[1] + [2] * 300], categories, alpha=1.0)
    assert p[0, 0].item() == pytest.approx(1 / 301)


@pytest.mark.parametrize("alpha", [0.0, -0.1, 1.1])
def test_alpha_out_of_range_is_refused(alpha):
    with pytest.raises(ValueError, match=r"alpha must be in \(0, 1\]"):
        sequential_preference([[1]], ItemCategories.from_lists([[], ["a"]]), alpha)


def test_unknown_items_are_refused_with_the_first_of_them():
    with pytest.raises(ValueError, match=r"2 items of the histories are not item ids \(1 to 1\), the first is 0"):
        sequential_preference([[1, 0], [7]], ItemCategories.from_lists([[], ["a"]]))
