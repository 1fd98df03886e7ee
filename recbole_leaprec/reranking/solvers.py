"""The common part of the rerankers that solve one program per user: candidates, cores, progress and the time limit."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from joblib import Parallel, cpu_count, delayed
from torch import Tensor
from tqdm import tqdm

from recbole_leaprec.core.categories import ItemCategories
from recbole_leaprec.reranking.topk import best_of_rows

TIME_LIMIT = 600.0
"""Seconds per user, after which the best list found so far is used."""

IN_PROCESS = 64
"""Up to this many programs are solved in the calling process; starting workers would take longer."""

_logger = logging.getLogger(__name__)


LARGEST_SCORE = 1e300
"""Scores beyond this count as this, as in `kernels.py`: sums and differences of a program's numbers stay finite."""


@dataclass(frozen=True)
class Program:
    """One user's task: choose k of the candidates.

    Attributes:
        scores: `[n]` relevance, best first.
        shares: `[n, C]` p(c|i).
        p: `[C]` the preference to calibrate to.
    """

    scores: np.ndarray
    shares: np.ndarray
    p: np.ndarray
    k: int
    lam: float

    @property
    def trivial(self) -> bool:
        """Whether the first k candidates are the answer: lambda is 0, or there are only k candidates."""
        return self.lam == 0 or len(self.scores) == self.k


@dataclass(frozen=True)
class Solution:
    """Indices of the chosen candidates, and whether the solver finished."""

    chosen: np.ndarray
    finished: bool = True


Solve = Callable[[Program], Solution]


def solve_all(
    solve: Solve,
    scores: Tensor,
    p: Tensor,
    categories: ItemCategories,
    k: int,
    lambdas: Sequence[float],
) -> Tensor:
    """Solve a program per user and lambda. Returns lists `[S, B, k]` by falling score, 0 where items are missing.

    Args:
        solve: a function at the top level of a module, so that worker processes can import it.
        scores: -inf for items that are no candidates.
    """
    most = int((scores[:, 1:] > -torch.inf).sum(1).max()) if len(scores) else 0
    columns, best = best_of_rows(scores[:, 1:], max(most, 1))
    items, values, preferences = (columns + 1).cpu(), best.double().cpu().numpy(), p.double().cpu().numpy()
    categories = categories.to("cpu")
    allowed = (values > -np.inf).sum(1)
    np.clip(values, -LARGEST_SCORE, LARGEST_SCORE, out=values)
    programs = (
        Program(values[user, :n], categories.shares(items[user, :n]).numpy(), preferences[user], min(k, int(n)), lam)
        for lam in lambdas
        for user, n in enumerate(allowed)
    )
    count = len(lambdas) * len(scores)
    solutions = list(tqdm(_spread(solve, programs, count), total=count, desc=solve.__module__.rpartition(".")[2], unit="list",
                          leave=False, disable=None if count > IN_PROCESS else True))  # fmt: skip
    unfinished = sum(not solution.finished for solution in solutions)
    if unfinished:
        _logger.warning(
            "%d of %d lists hit the limit of %g s; the best list found so far is used", unfinished, count, TIME_LIMIT
        )
    lists = torch.zeros(len(lambdas), len(scores), k, dtype=torch.long)
    for number, solution in enumerate(solutions):
        setting, user = divmod(number, len(scores))
        chosen = items[user, np.sort(solution.chosen)]
        lists[setting, user, : len(chosen)] = chosen
    return lists.to(scores.device)


def _spread(solve: Solve, programs: Iterable[Program], count: int) -> Iterator[Solution]:
    """The solutions in the order of the programs. If there are enough programs, all cores share the work."""
    workers = min(cpu_count(), count // IN_PROCESS)
    if workers < 2:
        yield from map(solve, programs)
        return
    # Workers of multiprocessing would run the caller's script again. Joblib's do not, and they stay for the next batch.
    pool = Parallel(workers, batch_size=16, return_as="generator", max_nbytes=None)
    yield from pool(delayed(_solve_silently)(solve, program, os.getpid()) for program in programs)


def _solve_silently(solve: Solve, program: Program, caller: int) -> Solution:
    if os.getpid() != caller:  # joblib may run this in the calling process
        _silence()
    return solve(program)


@cache
def _silence() -> None:
    """Send stdout nowhere: HiGHS sometimes prints a debugging line, with any options. A worker prints nothing else."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
