"""Flat sequences and windows against what they promise."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from recbole_leaprec.data.sequences import Sequences, Windows

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
