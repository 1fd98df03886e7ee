"""A reranking method with its settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from recbole_leaprec.core.categories import ItemCategories
from recbole_leaprec.reranking.lists import rerank_sweep
from recbole_leaprec.reranking.registry import Preference, get_reranker


@dataclass(frozen=True)
class Reranking:
    """A method of `RERANKERS` with its settings. `Reranking()` is the plain ranking."""

    method: str = "none"
    lam: float = 0.0
    candidates: int | None = None
    order: str = "greedy"
    temperature: float = 1.0

    @classmethod
    def from_config(cls, config: Any, lam: float | None = None) -> Reranking:
        """The reranking of a config. If `lam` is given, it replaces `rerank_lambda`."""
        if config["reranker"] == "none":
            lam = 0.0
        return cls(
            config["reranker"],
            config["rerank_lambda"] if lam is None else lam,
            config["rerank_candidates"],
            config["rerank_order"],
            config["rerank_temperature"],
        )

    @property
    def preference(self) -> Preference:
        """The preference that the method calibrates to; None if it does not calibrate."""
        return get_reranker(self.method).preference

    def lists(
        self,
        scores: Tensor,
        p: Tensor | None,
        categories: ItemCategories,
        k: int,
        beta: float,
        lambdas: Sequence[float] | None = None,
    ) -> Tensor:
        """Lists `[S, B, k]` for S lambdas; by default only for `lam`. The other arguments are those of `rerank`."""
        return rerank_sweep(
            scores, p, categories, k, self.method, [self.lam] if lambdas is None else lambdas, beta,
            candidates=self.candidates, order=self.order, temperature=self.temperature,
        )  # fmt: skip
