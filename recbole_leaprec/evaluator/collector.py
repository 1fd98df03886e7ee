"""The collector: reranks the scores of each batch, and sums up the metrics of the lists."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from recbole.evaluator import Collector, Evaluator
from recbole.evaluator.collector import DataStruct
from scipy.sparse import csr_array, vstack
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
    USER_PREFERENCES,
)
from recbole_leaprec.evaluator.running_mean import RunningMean, is_mean_over_users
from recbole_leaprec.reranking.reranking import Reranking

if TYPE_CHECKING:
    from recbole_leaprec.config import LeapRecConfig


class BatchedStruct(DataStruct):
    """RecBole's container, but it joins the tensors of all batches only when they are read. RecBole joins at every batch."""

    def __init__(self, content: dict[str, Any] | None = None):
        super().__init__()
        self._data_dict.update(content or {})
        self._parts: dict[str, list[Tensor]] = {}

    def update_tensor(self, name: str, value: Tensor) -> None:
        self._parts.setdefault(name, []).append(value.detach().cpu())

    def joined(self) -> dict[str, Any]:
        """All values by name, each tensor in one piece."""
        return {**self._data_dict, **{name: torch.cat(parts) for name, parts in self._parts.items()}}


@dataclass(frozen=True)
class Evaluation:
    """The results of one reranking for all users.

    Attributes:
        seconds: time of only the reranking. Lambdas of one method are reranked together, and each gets an equal share.
        users, short: the number of users, and of those with fewer than K items to recommend.
        struct: values that are kept per user: for metrics that are not means over users, and for `per_user`.
    """

    reranking: Reranking
    seconds: float
    users: int
    short: int
    struct: DataStruct
    _means: Mapping[str, RunningMean]
    _evaluator: Evaluator

    @cached_property
    def metrics(self) -> dict[str, float]:
        """The configured metrics, rounded like RecBole's. Metrics over all users together are computed at first access."""
        result: dict[str, float] = {}
        for name, metric in self._evaluator.metric_class.items():
            own = self._means[name].result() if name in self._means else metric.calculate_metric(self.struct)
            result |= {at_k: float(value) for at_k, value in own.items()}
        return result

    def mean(self, metric: str, k: int) -> float:
        """The mean over users of a configured metric, such as skl, before rounding."""
        return float(self._means[metric].means[metric][k - 1])


@dataclass
class _Running:
    """The sums of one reranking while batches come."""

    reranking: Reranking
    means: dict[str, RunningMean]
    struct: BatchedStruct = field(default_factory=BatchedStruct)
    seconds: float = 0.0
    users: int = 0
    short: int = 0


