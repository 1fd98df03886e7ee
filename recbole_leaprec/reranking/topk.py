"""The most relevant items, with ties in a fixed order."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from recbole_leaprec.core.categories import ItemCategories


def best_of_rows(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Column and value `[N, k]` of the k largest of each row, equal values by rising column.

    `torch.topk` leaves the order of equal values open, and with it which of them are among the k.
    """
    top, columns = values.topk(min(k + 1, values.shape[1]), dim=1)
    # Only rows with a tie among the k, or across their end, need the whole order.
    equal = top[:, 1:] == top[:, :-1]
    if equal.any():
        tied = (equal & (top[:, 1:] > -torch.inf)).any(1).nonzero()[:, 0]
        columns[tied] = values[tied].sort(dim=1, descending=True, stable=True).indices[:, : columns.shape[1]]
    return columns[:, :k], top[:, :k]


def by_relevance(lists: Tensor, scores: Tensor) -> Tensor:
    """Each list `[..., B, k]` by falling score `[B, I]`, equal scores by rising id, 0 at the end."""
    lists = lists.masked_fill(lists == 0, scores.shape[1]).sort(-1).values
    missing = lists == scores.shape[1]
    lists = lists.masked_fill(missing, 0)
    values = scores.expand(*lists.shape[:-2], -1, -1).gather(-1, lists).masked_fill(missing, -torch.inf)
    return lists.gather(-1, values.sort(dim=-1, descending=True, stable=True).indices)


def top_items(scores: Tensor, k: int) -> Tensor:
    """`[B, k]` item ids by falling score, equal scores by rising id; 0 where a user has no allowed item left.

    Args:
        scores: `[B, I]`, -inf for items that are not allowed; item 0 is padding and never is.
    """
    items, values = best_of_rows(scores[:, 1:], k)
    return (items + 1).masked_fill_(values == -torch.inf, 0)


def plain_top_k(
    scores: Tensor, p: Tensor | None, categories: ItemCategories, k: int, lambdas: Sequence[float], beta: float
) -> Tensor:
    """The reranker `none`: the most relevant items, whatever the preference and lambda."""
    return top_items(scores, k).expand(len(lambdas), -1, -1)
