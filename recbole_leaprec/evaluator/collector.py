"""The collector: reranks the scores of a batch and keeps what metrics need of the lists."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from recbole.evaluator import Collector, Evaluator
from recbole.evaluator.collector import DataStruct
from torch import Tensor

from recbole_leaprec.core.categories import ItemCategories
from recbole_leaprec.evaluator.per_user import user_metrics
from recbole_leaprec.evaluator.resources import (
    CATEGORIES,
    HITS,
    LISTS,
    PREFERENCES,
    RANKS,
    SEQUENTIAL_PREFERENCE,
    STATIC_PREFERENCE,
    USER_METRICS,
)
from recbole_leaprec.reranking.reranking import Reranking

if TYPE_CHECKING:
    from recbole_leaprec.config import LeapRecConfig


class BatchedStruct(DataStruct):
    """RecBole's container, which joins the tensors of all batches when they are read; RecBole's own joins at every batch."""

    def __init__(self, content: dict[str, Any] | None = None):
        super().__init__()
        self._data_dict.update(content or {})
        self._parts: dict[str, list[Tensor]] = {}

    def update_tensor(self, name: str, value: Tensor) -> None:
        self._parts.setdefault(name, []).append(value.detach().cpu())

    def joined(self) -> dict[str, Any]:
        """Everything by name, each tensor in one piece."""
        return {**self._data_dict, **{name: torch.cat(parts) for name, parts in self._parts.items()}}


@dataclass(frozen=True)
class Evaluation:
    """What one reranking gave for all users.

    Attributes:
        seconds: of reranking alone. Lambdas of one method are reranked together, and each has an equal share.
        users, short: how many users there were, and how many of them have fewer than K items to recommend.
        struct: RecBole's evaluation resources.
    """

    reranking: Reranking
    seconds: float
    users: int
    short: int
    struct: DataStruct
    _evaluator: Evaluator

    @cached_property
    def metrics(self) -> dict[str, float]:
        """The configured metrics, worked out by RecBole when they are asked for."""
        return {name: float(value) for name, value in self._evaluator.evaluate(self.struct).items()}


@dataclass
class _Running:
    """One reranking while batches come."""

    reranking: Reranking
    struct: BatchedStruct = field(default_factory=BatchedStruct)
    seconds: float = 0.0
    users: int = 0
    short: int = 0


class RerankingCollector(Collector):
    """Reranks each batch of scores in every way of `rerankings`, for one evaluation.

    RecBole's metrics get the reranked lists. Metrics that look at scores rather than lists (GAUC) are not affected.
    """

    def __init__(
        self,
        config: LeapRecConfig,
        categories: ItemCategories,
        rerankings: Sequence[Reranking],
        counted: DataStruct | None = None,
        per_user: bool = False,
    ):
        """
        Args:
            counted: what was counted of the training data, for the metrics that need it.
            per_user: whether to keep every user's metrics, and the places of the lists' items in the model's own ranking.
        """
        super().__init__(config)
        self.data_struct = BatchedStruct({**(counted._data_dict if counted else {}), CATEGORIES: categories})
        # The parent collects what metrics need of the scores, and this class what they need of the lists.
        self._needed = {name for name in (LISTS, HITS, *PREFERENCES.values()) if self.register.need(name)}
        for name in (LISTS, HITS):
            setattr(self.register, name, False)
        self._categories, self._per_user = categories, per_user
        if per_user:
            self._needed |= {LISTS, HITS, *PREFERENCES.values()}
        self._running = [_Running(reranking) for reranking in rerankings]
        self._sweeps: dict[Reranking, list[_Running]] = {}
        for running in self._running:
            self._sweeps.setdefault(replace(running.reranking, lam=0.0), []).append(running)

    def needs(self, name: str) -> bool:
        """Whether a metric or a reranking needs this preference."""
        return name in self._needed or any(PREFERENCES.get(one.preference or "") == name for one in self._sweeps)

    def eval_batch_collect(self, scores_tensor, interaction, positive_u, positive_i):
        super().eval_batch_collect(scores_tensor, interaction, positive_u, positive_i)
        for name in PREFERENCES.values():
            if name in self._needed:
                self.data_struct.update_tensor(name, interaction[name])
        positive_u, positive_i = positive_u.to(scores_tensor.device), positive_i.to(scores_tensor.device)
        ranks = _ranks(scores_tensor) if self._per_user else None
        for reranking, sweep in self._sweeps.items():
            for running, lists in zip(sweep, self._rerank(reranking, sweep, scores_tensor, interaction), strict=True):
                running.users += len(lists)
                running.short += int((lists[:, -1] == 0).sum())
                self._keep(running.struct, interaction, lists, _hits(lists, positive_u, positive_i), ranks)

    def _rerank(self, reranking: Reranking, sweep: list[_Running], scores: Tensor, interaction: Any) -> Iterable[Tensor]:
        """Lists `[B, K]` of rerankings that differ in lambda alone; takes the time."""
        p = interaction[PREFERENCES[reranking.preference]] if reranking.preference else None
        lambdas, k, beta = [running.reranking.lam for running in sweep], max(self.topk), self.config["beta"]
        if not sweep[0].users:  # compile what has to be, before the time is taken
            reranking.lists(scores[:0], None if p is None else p[:0], self._categories, k, beta, lambdas)
        started = _now(scores)
        lists = reranking.lists(scores, p, self._categories, k, beta, lambdas)
        seconds = _now(scores) - started
        for running in sweep:
            running.seconds += seconds / len(sweep)
        return lists

    def _keep(self, struct: BatchedStruct, interaction: Any, lists: Tensor, hits: Tensor, ranks: Tensor | None) -> None:
        if LISTS in self._needed:
            struct.update_tensor(LISTS, lists)
        if HITS in self._needed:
            struct.update_tensor(HITS, hits)
        if ranks is not None:
            struct.update_tensor(RANKS, ranks.gather(1, lists))
            p, static = interaction[SEQUENTIAL_PREFERENCE], interaction[STATIC_PREFERENCE]
            struct.update_tensor(
                USER_METRICS, user_metrics(lists, hits[:, :-1], p, static, self._categories, self.config["beta"])
            )

    def evaluations(self, evaluator: Evaluator) -> list[Evaluation]:
        """One for each reranking, when all batches have been collected."""
        shared = self.data_struct.joined()
        return [
            Evaluation(
                running.reranking,
                running.seconds,
                running.users,
                running.short,
                BatchedStruct({**shared, **running.struct.joined()}),
                evaluator,
            )
            for running in self._running
        ]


def _hits(lists: Tensor, positive_u: Tensor, positive_i: Tensor) -> Tensor:
    """`[B, K+1]`: which places of the lists `[B, K]` hold a positive of their user, and how many positives the user has.

    Example:
        >>> _hits(torch.tensor([[3, 5], [4, 2]]), positive_u=torch.tensor([0, 1]), positive_i=torch.tensor([5, 1]))
        tensor([[0, 1, 1],
                [0, 0, 1]], dtype=torch.int32)
    """
    found = (lists[positive_u] == positive_i[:, None]).int()
    hits = torch.zeros_like(lists, dtype=torch.int).index_add_(0, positive_u, found)
    return torch.cat([hits, torch.bincount(positive_u, minlength=len(lists)).int()[:, None]], dim=1)


def _ranks(scores: Tensor) -> Tensor:
    """`[B, I]`: the place of each item in a user's ranking, from 1; equal scores by rising id.

    Example:
        >>> _ranks(torch.tensor([[0.5, 2.0, 0.5]]))
        tensor([[2, 1, 3]])
    """
    order = scores.argsort(dim=1, descending=True, stable=True)
    places = torch.arange(1, scores.shape[1] + 1, device=scores.device).expand_as(order)
    return torch.empty_like(order).scatter_(1, order, places)


def _now(tensor: Tensor) -> float:
    """The time when all work on the tensor's device is done."""
    if tensor.is_cuda:
        torch.cuda.synchronize(tensor.device)
    return time.perf_counter()
