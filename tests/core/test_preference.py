"""Sequential preference against Eq. 2."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from recbole_leaprec import ItemCategories, sequential_preference
from recbole_leaprec.core.preference import preference_after, preference_along
from tests import reference
from tests.strategies import catalogues, histories

ALPHAS = st.sampled_from([0.1, 0.5, 0.9, 1.0])


@given(catalogues(), ALPHAS, st.data())
def test_every_position_of_every_user_has_eq_2(catalogue, alpha, data):
    names, lists = catalogue
    users = data.draw(st.lists(st.one_of(st.just([]), histories(len(lists))), min_size=1, max_size=5).filter(any))
    end = torch.tensor([len(user) for user in users]).cumsum(0)
    begin = torch.tensor([0, *end[:-1]])
    items = torch.tensor([item for user in users for item in user], dtype=torch.long)
    expected = [
        reference.preference([reference.distribution(lists[i], names) for i in user[: t + 1]], alpha)
        for user in users
        for t in range(len(user))
    ]
    categories = ItemCategories.from_lists(lists)
    owner = torch.repeat_interleave(end - begin)
    after = preference_after(items, begin[owner], torch.arange(len(items)) + 1, categories, alpha)
    assert after.flatten().tolist() == pytest.approx([share for row in expected for share in row], abs=1e-6)

    start = torch.tensor([data.draw(st.integers(int(b), int(e))) for b, e in zip(begin, end, strict=True)])
    length = data.draw(st.integers(0, 8))
    along = preference_along(items, begin, start, end, length, categories, alpha)
    assert along.shape == (len(users), length, len(names))
    for user, first in enumerate(start.tolist()):
        for place in range(first, min(first + length, int(end[user]))):
            assert along[user, place - first].tolist() == pytest.approx(expected[place], abs=1e-6)


@pytest.mark.parametrize("alpha", [0.5, 0.9, 0.999, 1 - 1e-12, 1.0])
def test_a_long_history_is_eq_2_to_the_last_digit_of_float32(alpha):
    lists = [[], ["a"], ["b"], ["a", "c"], ["d"]]
    history = [4, *(1 + (n * n) % 3 for n in range(1500))]
    names, categories = ["a", "b", "c", "d"], ItemCategories.from_lists(lists)
    expected = reference.preference([reference.distribution(lists[i], names) for i in history], alpha)
    items, zero = torch.tensor(history), torch.tensor([0])
    after = preference_after(items, zero, zero + 1501, categories, alpha)
    along = preference_along(items, zero, zero + 1490, zero + 1501, 11, categories, alpha)
    for p in (after[0], along[0, -1]):
        assert p.tolist() == pytest.approx(expected, rel=1e-7, abs=1e-19)  # a share of 1e-20 may be 0


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
