"""The most relevant items, with ties in a fixed order."""

from __future__ import annotations

import torch
from torch import Tensor


def top_items(scores: Tensor, k: int) -> Tensor:
    """`[B, k]` item ids by falling score, equal scores by rising id; 0 where a user has no allowed item left.

    `torch.topk` leaves the order of equal scores open, and with it which of them makes the list.

    Args:
        scores: `[B, I]`, -inf for items that are not allowed.
    """
    values, items = scores.topk(k, dim=1)
    # Ties inside the list: by id first, then by score, both stable.
    items, by_id = items.sort(dim=1)
    values, by_score = values.gather(1, by_id).sort(dim=1, descending=True, stable=True)
    items = items.gather(1, by_score)
    # Ties across its end: only these rows need the whole order.
    last = values[:, -1:]
    torn = ((scores >= last).sum(1) > k) & (last[:, 0] > -torch.inf)
    if torn.any():
        rows = scores[torn].sort(dim=1, descending=True, stable=True).indices[:, :k]
        items[torn] = rows
        values[torn] = scores[torn].gather(1, rows)
    return items.masked_fill(values == -torch.inf, 0)
