"""The metrics of each single user, for intervals, tests and pictures."""

from __future__ import annotations

import torch
from torch import Tensor

from recbole_leaprec.core.calibration import miscalibration
from recbole_leaprec.core.categories import ItemCategories

METRICS = ("hit", "ndcg", "skl", "ckl")
"""The metrics in the order of `user_metrics`."""


def user_metrics(lists: Tensor, hits: Tensor, p: Tensor, static: Tensor, categories: ItemCategories, beta: float) -> Tensor:
    """HR, nDCG, S_KL and C_KL of each user's list, `[B, 4]` float64. Their means are the metrics.

    Args:
        lists: `[B, K]` item ids.
        hits: `[B, K]`, 1 at the place of the item to find. Each user has one such item (leave-one-out).
        p, static: `[B, C]`, the sequential and the static preference.
    """
    found, discount = hits.double(), torch.arange(2, hits.shape[1] + 2, dtype=torch.float64, device=hits.device).log2()
    calibration = (miscalibration(preference, lists, categories, beta) for preference in (p, static))
    return torch.stack([found.sum(1), (found / discount).sum(1), *calibration], dim=1)
