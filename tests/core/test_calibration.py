"""S_KL of lists against Eq. 1, 3 and 4."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from recbole_leaprec import ItemCategories, miscalibration
from tests import reference
from tests.strategies import catalogues, preferences


@given(catalogues(), st.sampled_from([0.001, 0.01, 0.5]), st.data())
def test_miscalibration_is_the_kl_to_the_lists_mean_padding_aside(catalogue, beta, data):
    names, lists = catalogue
    p = data.draw(preferences(lists, names))
    recommended = data.draw(st.lists(st.integers(0, len(lists) - 1), min_size=1, max_size=6))
    rows = [reference.distribution(lists[i], names) for i in recommended if i != 0]
    expected = reference.kl(p, reference.mean(rows, len(names)), beta)
    got = miscalibration(torch.tensor([p]), torch.tensor([recommended]), ItemCategories.from_lists(lists), beta)
    assert got.item() == pytest.approx(expected, abs=1e-5)


def test_a_list_of_padding_is_as_bad_as_can_be_and_no_preference_is_no_miscalibration():
    categories = ItemCategories.from_lists([[], ["a"], ["b"]])
    p = torch.tensor([[0.7, 0.3], [0.0, 0.0]])
    assert miscalibration(p, torch.tensor([[0, 0], [1, 2]]), categories).tolist() == pytest.approx([math.log(100), 0])


def test_order_does_not_matter():
    categories = ItemCategories.from_lists([[], ["a"], ["b"], ["a", "b"]])
    p = torch.tensor([[0.2, 0.8]])
    one, other = torch.tensor([[1, 2, 3]]), torch.tensor([[3, 1, 2]])
    assert miscalibration(p, one, categories).item() == pytest.approx(miscalibration(p, other, categories).item())
