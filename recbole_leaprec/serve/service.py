"""Makes answers from wishes: the work of a service, without HTTP."""

from __future__ import annotations

import gc
import logging
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import recbole_leaprec
from recbole_leaprec.common.defaults import LIST_LENGTH
from recbole_leaprec.common.did_you_mean import did_you_mean, unknown_name
from recbole_leaprec.common.slow_step import in_log, slow_step
from recbole_leaprec.recommend.recommender import Recommender
from recbole_leaprec.recommend.rules import read_rules
from recbole_leaprec.reranking.registry import RERANKERS
from recbole_leaprec.reranking.reranking import Reranking
from recbole_leaprec.serve.bodies import Answer, Candidate, Listed, ModelInfo, RecommendBody, RerankBody, Wanted
from recbole_leaprec.serve.settings import Limits

_logger = logging.getLogger(__name__)

SERVED = [name for name, reranker in RERANKERS.items() if reranker.compiled or reranker.preference is None]
"""Rerankers that take milliseconds per list. The solvers may take seconds, and are not served."""

SLOW = "it solves a program per list, which takes too long for a service; `leaprec recommend` and `leaprec rerank` have it"


class Refused(ValueError):
    """A request asks for something unknown, or for more than is allowed."""


@dataclass(frozen=True)
class Wish:
    """What one request asks for, in the model's ids.

    Attributes:
        history: known items, oldest first.
        left_out: items that the list must not hold.
        candidates: `[I]`, scores from the request, -inf for all other items; None to use the model's scores.
        preference: `[C]`, the preference to calibrate to; None to use that of the history.
        unknown: the number of items of the request that the model does not know.
    """

    k: int
    reranking: Reranking
    history: list[int]
    left_out: Sequence[int] = ()
    user: str = ""
    candidates: Tensor | None = None
    preference: Tensor | None = None
    unknown: int = 0


def open_service(
    checkpoint: str | Path,
    changes: dict[str, Any] | None = None,
    k: int = LIST_LENGTH,
    *,
    allow: str | Path | None = None,
    deny: str | Path | None = None,
    items: str | Path | None = None,
    limits: Limits | None = None,
) -> Service:
    """A service of a model file, ready to answer. The arguments are those of `recommend`.

    Args:
        k: list length of requests without one.

    Raises:
        ValueError: bad arguments or files, or a reranker that is too slow for a service.
    """
    (limits or Limits()).check_default(k)
    service = Service(Recommender(checkpoint, changes, k, **read_rules(allow, deny, items)), limits)
    service.warm_up()
    return service


