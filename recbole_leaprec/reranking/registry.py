"""The rerankers by name. To add one, write a function in a file of its own, and one `register` line here.

A method's file is imported when the method is first used. So `--help` and checks of settings, which need only the names,
work without torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from recbole_leaprec.common.did_you_mean import unknown_name

if TYPE_CHECKING:
    from torch import Tensor

    from recbole_leaprec.core.categories import ItemCategories

    RerankFunction = Callable[[Tensor, Any, ItemCategories, int, Sequence[float], float], Tensor]
    """`(scores [B, I], p [B, C], categories, k, lambdas, beta) -> [len(lambdas), B, k]`.

    p is None only for a method without a preference.
    """

Preference = Literal["sequential", "static"] | None

ORDERS = ("greedy", "relevance")
"""The orders of a list: as the method picks its items, or the same items by falling score."""


@dataclass(frozen=True)
class Reranker:
    """A reranking method.

    Attributes:
        preference: the preference that the trainer and the commands calibrate to; None if the method does not calibrate.
        candidates: by default, how many of the most relevant items it chooses from; None for all.
        compiled: whether it has compiled loops for the CPU. These check for nan and +inf themselves.
        complexity: for n users, m items, a candidates, k items per list, c categories and P profiles.
    """

    name: str
    preference: Preference
    run: RerankFunction
    candidates: int | None = None
    complexity: str = ""
    compiled: bool = False


RERANKERS: dict[str, Reranker] = {}


def register(
    name: str,
    preference: Preference,
    run: RerankFunction,
    candidates: int | None = None,
    complexity: str = "",
    compiled: bool = False,
) -> None:
    """Add a reranker, so that `rerank()`, the config key `reranker` and every command know its name."""
    RERANKERS[name] = Reranker(name, preference, run, candidates, complexity, compiled)


def get_reranker(name: str) -> Reranker:
    """The reranker of that name. Otherwise a ValueError names the most similar name."""
    if name not in RERANKERS:
        raise ValueError(unknown_name("reranker", name, RERANKERS))
    return RERANKERS[name]


def register_greedy(name: str, preference: Preference, weight: Callable[[float, int], float]) -> None:
    """Add a greedy method. These differ only in their weight of calibration, `weight(lambda, position)`."""

    def run(scores: Tensor, p: Any, categories: ItemCategories, k: int, lambdas: Sequence[float], beta: float) -> Tensor:
        from recbole_leaprec.reranking.greedy import greedy

        return greedy(scores, p, categories, k, [[weight(lam, at) for at in range(1, k + 1)] for lam in lambdas], beta)

    register(name, preference, run, complexity="O(n (m + k P))", compiled=True)


def in_file(file: str, function: str | None = None, **more: Any) -> RerankFunction:
    """The named function in a file of this folder; by default the function with the file's name.

    `more` are arguments that it always gets.
    """

    def run(scores: Tensor, p: Any, categories: ItemCategories, k: int, lambdas: Sequence[float], beta: float) -> Tensor:
        found = getattr(import_module(f"{__package__}.{file}"), function or file)
        return found(scores, p, categories, k, lambdas, beta, **more)

    return run


_SWAPS = "O(n (m + s k P)), s swaps"
register("none", None, in_file("topk", "plain_top_k"), complexity="O(n m)")
register_greedy("leaprec", "sequential", lambda lam, position: lam ** (1 / position))  # Eq. 12
register_greedy("calirec", "static", lambda lam, position: lam)
register_greedy("calirec_plus", "sequential", lambda lam, position: lam)
register_greedy("pr_reverse", "sequential", lambda lam, position: lam**position)
register("setwise", "sequential", in_file("setwise"), complexity=_SWAPS, compiled=True)
register("setwise_raw", "sequential", in_file("setwise", by_probability=False), complexity=_SWAPS, compiled=True)
register("mip", "static", in_file("mip"), candidates=1_000, complexity="O(n a^k) at worst")
register("mcf", "static", in_file("mcf"), candidates=100, complexity="O(n a^2 (a + k c))")