class RerankingCollector(Collector):
    """Reranks each batch of scores with all `rerankings`, and sums up the metrics of the lists, for one evaluation.

    RecBole's metrics get the reranked lists. Metrics that use scores and not lists (GAUC) are not affected.
    """

    def __init__(
        self,
        config: LeapRecConfig,
        evaluator: Evaluator,
        categories: ItemCategories,
        rerankings: Sequence[Reranking],
        counted: DataStruct | None = None,
        per_user: bool = False,
    ):
        """
        Args:
            evaluator: RecBole's evaluator, which has the metrics.
            counted: counts of the training data, for the metrics that need them.
            per_user: whether to keep every user's list, metrics and preference, and the places of the list's items in the
                model's own ranking.
        """
        super().__init__(config)
        self._evaluator, self._categories, self._per_user = evaluator, categories, per_user
        self._of_data = {**(counted._data_dict if counted else {}), CATEGORIES: categories.to("cpu")}
        self.data_struct = BatchedStruct(self._of_data)
        # The parent class collects what metrics need from the scores, this class what they need from the lists.
        for name in (LISTS, HITS):
            setattr(self.register, name, False)
        summed = {name: one for name, one in evaluator.metric_class.items() if is_mean_over_users(one)}
        others = [one for name, one in evaluator.metric_class.items() if name not in summed]
        self._kept = {name for one in others for name in one.metric_need}  # for all users
        self._used = self._kept | {name for one in summed.values() for name in one.metric_need}  # per batch
        if per_user:
            self._used |= {*PREFERENCES.values()}
        self._preferences: list[csr_array] = []
        self._running = [
            _Running(reranking, {name: RunningMean(one) for name, one in summed.items()}) for reranking in rerankings
        ]
        self._sweeps: dict[Reranking, list[_Running]] = {}
        for running in self._running:
            self._sweeps.setdefault(replace(running.reranking, lam=0.0), []).append(running)

    def needs(self, name: str) -> bool:
        """Whether a metric or a reranking needs this preference."""
        return name in self._used or any(PREFERENCES.get(one.preference or "") == name for one in self._sweeps)

    def eval_batch_collect(self, scores_tensor, interaction, positive_u, positive_i):
        super().eval_batch_collect(scores_tensor, interaction, positive_u, positive_i)
        of_users = {name: interaction[name].cpu() for name in PREFERENCES.values() if name in self._used}
        for name in self._kept & of_users.keys():
            self.data_struct.update_tensor(name, of_users[name])
        ranks = _ranks(scores_tensor) if self._per_user else None
        if self._per_user:
            self._preferences.append(csr_array(of_users[SEQUENTIAL_PREFERENCE].numpy()))
        positive_u, positive_i = positive_u.cpu(), positive_i.cpu()
        for reranking, sweep in self._sweeps.items():
            for running, lists in zip(sweep, self._rerank(reranking, sweep, scores_tensor, interaction), strict=True):
                if ranks is not None:
                    running.struct.update_tensor(RANKS, ranks.gather(1, lists).int())
                lists = lists.cpu()
                batch = DataStruct()
                batch._data_dict = {**self._of_data, **of_users, LISTS: lists, HITS: _hits(lists, positive_u, positive_i)}
                self._measure(running, batch, len(lists))

    def _rerank(self, reranking: Reranking, sweep: list[_Running], scores: Tensor, interaction: Any) -> Iterable[Tensor]:
        """Lists `[B, K]` of rerankings that differ only in lambda; measures the time."""
        p = interaction[PREFERENCES[reranking.preference]] if reranking.preference else None
        lambdas, k, beta = [running.reranking.lam for running in sweep], max(self.topk), self.config["beta"]
        if not sweep[0].users:  # compile first, so that the measured time is without it
            reranking.lists(scores[:0], None if p is None else p[:0], self._categories, k, beta, lambdas)
        started = _now(scores)
        lists = reranking.lists(scores, p, self._categories, k, beta, lambdas)
        seconds = _now(scores) - started
        for running in sweep:
            running.seconds += seconds / len(sweep)
        return lists

    def _measure(self, running: _Running, batch: DataStruct, users: int) -> None:
        """Sum up the metrics of a batch's lists, and keep the values that are needed per user."""
        lists, hits = batch.get(LISTS), batch.get(HITS)
        running.users += users
        running.short += int((lists[:, -1] == 0).sum())
        for mean in running.means.values():
            mean.add(batch, users)
        for name in self._kept & {LISTS, HITS}:
            running.struct.update_tensor(name, batch.get(name))
        if self._per_user:
            p, static, categories = (batch.get(name) for name in (SEQUENTIAL_PREFERENCE, STATIC_PREFERENCE, CATEGORIES))
            running.struct.update_tensor(
                USER_METRICS, user_metrics(lists, hits[:, :-1], p, static, categories, self.config["beta"])
            )
            if LISTS not in self._kept:
                running.struct.update_tensor(LISTS, lists.int())

    def evaluations(self) -> list[Evaluation]:
        """One evaluation per reranking, after all batches have been collected."""
        shared = self.data_struct.joined()
        if self._per_user:
            shared[USER_PREFERENCES] = vstack(self._preferences, format="csr")
        return [
            Evaluation(
                running.reranking,
                running.seconds,
                running.users,
                running.short,
                BatchedStruct({**shared, **running.struct.joined()}),
                running.means,
                self._evaluator,
            )
            for running in self._running
        ]


def _hits(lists: Tensor, positive_u: Tensor, positive_i: Tensor) -> Tensor:
    """Which places of the lists `[B, K]` hold a positive of their user, and the user's number of positives, `[B, K+1]`.

    Example:
        >>> _hits(torch.tensor([[3, 5], [4, 2]]), positive_u=torch.tensor([0, 1]), positive_i=torch.tensor([5, 1]))
        tensor([[0, 1, 1],
                [0, 0, 1]], dtype=torch.int32)
    """
    found = (lists[positive_u] == positive_i[:, None]).int()
    hits = torch.zeros_like(lists, dtype=torch.int).index_add_(0, positive_u, found)
    return torch.cat([hits, torch.bincount(positive_u, minlength=len(lists)).int()[:, None]], dim=1)


def _ranks(scores: Tensor) -> Tensor:
    """The place of each item in a user's ranking, from 1, `[B, I]`; equal scores by rising id.

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