class Service:
    """Answers for histories, and for candidates with scores."""

    def __init__(self, recommender: Recommender, limits: Limits | None = None):
        """
        Raises:
            Refused: the configured reranker is too slow for a service.
        """
        self._recommender, self.limits = recommender, limits or Limits()
        self._tokens, self._names = recommender.dataset.items, recommender.dataset.names
        self._category_ids = {name: number for number, name in enumerate(recommender.categories.names)}
        # Plain lists have no lambda, so requests for other lists get that of the model.
        plain = recommender.reranking.method == "none"
        self._lambda = recommender.config["rerank_lambda"] if plain else recommender.reranking.lam
        self._reranking(recommender.reranking.method, None)

    @property
    def info(self) -> ModelInfo:
        own = self._recommender
        return ModelInfo(
            model=own.config["model"], dataset=own.config["dataset"], version=recbole_leaprec.__version__,
            items=len(self._tokens) - 1, categories=list(own.categories.names), titles=self._names is not None, k=own.k,
            reranker=own.reranking.method, rerank_lambda=self._lambda, rerankers=SERVED, limits=asdict(self.limits),
        )  # fmt: skip

    def warm_up(self) -> None:
        """Compile and load everything that a request may need."""
        item = self._tokens[1]
        with slow_step("getting the rerankers ready", in_log(_logger)):
            for reranker in SERVED:
                history = RecommendBody(history=[item], k=1, reranker=reranker)
                candidates = RerankBody(candidates=[Candidate(item=item, score=1)], history=[item], k=1, reranker=reranker)
                self.answer([self.recommend_wish(history), self.rerank_wish(candidates)])

    @staticmethod
    def keep_all() -> None:
        """Exclude all present objects from garbage collection, for a process that only serves.

        Requests make so many objects that Python would scan all objects again and again. With torch and RecBole loaded, each
        scan takes a tenth of a second or more.
        """
        gc.collect()
        gc.freeze()

    def recommend_wish(self, body: RecommendBody) -> Wish:
        """The wish of a request. Raises Refused for values that are unknown or beyond the limits."""
        self._check_size("history", body.history)
        self._check_size("leave_out", body.leave_out)
        history, left_out = self._recommender.ids(body.history), self._recommender.ids(body.leave_out)
        unknown = len(body.history) - len(history)
        return Wish(*self._wanted(body), history, left_out, body.user or "", unknown=unknown)

    def rerank_wish(self, body: RerankBody) -> Wish:
        """The wish of a request. Raises Refused for values that are unknown or beyond the limits."""
        if (body.history is None) == (body.preference is None):
            raise Refused("give a history or a preference to calibrate to: one of them")
        self._check_size("candidates", body.candidates)
        self._check_size("history", body.history or [])
        history, known = self._recommender.ids(body.history or []), self._recommender.ids_by_token
        best: dict[int, float] = {}
        for candidate in body.candidates:
            item = known.get(candidate.item, 0)
            best[item] = max(candidate.score, best.get(item, -math.inf))  # for repeated items, the highest counts
        unknown = sum(candidate.item not in known for candidate in body.candidates) + len(body.history or []) - len(history)
        best.pop(0, None)
        scores = torch.full((len(self._tokens),), -torch.inf, dtype=torch.float64)
        scores[list(best)] = torch.tensor(list(best.values()), dtype=torch.float64)
        preference = None if body.preference is None else self._preference(body.preference)
        return Wish(*self._wanted(body), history, candidates=scores, preference=preference, unknown=unknown)

    def answer(self, wishes: Sequence[Wish]) -> list[Answer]:
        """One answer per wish. The model scores all histories at once."""
        answers: dict[int, Answer] = {}
        scores = {n: wish.candidates for n, wish in enumerate(wishes) if wish.candidates is not None}
        histories = {n: wish for n, wish in enumerate(wishes) if wish.candidates is None and wish.history}
        if histories:
            asked = [(wish.user, wish.history, wish.left_out) for wish in histories.values()]
            scores.update(zip(histories, self._recommender.scores(*map(list, zip(*asked, strict=True))), strict=True))
        groups: dict[tuple[bool, Reranking, int], list[int]] = defaultdict(list)
        for n, wish in enumerate(wishes):
            if n in scores:
                groups[n in histories, wish.reranking, wish.k].append(n)
            else:
                lists, values = self._recommender.popular([wish.left_out], wish.k)
                answers[n] = self._told(wish, lists[0], values[0], None)
        for (_, reranking, k), members in groups.items():
            own = [wishes[n] for n in members]
            p, to = self._recommender.preferences([wish.history for wish in own], reranking)
            for row, wish in enumerate(own):
                if wish.preference is not None:
                    p[row] = to[row] = wish.preference
            lists, values, skl = self._recommender.calibrated(torch.stack([scores[n] for n in members]), p, to, reranking, k)
            has_preference = p.any(1).tolist()
            for row, n in enumerate(members):
                divergence = float(skl[row]) if has_preference[row] else None
                answers[n] = self._told(wishes[n], lists[row], values[row], divergence)
        return [answers[n] for n in range(len(wishes))]

    def _told(self, wish: Wish, items: Tensor, scores: Tensor, skl: float | None) -> Answer:
        listed = [
            Listed.model_construct(
                item=self._tokens[item], title=None if self._names is None else self._names[item], score=score
            )
            for item, score in zip(items.tolist(), scores.tolist(), strict=True)
            if item
        ]
        return Answer.model_construct(items=listed, skl=skl, fallback=skl is None, unknown_items=wish.unknown)

    def _wanted(self, body: Wanted) -> tuple[int, Reranking]:
        k, most = body.k or self._recommender.k, min(self.limits.k, len(self._tokens) - 1)
        if k > most:
            raise Refused(f"k must be at most {most}, got {k}")
        return k, self._reranking(body.reranker, body.rerank_lambda)

    def _reranking(self, name: str | None, lam: float | None) -> Reranking:
        own = self._recommender.reranking
        method = own.method if name is None else name
        if method not in SERVED:
            if method in RERANKERS:
                raise Refused(f"reranker {method!r} is not served: {SLOW}. What is: {', '.join(SERVED)}")
            raise Refused(unknown_name("reranker", method, SERVED))
        return replace(own, method=method, lam=self._lambda if lam is None else lam)

    def _preference(self, shares: dict[str, float]) -> Tensor:
        for name in shares:
            if name not in self._category_ids:
                near = did_you_mean(name, self._category_ids)
                raise Refused(f"unknown category {name!r}{near} GET /model has them all")
        total = sum(shares.values())
        if not 0 < total < math.inf:
            raise Refused(f"preference: the shares must have a sum above 0, got {total:g}")
        row = torch.zeros(len(self._category_ids), dtype=torch.float64)
        for name, share in shares.items():
            row[self._category_ids[name]] = share / total
        return row.float()

    def _check_size(self, name: str, values: Sequence[object]) -> None:
        if len(values) > self.limits.items:
            raise Refused(f"{name} must have at most {self.limits.items} entries, got {len(values)}")
