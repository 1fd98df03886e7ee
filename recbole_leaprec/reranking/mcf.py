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
"""The smallest p_c that counts: a category that the user never had is expensive, but not infinitely."""


def slot_costs(p: np.ndarray, k: int) -> np.ndarray:
    """How much the j-th item of category c adds to the penalty KL(q || p), `[C, k]`.

    This is `E_{c,j} - E_{c,j-1}` with `E_{c,j} = (j/k) log(j/k) - (j/k) log p_c`. It rises with j because E is convex.
    """
    share = np.arange(k + 1) / k
    total = xlogy(share, share)[None] - share[None] * np.log(np.maximum(p, FLOOR))[:, None]
    return np.diff(total, axis=1)


def mcf(scores: Tensor, p: Tensor, categories: ItemCategories, k: int, lambdas: Sequence[float], beta: float) -> Tensor:
    """Lists `[S, B, k]` of the reranker `mcf`: one program per user and lambda. beta is not used."""
    return solve_all(solve, scores, p, categories, k, lambdas)


def solve(program: Program) -> Solution:
    """Send k units of flow through items and categories at minimum cost.

    An item costs `-(1-lambda) s_i`, the j-th unit in category c costs `lambda` times its slot. Each chosen item counts for
    one of its categories. As each item and each slot takes one unit, the flow is an assignment of items to slots. Each of
    the n - k items that are not chosen gets a place outside.
    """
    n, k = len(program.scores), program.k
    if program.trivial:
        return Solution(np.arange(k))
    slots = (program.lam * slot_costs(program.p, k)).ravel()  # category by category
    open_to = np.repeat(program.shares > 0, k, axis=1)
    inside = np.where(open_to, -(1 - program.lam) * program.scores[:, None] + slots[None], np.inf)
    # Places outside are so cheap that all of them are taken, and k items remain.
    finite = inside[np.isfinite(inside)]
    outside = np.full((n, n - k), finite.min() - (finite.max() - finite.min()) * (k + 1) - 1)
    item, slot = linear_sum_assignment(np.hstack([inside, outside]))
    return Solution(item[slot < inside.shape[1]])
