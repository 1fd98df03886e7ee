"""The objective of a search, always on validation: a metric, a metric under a bound, or the whole trade-off."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from recbole.evaluator import smaller_metrics

from recbole_leaprec.common.defaults import LAMBDAS
from recbole_leaprec.common.did_you_mean import did_you_mean

OUT_OF_BOUND = -1e6
"""The score of a model that misses the bound at every lambda is this, minus the distance to the bound."""

_SUBJECT_TO = re.compile(r"(\S+)\s+subject\s+to\s+(\S+)\s*(<=|>=)\s*(\S+)", re.IGNORECASE)
_HYPERVOLUME = re.compile(r"hypervolume(?:@(\d+))?", re.IGNORECASE)


@dataclass(frozen=True)
class Point:
    """Validation metrics of the lists at one lambda."""

    lam: float
    metrics: dict[str, float]


@dataclass(frozen=True)
class Objective:
    """The quantity that a search maximises.

    Attributes:
        metric: the metric to maximise, negated if smaller is better; empty for a hypervolume. Without a bound it is
            that of the plain ranking.
        bound: `(metric, sign, limit)`; the score is the best `metric` among the lambdas that meet it.
        hypervolume: the K of the (nDCG, -S_KL) curve whose hypervolume is the score.
    """

    text: str
    metric: str = ""
    bound: tuple[str, str, float] | None = None
    hypervolume: int | None = None
    beta: float = 0.01

    @property
    def lambdas(self) -> tuple[float, ...]:
        """The lambdas to rerank with at each validation; none if only the plain ranking counts."""
        return LAMBDAS if self.bound or self.hypervolume else ()

    def score(self, plain: dict[str, float], points: Sequence[Point] = ()) -> tuple[float, float | None]:
        """`(score, lambda)`: larger is better; `lambda` is the one with this score, None for the configured one.

        Example:
            >>> objective = parse_objective("ndcg@10 subject to skl@10 <= 0.5", ["ndcg@10", "skl@10"])
            >>> points = [Point(0.0, {"ndcg@10": 0.3, "skl@10": 1.0}), Point(0.5, {"ndcg@10": 0.2, "skl@10": 0.4})]
            >>> objective.score({}, points)
            (0.2, 0.5)
        """
        if self.hypervolume:
            curve = [
                (point.metrics[f"ndcg@{self.hypervolume}"], point.metrics[f"skl@{self.hypervolume}"]) for point in points
            ]
            return hypervolume(curve, math.log(1 / self.beta)), None
        if not self.bound:
            return self._signed(plain), None
        name, sign, limit = self.bound
        excess = {p.lam: (p.metrics[name] - limit) * (1 if sign == "<=" else -1) for p in points}
        allowed = [point for point in points if excess[point.lam] <= 0]
        if allowed:
            best = max(allowed, key=lambda point: (self._signed(point.metrics), -point.lam))
            return self._signed(best.metrics), best.lam
        # This is below the score of every model that meets the bound; a smaller distance to the bound is better.
        nearest = min(excess, key=lambda lam: excess[lam])
        return OUT_OF_BOUND - excess[nearest], nearest

    def _signed(self, metrics: dict[str, float]) -> float:
        return -metrics[self.metric] if _smaller_is_better(self.metric) else metrics[self.metric]


def parse_objective(text: str, known: Sequence[str], beta: float = 0.01) -> Objective:
    """The objective that a text describes: `ndcg@10`, `ndcg@10 subject to skl@10 <= 0.3`, or `hypervolume@10`.

    Args:
        known: the metrics that an evaluation gives, such as ndcg@10 (from `metrics` and `topk`).

    Raises:
        ValueError: the text has another form, or names a metric that is not known.
    """
    if match := _HYPERVOLUME.fullmatch(text.strip()):
        k = match[1] or next((name.partition("@")[2] for name in known if "@" in name), "10")
        for name in (f"ndcg@{k}", f"skl@{k}"):
            _check_metric(name, known, text)
        return Objective(text, hypervolume=int(k), beta=beta)
    if match := _SUBJECT_TO.fullmatch(text.strip()):
        metric, name, sign, limit = match.groups()
        try:
            limit = float(limit)
        except ValueError as error:
            raise ValueError(f"objective {text!r}: the bound {limit!r} is not a number") from error
        if not math.isfinite(limit):
            raise ValueError(f"objective {text!r}: the bound must be finite, got {limit!r}")
        return Objective(text, _check_metric(metric, known, text), (_check_metric(name, known, text), sign, limit))
    if " " in text.strip():
        raise ValueError(
            f"objective {text!r}: write a metric, `<metric> subject to <metric> <= <number>`, or hypervolume@<K>"
        )
    return Objective(text, _check_metric(text.strip(), known, text))


def _check_metric(name: str, known: Sequence[str], text: str) -> str:
    if name.lower() not in known:
        raise ValueError(
            f"objective {text!r}: there is no metric {name!r}{did_you_mean(name, known)} There are {', '.join(known)} "
            f"(from metrics and topk)"
        )
    return name.lower()


def _smaller_is_better(metric: str) -> bool:
    return metric.partition("@")[0] in smaller_metrics


def hypervolume(curve: Sequence[tuple[float, float]], worst: float) -> float:
    """The area that points (nDCG, S_KL) dominate, measured from nDCG 0 and S_KL `worst`.

    Example:
        >>> round(hypervolume([(0.2, 1.0), (0.1, 0.5)], worst=2.0), 4)  # 0.2 * 1.0 + 0.1 * 0.5
        0.25
    """
    area, reached = 0.0, 0.0
    # From the most accurate point to the least accurate one, each adds a strip to the area.
    for ndcg, skl in sorted(curve, key=lambda point: (-point[0], point[1])):
        if worst - skl > reached:
            area += ndcg * (worst - skl - reached)
            reached = worst - skl
    return area
