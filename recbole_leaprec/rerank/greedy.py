"""Greedy reranking, Eq. 12 of the paper, exact over the whole catalogue."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from recbole_leaprec.categories import ItemCategories

# Objectives closer than this are equal, and go to the more relevant item. Without it the winner between two items
# that gain the same would be decided by the last bit of a sum, which no two devices agree on.
TIE = 1e-9


def greedy(
    scores: Tensor, p: Tensor, categories: ItemCategories, k: int, weight: Callable[[int], float], beta: float
) -> Tensor:
    """Pick, at each position, the unpicked item that maximises `(1 - w) r_i - w dS_KL(i | picked)`.

    `dS_KL` depends on an item's profile alone, so it is found once a profile and step (`[B, P]`) and looked up by item;
    nothing of size B x I x C is ever built.

    Args:
        scores: `[B, I]` relevance r, -inf for items that are not allowed.
        p: `[B, C]` the preference to calibrate to.
        weight: w at position 1, 2, ..., k.

    Returns:
        `[B, k]` item ids, 0 where a user has no allowed item left.
    """
    # Most relevant first, equal scores by id: the first maximum is then the one that ties go to.
    relevance, items = scores.double().sort(dim=1, descending=True, stable=True)
    profiles = categories.profile_of_item[items]
    p = p.double()
    picked = torch.zeros_like(p)
    open_ = relevance > -torch.inf
    relevance = relevance.where(open_, 0.0)  # 0 * -inf is nan
    lists = torch.zeros(len(scores), k, dtype=torch.long, device=scores.device)
    for position in range(1, k + 1):
        w = weight(position)
        saved = categories.saved_by_profile(p, picked, position, beta)
        objective = (1 - w) * relevance + w * saved.gather(1, profiles)
        objective.masked_fill_(~open_, -torch.inf)
        best = objective.amax(1, keepdim=True)
        place = (objective >= best - TIE).int().argmax(1, keepdim=True)
        some = best > -torch.inf  # a user with nothing left has place 0, an item already picked
        item = items.gather(1, place).where(some, 0)
        lists[:, position - 1 : position] = item
        picked += categories.distribution[item[:, 0]]
        open_.scatter_(1, place, False)
    return lists
