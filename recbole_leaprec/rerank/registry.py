"""The rerankers by name. A new one is a function here or in a file of its own, and one `register` line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from recbole_leaprec.categories import ItemCategories
from recbole_leaprec.rerank.greedy import greedy
from recbole_leaprec.rerank.topk import top_items
from recbole_leaprec.suggest import unknown_name

RerankFunction = Callable[[Tensor, Tensor, ItemCategories, int, float, float], Tensor]
"""`(scores [B, I], p [B, C], categories, k, lambda, beta) -> [B, k]`."""


@dataclass(frozen=True)
class Reranker:
    """A reranking method.

    Attributes:
        target: the preference that the trainer and the commands calibrate to; None if the method does not calibrate.
    """

    name: str
    target: Literal["sequential", "static"] | None
    run: RerankFunction


RERANKERS: dict[str, Reranker] = {}


def register(name: str, target: Literal["sequential", "static"] | None, run: RerankFunction) -> None:
    """Make a reranker known under `name`, to `rerank()`, the config key `reranker` and every command."""
    RERANKERS[name] = Reranker(name, target, run)


def get_reranker(name: str) -> Reranker:
    """The reranker of that name; ValueError with the nearest known name if there is none."""
    if name not in RERANKERS:
        raise ValueError(unknown_name("reranker", name, RERANKERS))
    return RERANKERS[name]


register("none", None, lambda scores, p, categories, k, lam, beta: top_items(scores, k))
register(
    "leaprec",
    "sequential",
    lambda scores, p, categories, k, lam, beta: greedy(scores, p, categories, k, lambda place: lam ** (1 / place), beta),
)
