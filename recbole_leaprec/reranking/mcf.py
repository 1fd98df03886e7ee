"""Calibration by minimum-cost flow (Abdollahpouri et al., WSDM 2023), on SciPy's assignment solver."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import xlogy
from torch import Tensor

from recbole_leaprec.core.categories import ItemCategories
from recbole_leaprec.reranking.solvers import Program, Solution, solve_all

FLOOR = 1e-6
"""Stands under p_c: a category that the user never had is dear, not infinitely so."""


def slot_costs(p: np.ndarray, k: int) -> np.ndarray:
    """`[C, k]`: what the j-th item of category c adds to the penalty KL(q || p).

    `E_{c,j} - E_{c,j-1}` with `E_{c,j} = (j/k) log(j/k) - (j/k) log p_c`; rising in j, since E is convex.
    """
    share = np.arange(k + 1) / k
    total = xlogy(share, share)[None] - share[None] * np.log(np.maximum(p, FLOOR))[:, None]
    return np.diff(total, axis=1)


def mcf(scores: Tensor, p: Tensor, categories: ItemCategories, k: int, lambdas: Sequence[float], beta: float) -> Tensor:
    """The reranker of that name: one program per user and lambda; it has no use for beta."""
    return solve_all(solve, scores, p, categories, k, lambdas)


def solve(program: Program) -> Solution:
    """Send k units through item and category: an item costs `-(1-lambda) s_i`, the j-th unit in c `lambda` times its slot.

    Each chosen item counts for one of its categories. Flow of one unit per item into slots of one unit is an assignment of
    items to slots, with a place outside for each of the n - k items that are not chosen.
    """
    n, k = len(program.scores), program.k
    if program.trivial:
        return Solution(np.arange(k))
    slots = (program.lam * slot_costs(program.p, k)).ravel()  # category by category
    open_to = np.repeat(program.shares > 0, k, axis=1)
    inside = np.where(open_to, -(1 - program.lam) * program.scores[:, None] + slots[None], np.inf)
    # Cheaper than any difference inside, so that all places outside are taken and k items remain.
    finite = inside[np.isfinite(inside)]
    outside = np.full((n, n - k), finite.min() - (finite.max() - finite.min()) * (k + 1) - 1)
    item, slot = linear_sum_assignment(np.hstack([inside, outside]))
    return Solution(item[slot < inside.shape[1]])
