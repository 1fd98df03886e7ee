"""The collector: reranks the scores of a batch and hands RecBole's metrics the lists."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace

import torch
from recbole.evaluator.collector import DataStruct

from recbole_leaprec.categories import ItemCategories
from recbole_leaprec.compat import CompatCollector
from recbole_leaprec.evaluator.metrics import CATEGORIES, SEQUENTIAL_PREFERENCE, STATIC_PREFERENCE
from recbole_leaprec.reranking import SHORT_LISTS, get_reranker, rerank_sweep

_logger = logging.getLogger(__name__)

PREFERENCES = {"sequential": SEQUENTIAL_PREFERENCE, "static": STATIC_PREFERENCE}
LISTS = ("rec.items", "rec.topk")
RANKS = "rec.ranks"
"""Where a list's items stand in the model's own ranking, from 1; collected on request."""


@dataclass(frozen=True)
class Reranking:
    """One way to turn scores into lists."""

    method: str = "none"
    lam: float = 0.0
    candidates: int | None = None
    order: str = "greedy"
    temperature: float = 1.0

    @classmethod
    def from_config(cls, config, lam: float | None = None) -> Reranking:
        """The configured one; `lam` in the place of `rerank_lambda` where given."""
        if config["reranker"] == "none":
            lam = 0.0
        return cls(
            config["reranker"],
            config["rerank_lambda"] if lam is None else lam,
            config["rerank_candidates"],
            config["rerank_order"],
            config["rerank_temperature"],
        )


@dataclass
class Collected:
    """What one reranking gave: RecBole's evaluation resources, and the seconds spent on reranking alone.

    Lambdas of one method are reranked together, and each has an equal share of the seconds.
    """

    reranking: Reranking
    struct: DataStruct
    seconds: float = 0.0
    users: int = 0
    short: int = 0


class RerankingCollector(CompatCollector):
    """Scores a batch once, reranks it in every way of `rerankings`, and fills `rec.items` and `rec.topk` from the lists.

    So every RecBole metric sees the reranked list. The first of `rerankings` is what `Trainer.evaluate` reports; all of
    them are in `collected` afterwards. Metrics that look at scores rather than lists (GAUC) are not affected.
    """

    def __init__(self, config):
        super().__init__(config)
        # The parent collects what metrics need of the scores, and this class what they need of the lists.
        self._lists_needed = [name for name in LISTS if self.register.need(name)]
        for name in LISTS:
            setattr(self.register, name, False)
        self.collected: list[Collected] = []
        self.ranks_wanted = False
        self._warned = 0  # once for a number of short lists, not once an epoch
        self.rerank_with([Reranking()])

    def rerank_with(self, rerankings: list[Reranking]) -> None:
        """From the next evaluation on, rerank in these ways."""
        self.rerankings = rerankings
        self._running = [Collected(reranking, DataStruct()) for reranking in rerankings]
        self._sweeps: dict[Reranking, list[Collected]] = {}
        for run in self._running:
            self._sweeps.setdefault(replace(run.reranking, lam=0.0), []).append(run)

    def needs(self, name: str) -> bool:
        """Whether a metric or a reranking needs this preference."""
        targets = {get_reranker(reranking.method).target for reranking in self.rerankings}
        return self.register.need(name) or any(PREFERENCES[target] == name for target in targets - {None})

    def set_categories(self, categories: ItemCategories) -> None:
        self.data_struct.set(CATEGORIES, categories)

    def eval_batch_collect(self, scores_tensor, interaction, positive_u, positive_i):
        super().eval_batch_collect(scores_tensor, interaction, positive_u, positive_i)
        for name in PREFERENCES.values():
            if self.register.need(name):
                self.data_struct.update_tensor(name, interaction[name])
        positive_u, positive_i = positive_u.to(scores_tensor.device), positive_i.to(scores_tensor.device)
        positives = torch.bincount(positive_u, minlength=len(scores_tensor)).int()[:, None]
        ranks = _ranks(scores_tensor) if self.ranks_wanted else None
        for runs in self._sweeps.values():
            if not runs[0].users:
                self._sweep(runs, scores_tensor, interaction, users=0)  # compiles what has to be, before time is taken
            started = _now(scores_tensor)
            sweep = self._sweep(runs, scores_tensor, interaction)
            seconds = _now(scores_tensor) - started
            for run, lists in zip(runs, sweep, strict=True):
                run.seconds += seconds / len(runs)
                run.users += len(lists)
                run.short += int((lists[:, -1] == 0).sum())
                if ranks is not None:
                    run.struct.update_tensor(RANKS, ranks.gather(1, lists))
                if "rec.items" in self._lists_needed:
                    run.struct.update_tensor("rec.items", lists)
                if "rec.topk" in self._lists_needed:
                    found = (lists[positive_u] == positive_i[:, None]).int()
                    hits = torch.zeros_like(lists, dtype=torch.int).index_add_(0, positive_u, found)
                    run.struct.update_tensor("rec.topk", torch.cat([hits, positives], dim=1))

    def _sweep(self, runs: list[Collected], scores, interaction, users: int | None = None):
        """Lists `[len(runs), B, K]` of rerankings that differ in lambda alone, for the first so many users."""
        one = runs[0].reranking
        target = get_reranker(one.method).target
        return rerank_sweep(
            scores[:users],
            interaction[PREFERENCES[target]][:users] if target else None,
            self.data_struct.get(CATEGORIES),
            max(self.topk),
            one.method,
            [run.reranking.lam for run in runs],
            self.config["beta"],
            one.candidates,
            one.order,
            one.temperature,
        )

    def get_data_struct(self):
        """RecBole's resources for the first reranking; `collected` holds those for all."""
        shared = super().get_data_struct()
        for run in self._running:
            run.struct._data_dict = {
                **shared._data_dict,
                **{k: v.cpu() for k, v in run.struct._data_dict.items()},
            }
            if run.short and run.short != self._warned:
                _logger.warning(SHORT_LISTS, run.short, run.users, max(self.topk))
                self._warned = run.short
        self.collected = self._running
        self.rerank_with(self.rerankings)
        return self.collected[0].struct


def _ranks(scores: torch.Tensor) -> torch.Tensor:
    """`[B, I]`: the place of each item in a user's ranking, from 1; equal scores by rising id.

    Example:
        >>> _ranks(torch.tensor([[0.5, 2.0, 0.5]]))
        tensor([[2, 1, 3]])
    """
    order = scores.argsort(dim=1, descending=True, stable=True)
    places = torch.arange(1, scores.shape[1] + 1, device=scores.device).expand_as(order)
    return torch.empty_like(order).scatter_(1, order, places)


def _now(tensor: torch.Tensor) -> float:
    """The time when all work on the tensor's device is done."""
    if tensor.is_cuda:
        torch.cuda.synchronize(tensor.device)
    return time.perf_counter()
