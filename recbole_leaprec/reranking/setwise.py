"""The best set of K items: S_KL@K and HR@K do not depend on the order, so calibrate the set and show it by relevance.

The set R maximises `(1 - lambda) sum_{i in R} g(r_i) - lambda S_KL(R)`. g is the user's softmax probability: what leaving an
item out costs is a chance of a hit, not a difference of logits. A greedy set is improved by swaps of one item, and by two or three
that help only together; `kernels.setwise` says how.

Which swap to try next depends on the last one, for each user: that is work for loops, and scores of another device come to the
CPU for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from recbole_leaprec.core.categories import ItemCategories
from recbole_leaprec.reranking import compiled


def setwise(
    scores: Tensor,
    p: Tensor,
    categories: ItemCategories,
    k: int,
    lambdas: Sequence[float],
    beta: float,
    by_probability: bool = True,
) -> Tensor:
    """Sets `[S, B, k]` for S lambdas, each by falling score; 0 where a user has no allowed item left.

    Args:
        by_probability: whether g is an item's share in the softmax over the user's allowed items; else it is the score.
    """
    lists = compiled.setwise(scores.cpu(), p.cpu(), categories.to("cpu"), k, lambdas, beta, by_probability)
    return lists.to(scores.device)
