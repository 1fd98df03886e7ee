"""The most relevant items, with ties in a fixed order."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from recbole_leaprec.core.categories import ItemCategories


def best_of_rows(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Columns and values, `[N, k]` each, of the k largest of each row; equal values by rising column.

    `torch.topk` does not define the order of equal values, nor which of them are among the k.
    """
    top, columns = values.topk(min(k + 1, values.shape[1]), dim=1)
    # Only rows with a tie among the k, or between the k-th and the next value, need a full sort.
    equal = top[:, 1:] == top[:, :-1]
    if equal.any():
        tied = (equal & (top[:, 1:] > -torch.inf)).any(1).nonzero()[:, 0]
        columns[tied] = values[tied].sort(dim=1, descending=True, stable=True).indices[:, : columns.shape[1]]
    return columns[:, :k], top[:, :k]


def by_relevance(lists: Tensor, scores: Tensor) -> Tensor:
    """Each list `[..., B, k]` sorted by falling score `[B, I]`, equal scores by rising id; 0s stay at the end."""
    lists = lists.masked_fill(lists == 0, scores.shape[1]).sort(-1).values
    missing = lists == scores.shape[1]
    lists = lists.masked_fill(missing, 0)
    values = scores.expand(*lists.shape[:-2], -1, -1).gather(-1, lists).masked_fill(missing, -torch.inf)
    return lists.gather(-1, values.sort(dim=-1, descending=True, stable=True).indices)


def top_items(scores: Tensor, k: int) -> Tensor:
    """`[B, k]` item ids by falling score, equal scores by rising id; 0 where a user has no allowed item left.

    Args:
        scores: `[B, I]`, -inf for items that are not allowed; item 0 is padding and never allowed.
    """
    items, values = best_of_rows(scores[:, 1:], k)
    return (items + 1).masked_fill_(values == -torch.inf, 0)


def plain_top_k(
    scores: Tensor, p: Tensor | None, categories: ItemCategories, k: int, lambdas: Sequence[float], beta: float
) -> Tensor:
    """The reranker `none`: the most relevant items. Preference and lambda are not used."""
    return top_items(scores, k).expand(len(lambdas), -1, -1)
