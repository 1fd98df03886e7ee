"""The metrics of every user by itself, for intervals, tests and pictures."""

from __future__ import annotations

import torch
from torch import Tensor

from recbole_leaprec.calibration import miscalibration
from recbole_leaprec.evaluator.metrics import CATEGORIES, SEQUENTIAL_PREFERENCE, STATIC_PREFERENCE


def per_user(struct, k: int, beta: float) -> dict[str, Tensor]:
    """`{"hit@k": [U], "ndcg@k": [U], "skl@k": [U], "ckl@k": [U]}`, float64; their means are the metrics.

    Args:
        struct: what a reranking has collected; each user has one item to find, as leave-one-out has it. A figure is there if
            the metrics of the run need what it is made of.
    """
    lists, categories = struct.get("rec.items")[:, :k], struct.get(CATEGORIES)
    figures = {}
    if "rec.topk" in struct:
        hits, discount = struct.get("rec.topk")[:, :k].double(), torch.arange(2, k + 2, dtype=torch.float64).log2()
        figures = {f"hit@{k}": hits.sum(1), f"ndcg@{k}": (hits / discount).sum(1)}
    for name, preference in (("skl", SEQUENTIAL_PREFERENCE), ("ckl", STATIC_PREFERENCE)):
        if preference in struct:
            figures[f"{name}@{k}"] = miscalibration(struct.get(preference), lists, categories, beta)
    return figures
