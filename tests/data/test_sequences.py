"""Flat sequences, windows and negatives against what they promise."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from recbole_leaprec.data.sequences import NegativeSampler, Sequences, Windows

USERS = st.lists(st.lists(st.integers(1, 9), max_size=12), min_size=1, max_size=6).filter(any)


def flat(users):
    offsets = torch.tensor([0, *torch.tensor([len(user) for user in users]).cumsum(0).tolist()])
    return Sequences(torch.tensor([item for user in users for item in user]), offsets)


def positions(users):
    return [(u, t) for u, user in enumerate(users) for t in range(len(user))]


@given(USERS, st.integers(1, 6))
def test_before_gives_the_last_items_before_a_position(users, length):
    sequences = flat(users)
    items, count = sequences.before(torch.arange(len(sequences.items)), length)
    for row, (u, t) in enumerate(positions(users)):
        expected = users[u][max(0, t - length) : t]
        assert items[row].tolist() == expected + [0] * (length - len(expected))
        assert count[row] == len(expected)


@given(USERS)
def test_history_gives_everything_before_a_position(users):
    sequences = flat(users)
    rows, items = sequences.history(torch.arange(len(sequences.items)))
    expected = [(row, item) for row, (u, t) in enumerate(positions(users)) for item in users[u][:t]]
    assert list(zip(rows.tolist(), items.tolist(), strict=True)) == expected


@given(st.lists(st.integers(0, 40), min_size=1, max_size=6), st.integers(1, 9))
def test_windows_train_every_input_once_and_give_it_its_whole_past_or_half_a_window(lengths, window):
    ends = torch.tensor(lengths).cumsum(0)
    starts = ends - torch.tensor(lengths)
    windows = Windows.cut(starts, ends, window)
    context = {}
    for start, stop, first in zip(windows.start.tolist(), windows.stop.tolist(), windows.first.tolist(), strict=True):
        assert 1 <= stop - start <= window
        for place in range(first, stop):
            assert place not in context
            context[place] = place - start
    assert sorted(context) == list(range(sum(lengths)))
    for begin, end in zip(starts.tolist(), ends.tolist(), strict=True):
        for place in range(begin, end):
            assert context[place] == place - begin or context[place] >= window // 2


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
