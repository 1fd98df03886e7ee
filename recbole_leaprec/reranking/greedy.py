"""Greedy reranking, Eq. 12 of the paper, exact over the whole catalogue.

By how much an item lowers the divergence depends only on its profile. So at each position only the best unpicked item of
each profile can win, and there are few profiles. Objectives are computed in float64. Objectives closer than `TIE` are equal:
the more relevant item wins, then the lower id. Without this rule the last bit of a sum would decide, and devices differ in
that bit.

Two engines make the same lists: compiled loops for the CPU (`kernels.greedy`, called by `compiled`), and tensor operations
for all other devices (here). On those, it is slow to start an operation, and slower to wait for its result. The weight of
each method, such as lambda^(1/k), is in `registry`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from recbole_leaprec.core.categories import ItemCategories
from recbole_leaprec.reranking import compiled

TIE = 1e-9

MEMORY = 2.8
"""How much memory the tensor operations may take beside the scores, in multiples of the scores' size.

If they need more, users are taken in parts, one after the other.
"""
LEAST_MEMORY = 2**25
"""If this many bytes are enough, users are never taken in parts."""


def greedy(
    scores: Tensor, p: Tensor, categories: ItemCategories, k: int, weights: Sequence[Sequence[float]], beta: float
) -> Tensor:
    """Pick, at each position, the unpicked item that maximises `(1 - w) r_i - w dS_KL(i | picked)`.

    Args:
        scores: `[B, I]` relevance r, -inf for items that are not allowed.
        p: `[B, C]` the preference to calibrate to.
        weights: `[S, k]`, the weight w at positions 1, 2, ..., k for each of S settings.

    Returns:
        `[S, B, k]` item ids, 0 where a user has no allowed item left.
    """
    engine = compiled.greedy if scores.device.type == "cpu" else greedy_on_device
    return engine(scores, p, categories, k, torch.tensor(weights, dtype=torch.float64), beta)


def greedy_on_device(scores: Tensor, p: Tensor, categories: ItemCategories, k: int, weights: Tensor, beta: float) -> Tensor:
    """`greedy` in few and large tensor operations, which never wait for a result."""
    if scores.dtype not in (torch.float32, torch.float64):
        scores = scores.float()  # holds half precision exactly
    size, items, profiles, pairs = (
        scores.element_size(),
        categories.n_items,
        categories.n_profiles + 1,
        len(categories.pair_share),
    )
    kept = size * items + (size + 4) * profiles + 8 * pairs
    bytes_per_list = kept + max((size + 5) * items, (size + 10) * profiles, 8 * (profiles + pairs))
    room = max(MEMORY * scores.numel() * size, LEAST_MEMORY)
    parts = max(1, min(len(scores), math.ceil(bytes_per_list * len(weights) * len(scores) / room)))
    tables = _Tables(categories)
    weights, p = weights.to(scores.device), p.double()
    some_users = zip(scores.tensor_split(parts), p.tensor_split(parts), strict=True)
    return torch.cat([_lists(some, own, tables, k, weights, beta) for some, own in some_users], 1)


class _Tables:
    """The tables of categories that the steps read."""

    def __init__(self, categories: ItemCategories):
        self.categories = categories
        size = categories.member_begin.diff()
        self.share = 1 / size.clamp_min(1).double()[:, None]
        # One byte per profile and category: with many of both, float64 would take more memory than the scores.
        self.has = torch.zeros(
            categories.n_profiles + 1, categories.n_categories, dtype=torch.bool, device=categories.device
        )
        profile = torch.repeat_interleave(size, output_size=len(categories.members))
        self.has[profile, categories.members] = True
        self.ids = torch.arange(categories.n_items, dtype=torch.int32, device=categories.device)
        self.no_item = torch.full((), categories.n_items, dtype=torch.int32, device=categories.device)


def _lists(scores: Tensor, p: Tensor, tables: _Tables, k: int, weights: Tensor, beta: float) -> Tensor:
    """Lists `[S, n, k]` for some users. Inside, the first dimension is profiles or categories, the last the S times n lists.

    Of each profile only the best unpicked item is kept: its score in `best`, its id in `head`; -inf and 0 if none is left.
    """
    categories, settings, users = tables.categories, len(weights), len(scores)
    never = scores.new_full((), -torch.inf)
    profile_of = categories.profile_of_item.expand_as(scores)
    best = never.repeat(users, categories.n_profiles + 1).scatter_reduce_(1, profile_of, scores, "amax")
    best[:, 0] = never  # padding
    first = torch.where(scores == best[:, categories.profile_of_item], tables.ids, tables.no_item)
    head = tables.no_item.repeat(users, categories.n_profiles + 1).scatter_reduce_(1, profile_of, first, "amin")
    del first
    head.masked_fill_(best == never, 0)
    best, head = best.T.repeat(1, settings), head.T.repeat(1, settings)
    unpicked = scores.repeat(settings, 1)
    p_of_pair = p.T[categories.pair_category].repeat(1, settings)
    picked = p.new_zeros(categories.n_categories, settings * users)
    weights = weights.T.repeat_interleave(users, dim=1, output_size=settings * users)
    others = 1 - weights
    lists = []
    for position in range(1, k + 1):
        objective = categories.sum_by_profile(categories.saved_by_pair(p_of_pair, picked, position, beta))
        closed = best == never
        objective.mul_(weights[position - 1]).addcmul_(best.masked_fill(closed, 0), others[position - 1])
        objective.masked_fill_(closed, -torch.inf)
        # The largest objective; among equal ones the largest score, then the lowest id; padding if nothing is left.
        near = objective >= objective.amax(0) - TIE
        del objective
        relevance = torch.where(near, best, never)
        near &= relevance == relevance.amax(0)
        item = torch.where(near, head, tables.no_item).amin(0).long()
        del near, relevance
        lists.append(item)
        profile = categories.profile_of_item[item]
        if position < k:
            picked += (tables.has[profile] * tables.share[profile]).T
            unpicked.scatter_(1, item[:, None], -torch.inf)
            following = torch.where(categories.profile_of_item == profile[:, None], unpicked, never)
            value = following.amax(1, keepdim=True)
            next_head = torch.where(following == value, tables.ids, tables.no_item).amin(1)
            del following
            best.scatter_(0, profile[None], value.T)
            head.scatter_(0, profile[None], next_head[None])
    return torch.stack(lists, -1).view(settings, users, k)
