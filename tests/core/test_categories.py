"""ItemCategories against the definitions."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from recbole_leaprec import ItemCategories
from tests import reference
from tests.strategies import catalogues, preferences

BETAS = st.sampled_from([0.001, 0.01, 0.3, 0.99])


@given(catalogues())
def test_distribution_is_uniform_over_an_items_categories(catalogue):
    names, lists = catalogue
    categories = ItemCategories.from_lists(lists)
    assert categories.names == names
    assert reference.rows(categories)[0].tolist() == [0.0] * len(names)
    for i, own in enumerate(lists[1:], 1):
        assert reference.rows(categories)[i].tolist() == pytest.approx(reference.distribution(own, names))
    assert categories.uncategorised == sum(not own for own in lists[1:])


@given(catalogues(), st.integers(1, 7), st.data())
def test_shares_are_the_same_in_pieces(catalogue, at_once, data):
    categories = ItemCategories.from_lists(catalogue[1])
    items = torch.tensor(
        data.draw(st.lists(st.lists(st.integers(0, categories.n_items - 1), min_size=3, max_size=3), max_size=5))
    )
    items = items.view(-1, 3).long()
    weights = torch.arange(1.0, len(items) + 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("recbole_leaprec.core.categories._AT_ONCE", at_once)
        got = categories.add_shares(torch.zeros(len(items), categories.n_categories).double(), items, weights=weights)
    assert torch.allclose(got, reference.rows(categories)[items].sum(1) * weights[:, None])


@given(catalogues())
def test_items_share_a_profile_exactly_when_they_share_their_set_of_categories(catalogue):
    names, lists = catalogue
    categories = ItemCategories.from_lists(lists)
    sets = [frozenset(own) or frozenset(names) for own in lists[1:]]
    profiles = categories.profile_of_item[1:].tolist()
    assert categories.n_profiles == len(set(sets)) == len(set(profiles))
    assert len(set(zip(sets, profiles, strict=True))) == len(set(sets))
    assert 0 not in profiles
    assert torch.equal(categories.shares(torch.arange(len(lists))), reference.rows(categories))


@given(catalogues(), st.data())
def test_some_of_the_items_are_as_if_there_were_no_others(catalogue, data):
    names, lists = catalogue
    chosen = data.draw(st.lists(st.integers(1, len(lists) - 1), unique=True))
    part = ItemCategories.from_lists(lists).only(torch.tensor(chosen, dtype=torch.long))
    index = {name: number for number, name in enumerate(names)}
    expected = ItemCategories(names, [[], *([index[name] for name in lists[item]] for item in chosen)])
    assert part.__dict__.keys() == expected.__dict__.keys()
    for name, value in expected.__dict__.items():
        assert getattr(part, name) == value if name in ("names", "_largest") else torch.equal(getattr(part, name), value), (
            name
        )
    assert part.uncategorised == expected.uncategorised


@given(catalogues(), BETAS, st.data())
def test_closed_form_kl_is_the_kl(catalogue, beta, data):
    names, lists = catalogue
    p = data.draw(preferences(lists, names))
    categories = ItemCategories.from_lists(lists)
    expected = [reference.kl(p, reference.distribution(own, names), beta) for own in lists[1:]]
    items = torch.arange(1, len(lists))
    several = categories.kl(torch.tensor([p], dtype=torch.float64), items[None], beta)[0]
    one_each = categories.kl(torch.tensor([p] * len(items), dtype=torch.float64), items, beta)
    shared = categories.kl_of_shared(torch.tensor([p] * 2, dtype=torch.float64), items, beta)
    assert several.tolist() == pytest.approx(expected, abs=1e-12)
    assert shared.tolist() == [pytest.approx(expected, abs=1e-12)] * 2
    assert one_each.tolist() == pytest.approx(expected, abs=1e-12)


@given(catalogues(), BETAS, st.data())
def test_saving_by_profile_is_the_fall_of_the_divergence(catalogue, beta, data):
    names, lists = catalogue
    p = data.draw(preferences(lists, names))
    picked = data.draw(st.lists(st.integers(1, len(lists) - 1), max_size=4))
    rows = [reference.distribution(own, names) for own in lists]
    categories = ItemCategories.from_lists(lists)
    total = torch.tensor([[sum(rows[i][c] for i in picked)] for c in range(len(names))], dtype=torch.float64)
    p_of_pair = torch.tensor([p], dtype=torch.float64).T[categories.pair_category]
    saved = categories.sum_by_profile(categories.saved_by_pair(p_of_pair, total, len(picked) + 1, beta))[:, 0]
    after = [
        reference.kl(p, reference.mean([rows[j] for j in [*picked, i]], len(names)), beta) for i in range(1, len(lists))
    ]
    by_item = saved[categories.profile_of_item[1:]].tolist()
    constant = after[0] + by_item[0]
    assert [constant - s for s in by_item] == pytest.approx(after, abs=1e-9)
    assert saved[0] == 0  # padding saves nothing


@pytest.mark.parametrize("share", [0.0, 1e-45, 1e-38, 1e-30, 1e-10])
def test_kl_stays_finite_in_float32_for_categories_last_seen_hundreds_of_steps_ago(share):
    categories = ItemCategories.from_lists([[], ["a"], ["b"]])
    kl = categories.kl(torch.tensor([[share, 1 - share]]), torch.tensor([[1, 2]]))
    assert kl[0].tolist() == pytest.approx([math.log(100), 0], abs=1e-5)


def test_kl_of_an_item_with_a_perfect_fit_is_zero():
    categories = ItemCategories.from_lists([[], ["a", "b"]])
    assert categories.kl(torch.tensor([[0.5, 0.5]]), torch.tensor([1])).item() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    ("lists", "message"), [([["a"], ["a"]], "item 0 is padding"), ([[], []], "no item has any category")]
)
def test_bad_catalogues_are_refused(lists, message):
    with pytest.raises(ValueError, match=message):
        ItemCategories.from_lists(lists)
