"""Sequential category preference, Eq. 2 of the paper."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from recbole_leaprec.core.categories import ItemCategories

_NOTHING = 1e-20
"""Older items with less than this share of the preference in total are skipped: no divergence would show a difference."""


def preference_after(items: Tensor, begin: Tensor, end: Tensor, categories: ItemCategories, alpha: float = 0.9) -> Tensor:
    """The preference `[B, C]` after each of B histories `items[begin:end]`, oldest item first.

    Args:
        items: `[N]`, all sequences one after the other.
        begin, end: `[B]`; the row of an empty history is all zero.
        alpha: the weight of an item relative to the item after it, in (0, 1]; 1 gives the static preference.
    """
    check_alpha(alpha)
    sums = _decayed_sums(items, begin, end, categories, alpha)
    return sums.div_(_weight(end - begin, alpha).clamp_min_(1)[:, None]).float()


def preference_along(
    items: Tensor, begin: Tensor, start: Tensor, end: Tensor, length: int, categories: ItemCategories, alpha: float = 0.9
) -> Tensor:
    """The preference `[B, L, C]` after each of the L items from `start` on, from all items since `begin`, for B users.

    `p_t = S_t / Z_t` with `S_t = alpha S_{t-1} + p(.|i_t)` and `Z_t = alpha Z_{t-1} + 1`. One weighted sum counts the items
    before `start`. Then come the steps, one after the other, for all users at once.

    Args:
        items, alpha: as for `preference_after`.
        begin, start, end: `[B]`, where the user's sequence begins, where the L items begin, and where the sequence ends.
            Values after its end have no meaning.
    """
    check_alpha(alpha)
    place = start + torch.arange(length, device=items.device)[:, None]
    taken = items[torch.minimum(place, end - 1)] * (place < end)
    # The entries of all steps, in the order of the steps, are found at once: the loop then needs one call per step.
    of, category, share = categories.entries(taken.flatten())
    entry = of % max(len(start), 1) * categories.n_categories + category
    counts = torch.bincount(of // max(len(start), 1), minlength=length).cpu().tolist()
    total = _weight(place - begin + 1, alpha)[..., None]
    sums = _decayed_sums(items, begin, start, categories, alpha)
    p = torch.empty(length, *sums.shape, device=items.device)  # steps first: each is written in one piece
    for now, weight, entries, shares in zip(p, total, entry.split(counts), share.split(counts), strict=True):
        sums.mul_(alpha).view(-1).index_add_(0, entries, shares)
        torch.div(sums, weight, out=now)
    return p.transpose(0, 1)


def sequential_preference(histories: Sequence[Sequence[int]], categories: ItemCategories, alpha: float = 0.9) -> Tensor:
    """p(c|u) (Eq. 2) after each history: `sum_s alpha^(T-s) p(c|i_s) / sum_s alpha^(T-s)`.

    Args:
        histories: item ids of each user, oldest first.
        alpha: the weight of an item relative to the item after it, in (0, 1]; 1 gives the static preference (Steck, 2018).

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
    end, device = lengths.cumsum(0), categories.device
    return preference_after(items.to(device), (end - lengths).to(device), end.to(device), categories, alpha)


def check_alpha(alpha: float) -> None:
    if not 0 < alpha <= 1:
        raise ValueError(f"alpha must be in (0, 1], got {alpha}")


def _decayed_sums(items: Tensor, begin: Tensor, end: Tensor, categories: ItemCategories, alpha: float) -> Tensor:
    """S after each of the histories `items[begin:end]`, `[B, C]` float64."""
    if alpha < 1:
        begin = torch.maximum(begin, end - math.ceil(math.log(_NOTHING) / math.log(alpha)))
    count = end - begin
    row = torch.repeat_interleave(count)
    back = count.cumsum(0)[row] - 1 - torch.arange(len(row), device=items.device)  # steps from the history's last item
    sums = torch.zeros(len(count), categories.n_categories, dtype=torch.float64, device=items.device)
    return categories.add_shares(sums, items[end[row] - 1 - back], row, alpha ** back.double())


def _weight(count: Tensor, alpha: float) -> Tensor:
    """Z after `count` items, float64: 1 + alpha + alpha^2 + ..."""
    if alpha == 1:
        return count.double()
    log_alpha = math.log(alpha)
    return torch.expm1(count.double() * log_alpha) / math.expm1(log_alpha)
