"""The rerankers by name. A new one is a function in a file of its own, and one `register` line here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Literal

import torch
from torch import Tensor

from recbole_leaprec.categories import ItemCategories
from recbole_leaprec.reranking import mcf, mip
from recbole_leaprec.reranking.greedy import greedy
from recbole_leaprec.reranking.setwise import setwise
from recbole_leaprec.reranking.solvers import solve_all
from recbole_leaprec.reranking.topk import top_items
from recbole_leaprec.suggest import unknown_name

Target = Literal["sequential", "static"] | None
RerankFunction = Callable[[Tensor, Tensor, ItemCategories, int, Sequence[float], float], Tensor]
"""`(scores [B, I], p [B, C], categories, k, lambdas, beta) -> [len(lambdas), B, k]`."""


@dataclass(frozen=True)
class Reranker:
    """A reranking method.

    Attributes:
        target: the preference that the trainer and the commands calibrate to; None if the method does not calibrate.
        candidates: how many of the most relevant items it chooses from unless asked otherwise; None for all.
        compiled: whether it has compiled loops for the CPU, which look for nan and +inf by themselves.
        complexity: for n users, m items, a of them candidates, lists of k, c categories and P profiles.
    """

    name: str
    target: Target
    run: RerankFunction
    candidates: int | None = None
    complexity: str = ""
    compiled: bool = False


RERANKERS: dict[str, Reranker] = {}


def register(
    name: str,
    target: Target,
    run: RerankFunction,
    candidates: int | None = None,
    complexity: str = "",
    compiled: bool = False,
) -> None:
    """Make a reranker known under `name`, to `rerank()`, the config key `reranker` and every command."""
    RERANKERS[name] = Reranker(name, target, run, candidates, complexity, compiled)


def get_reranker(name: str) -> Reranker:
    """The reranker of that name; ValueError with the nearest known name if there is none."""
    if name not in RERANKERS:
        raise ValueError(unknown_name("reranker", name, RERANKERS))
    return RERANKERS[name]


def register_greedy(name: str, target: Target, weight: Callable[[float, int], float]) -> None:
    """A method that differs from the others in its weight on calibration alone: `weight(lambda, position)`."""

    def run(scores, p, categories, k, lambdas, beta):
        table = [[weight(lam, position) for position in range(1, k + 1)] for lam in lambdas]
        return greedy(scores, p, categories, k, torch.tensor(table, dtype=torch.float64), beta)

    register(name, target, run, complexity="O(n (m + k P))", compiled=True)


def register_solver(name: str, target: Target, module: ModuleType, complexity: str) -> None:
    """A method that solves one program a user: `module.solve`, over `module.CANDIDATES` items."""

    def run(scores, p, categories, k, lambdas, beta):
        return solve_all(module.solve, scores, p, categories, k, lambdas)

    register(name, target, run, module.CANDIDATES, complexity)


def _none(scores, p, categories, k, lambdas, beta):
    return top_items(scores, k).expand(len(lambdas), -1, -1)


_SWAPS = "O(n (m + s k P)), s swaps"
register("none", None, _none, complexity="O(n m)")
register_greedy("leaprec", "sequential", lambda lam, position: lam ** (1 / position))
register_greedy("calirec", "static", lambda lam, position: lam)
register_greedy("calirec_plus", "sequential", lambda lam, position: lam)
register_greedy("pr_reverse", "sequential", lambda lam, position: lam**position)
register("setwise", "sequential", setwise, complexity=_SWAPS, compiled=True)
register("setwise_raw", "sequential", partial(setwise, by_probability=False), complexity=_SWAPS, compiled=True)
register_solver("mip", "static", mip, complexity="O(n a^k) at worst")
register_solver("mcf", "static", mcf, complexity="O(n a^2 (a + k c))")
