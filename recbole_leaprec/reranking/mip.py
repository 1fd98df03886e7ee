"""Calibration by mixed integer programming (Seymen, Abdollahpouri and Malthouse, RecSys 2021), on HiGHS."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array, eye_array, hstack
from torch import Tensor

from recbole_leaprec.core.categories import ItemCategories
from recbole_leaprec.reranking.solvers import TIME_LIMIT, Program, Solution, solve_all

GAP = 1e-4


def mip(scores: Tensor, p: Tensor, categories: ItemCategories, k: int, lambdas: Sequence[float], beta: float) -> Tensor:
    """Lists `[S, B, k]` of the reranker `mip`: one program per user and lambda. beta is not used."""
    return solve_all(solve, scores, p, categories, k, lambdas)


def solve(program: Program) -> Solution:
    """Maximise `(1-lambda) sum_i s_i x_i - lambda sum_c z_c` with `z_c >= |p_c - q_c|`, `sum x = k`, x binary.

    `q_c` is the mean of p(c|i) over the chosen items. Candidates of one profile differ only in their scores, so an optimum
    needs only the k best of each profile. The program holds only these.
    """
    if program.trivial:
        return Solution(np.arange(program.k))
    kept = _best_of_each_profile(program)
    scores, shares = program.scores[kept], program.shares[kept]
    occurs = shares.any(0)  # a category that no candidate has costs the same for every choice
    p, shares = program.p[occurs], shares[:, occurs]
    n, c = shares.shape
    cost = np.concatenate([-(1 - program.lam) * scores, np.full(c, program.lam)])
    q, identity = csr_array(shares.T / program.k), eye_array(c)
    constraints = [
        LinearConstraint(hstack([q, identity]), p, np.inf),  # z >= p - q
        LinearConstraint(hstack([-q, identity]), -p, np.inf),  # z >= q - p
        LinearConstraint(np.concatenate([np.ones(n), np.zeros(c)])[None], program.k, program.k),
    ]
    result = milp(
        cost,
        constraints=constraints,
        integrality=np.concatenate([np.ones(n), np.zeros(c)]),
        bounds=Bounds(0, np.concatenate([np.ones(n), np.full(c, np.inf)])),
        options={"mip_rel_gap": GAP, "time_limit": TIME_LIMIT},
    )
    if result.x is None:  # no list was found in time
        return Solution(np.arange(program.k), finished=False)
    return Solution(kept[result.x[:n] > 0.5], finished=result.status == 0)


def _best_of_each_profile(program: Program) -> np.ndarray:
    _, profile = np.unique(program.shares, axis=0, return_inverse=True)
    profile = profile.reshape(-1)  # the shape differs in numpy 2.0
    order = np.argsort(profile, kind="stable")  # scores fall, so the best of a profile come first
    begin = np.searchsorted(profile[order], profile[order])
    return np.sort(order[np.arange(len(order)) - begin < program.k])
