"""How the category mix of a history shifts with time, the paper's Figure 1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd
import torch
from torch import Tensor

from recbole_leaprec.common.defaults import SHIFT_LONGEST, SHIFT_STEP, SHIFT_WINDOW
from recbole_leaprec.core.calibration import kl_divergence
from recbole_leaprec.core.categories import ItemCategories
from recbole_leaprec.data import SequenceDataset

_known: dict[tuple[str, ...], pd.DataFrame] = {}
"""Earlier results of `shift_of`. They depend on the data alone, and one command may measure many models."""


def shift_of(dataset: SequenceDataset, beta: float) -> pd.DataFrame:
    """`category_shift` of a dataset, with the default window and intervals."""
    marks = dataset.fingerprint
    key = (marks["sequences"], marks["items' categories"], str(beta))
    if key not in _known:
        intervals = range(0, SHIFT_LONGEST + 1, SHIFT_STEP)
        sequences = dataset.sequences
        _known[key] = category_shift(sequences.items, sequences.offsets, dataset.categories, intervals, SHIFT_WINDOW, beta)
    return _known[key]


def category_shift(
    items: Tensor,
    offsets: Tensor,
    categories: ItemCategories,
    intervals: Sequence[int],
    window: int = SHIFT_WINDOW,
    beta: float = 0.01,
) -> pd.DataFrame:
    """For each interval d, the mean KL(p || q~): p is the mix of a window, q that of the window d items earlier.

    It is the mean over the user's pairs of windows, then over the users who have such pairs, so all users count equally.

    Args:
        items, offsets: all histories, oldest item first: user u's are `items[offsets[u]:offsets[u+1]]`.

    Returns:
        Columns `interval`, `kl`, `users`; kl is nan where no history is long enough.
    """
    length = offsets[1:] - offsets[:-1]
    total, users = torch.zeros(len(intervals), dtype=torch.float64), torch.zeros(len(intervals), dtype=torch.long)
    long = (length >= window).nonzero()[:, 0]  # others have no window
    # Only some users at a time: sums of all categories at all positions would fill the memory.
    group = length[long].cumsum(0) * categories.n_categories // _AT_ONCE
    for some in long.split(torch.unique_consecutive(group, return_counts=True)[1].tolist()):
        of, own = torch.repeat_interleave(length[some]), length[some]
        place = torch.arange(len(of)) - (own.cumsum(0) - own)[of] + offsets[some][of]
        for number, (divergence, count) in enumerate(
            _divergences(items[place], of, own, categories, intervals, window, beta)
        ):
            total[number] += divergence
            users[number] += count
    columns = {"interval": list(intervals), "kl": (total / users).tolist(), "users": users.tolist()}
    return pd.DataFrame(columns)


_AT_ONCE = 2**20
"""How many sums are held at a time."""
_ROUNDING = 1e-9
"""A smaller divergence counts as 0: it is the rounding error of long sums."""


def _divergences(
    items: Tensor,
    user: Tensor,
    length: Tensor,
    categories: ItemCategories,
    intervals: Sequence[int],
    window: int,
    beta: float,
) -> Iterator[tuple[float, int]]:
    """For each interval, `(sum of these users' mean divergences, number of users who have one)`."""
    sums = torch.zeros(len(items) + 1, categories.n_categories, dtype=torch.float64)
    torch.cumsum(categories.shares(items), 0, out=sums[1:])
    end = length.cumsum(0)
    for interval in intervals:
        start = torch.arange(max(len(items) - window - interval + 1, 0))
        start = start[start + interval + window <= end[user[start]]]  # both windows are the same user's
        p, q = ((sums[at + window] - sums[at]) / window for at in (start + interval, start))
        divergence = kl_divergence(p.clamp_min(0), q.clamp_min(0), beta)
        divergence = divergence.where(divergence > _ROUNDING, 0.0)
        count = torch.bincount(user[start], minlength=len(length))
        total = torch.zeros(len(count), dtype=torch.float64).index_add_(0, user[start], divergence)
        yield (total / count.clamp_min(1)).sum().item(), int((count > 0).sum())
