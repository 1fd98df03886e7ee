"""The best set of K items, ordered by relevance. S_KL@K and HR@K do not depend on the order: only the set is calibrated.

The set R maximises `(1 - lambda) sum_{i in R} g(r_i) - lambda S_KL(R)`. g is the user's softmax probability: to leave an
item out costs a chance of a hit, not a difference of logits. The search starts with a greedy set. It then swaps one item at
a time, or two or three where only all swaps together help (see `kernels.setwise`).

For each user, the next swap to try depends on the last one. This needs loops, so it always runs on the CPU: scores of
another device are copied there.
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
        by_probability: if true, g is the item's probability in the softmax over the user's allowed items, else the score.
    """
    lists = compiled.setwise(scores.cpu(), p.cpu(), categories.to("cpu"), k, lambdas, beta, by_probability)
    return lists.to(scores.device)
