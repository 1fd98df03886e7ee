"""Negatives are drawn evenly from what a user does not have."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from recbole_leaprec.data.negatives import NegativeSampler


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 7)), max_size=20), st.integers(0, 3))
def test_negatives_are_every_item_that_the_user_does_not_have(pairs, user):
    owned = {item for u, item in pairs if u == user}
    users, items = (
        torch.tensor([p[0] for p in pairs], dtype=torch.long),
        torch.tensor([p[1] for p in pairs], dtype=torch.long),
    )
    sampler = NegativeSampler(users, items, n_users=4, n_items=8)
    assert sampler.available[user] == 7 - len(owned)
    if len(owned) < 7:
        draws = sampler.sample(torch.full((50,), user), (50, 20), torch.Generator().manual_seed(1))
        assert set(draws.unique().tolist()) == set(range(1, 8)) - owned


def test_negatives_are_drawn_uniformly():
    sampler = NegativeSampler(torch.tensor([0, 0]), torch.tensor([2, 5]), n_users=1, n_items=8)
    draws = sampler.sample(torch.zeros(1, dtype=torch.long), (1, 50_000), torch.Generator().manual_seed(1))
    counts = torch.bincount(draws[0], minlength=8)
    assert counts[[0, 2, 5]].tolist() == [0, 0, 0]
    assert ((counts[[1, 3, 4, 6, 7]] - 10_000).abs() < 500).all()
