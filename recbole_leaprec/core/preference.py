"""Sequential category preference, Eq. 2 of the paper."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from recbole_leaprec.core.categories import ItemCategories


def preference_table(items: Tensor, offsets: Tensor, categories: ItemCategories, alpha: float = 0.9) -> Tensor:
    """`[N, C]`: row n is the preference p_t of a user who has just consumed `items[n]`, from the whole history so far.

    `p_t = S_t / Z_t` with `S_t = alpha S_{t-1} + p(.|i_t)` and `Z_t = alpha Z_{t-1} + 1`: one pass over the steps, all
    users at once, linear in the number of interactions.

    Args:
        items: `[N]`, all sequences one after the other, each oldest first.
        offsets: `[U+1]`, user u's items are `items[offsets[u]:offsets[u+1]]`.
        alpha: how much a step back counts, in (0, 1]; 1 gives the static preference.
    """
    check_alpha(alpha)
    lengths, by_length = (offsets[1:] - offsets[:-1]).sort(descending=True, stable=True)
    starts = offsets[:-1][by_length]
    # How many users still have an item at step t; longest first, so that they are always the leading rows.
    alive = len(lengths) - torch.searchsorted(lengths.flip(0), torch.arange(int(lengths.max()) if len(lengths) else 0,
                                              device=lengths.device), right=True)  # fmt: skip
    table = torch.empty(len(items), categories.n_categories, device=items.device)
    decayed = torch.zeros(len(lengths), categories.n_categories, dtype=torch.float64, device=items.device)
    weight = 0.0
    for step, count in enumerate(alive.tolist()):
        rows = starts[:count] + step
        decayed = categories.add_shares(decayed[:count].mul_(alpha), items[rows])
        weight = alpha * weight + 1
        table[rows] = (decayed / weight).float()
    return table


def sequential_preference(histories: Sequence[Sequence[int]], categories: ItemCategories, alpha: float = 0.9) -> Tensor:
    """p(c|u) (Eq. 2) after each history: `sum_s alpha^(T-s) p(c|i_s) / sum_s alpha^(T-s)`.

    Args:
        histories: item ids of each user, oldest first.
        alpha: how much a step back counts, in (0, 1]; 1 gives the static preference (Steck, 2018).

    Returns:
        `[B, C]`; the row of an empty history is all zero.

    Example:
        >>> categories = ItemCategories.from_lists([[], ["Action"], ["Drama"]])
        >>> sequential_preference([[1, 2], [2]], categories, alpha=0.5)
        tensor([[0.3333, 0.6667],
                [0.0000, 1.0000]])
    """
    lengths = torch.tensor([len(history) for history in histories], dtype=torch.long)
    items = torch.tensor([item for history in histories for item in history], dtype=torch.long)
    bad = (items < 1) | (items >= categories.n_items)
    if bad.any():
        raise ValueError(
            f"{int(bad.sum())} items of the histories are not item ids (1 to {categories.n_items - 1}), "
            f"the first is {int(items[bad][0])}"
        )
    return preference_of_runs(items, lengths, categories, alpha)


def preference_of_runs(items: Tensor, lengths: Tensor, categories: ItemCategories, alpha: float = 0.9) -> Tensor:
    """`sequential_preference` of histories that stand one after the other in `items` `[N]`, of these lengths `[B]`."""
    check_alpha(alpha)
    users, ends = torch.repeat_interleave(lengths), lengths.cumsum(0)
    weights = alpha ** (ends[users] - 1 - torch.arange(len(items))).double()
    total = torch.zeros(len(lengths), dtype=torch.float64).index_add_(0, users, weights)
    device = categories.device
    sums = torch.zeros(len(lengths), categories.n_categories, dtype=torch.float64, device=device)
    return categories.add_shares(sums, items.to(device), users.to(device), (weights / total[users]).to(device)).float()


def check_alpha(alpha: float) -> None:
    if not 0 < alpha <= 1:
        raise ValueError(f"alpha must be in (0, 1], got {alpha}")
