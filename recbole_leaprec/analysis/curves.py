"""Curves over lambda, one per method, and comparisons of methods at the same S_KL."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from recbole_leaprec.analysis.measurement import BASE, Measurement, metric_rows
from recbole_leaprec.analysis.significance import holm, paired_test
from recbole_leaprec.common.defaults import RESAMPLES
from recbole_leaprec.evaluator.per_user import METRICS

_SKL = METRICS.index("skl")


@dataclass(frozen=True)
class Curve:
    """One reranker on one model, measured with one or several seeds. Metrics are each user's mean over the seeds.

    Attributes:
        group: `method`, or `ablation`.
        runs: one measurement per seed, of the same dataset; the page shows the lists of the first.
        training: seconds of training, the mean over the runs; nan if not known.
        asked: the lambdas to show; None for all lambdas that every run has.
    """

    name: str
    reranker: str
    runs: Sequence[Measurement]
    group: str = "method"
    training: float = float("nan")
    asked: Sequence[float] | None = None

    @property
    def model(self) -> str:
        return self.runs[0].info["model"]

    @cached_property
    def lambdas(self) -> list[float]:
        """The lambdas that all runs have, ascending."""
        measured = [{lam for name, lam in run.place if name == self.reranker} for run in self.runs]
        common = set.intersection(*measured)
        return sorted(common if self.asked is None else common.intersection(self.asked))

    @cached_property
    def figures(self) -> np.ndarray:
        """Metrics of every user at each of the L lambdas, `[L, metric, U]`."""
        return self._mean(self.reranker, self.lambdas)

    @cached_property
    def base(self) -> np.ndarray:
        """Metrics of every user for the model's own ranking, `[metric, U]`."""
        return self._mean(BASE, [0.0])[0]

    def _mean(self, reranker: str, lambdas: Sequence[float]) -> np.ndarray:
        return np.mean([run.figures[[run.place[reranker, lam] for lam in lambdas]] for run in self.runs], axis=0)

    @cached_property
    def seconds(self) -> np.ndarray:
        """Seconds of reranking at each lambda, `[L]`."""
        return np.mean([[run.seconds[run.place[self.reranker, lam]] for lam in self.lambdas] for run in self.runs], axis=0)

    @cached_property
    def means_by_seed(self) -> dict[int, np.ndarray]:
        """Means over the users for each seed alone: of the model's own ranking, then of each lambda, `[L+1, metric]`."""
        points = [(BASE, 0.0), *((self.reranker, lam) for lam in self._own_lambdas)]
        return {
            run.info["config"]["seed"]: np.stack([run.figures[run.place[point]].mean(-1) for point in points])
            for run in self.runs
        }

    @property
    def _own_lambdas(self) -> list[float]:
        """The lambdas of its points beside the model's own ranking."""
        return [] if self.reranker == BASE else self.lambdas

    def at_skl(self, level: float) -> np.ndarray | None:
        """Metrics of every user where the mean S_KL is `level`, `[metric, U]`.

        The level is between two neighbouring lambdas. Each user gets the list of one of the two at random, with the
        probability that makes the mean S_KL the level; the metrics are the expected ones. If the model's own ranking is
        calibrated enough, its metrics are returned. None if no lambda reaches the level.
        """
        return _at_skl([self.base, *(self.figures if self._own_lambdas else [])], level)


def _at_skl(points: Sequence[np.ndarray], level: float) -> np.ndarray | None:
    """`Curve.at_skl` of metrics of users `[metric, U]`, or of their means `[metric]`, at each point of a curve."""
    skl = [point[_SKL].mean() for point in points]
    if skl[0] <= level:
        return points[0]
    for number in range(1, len(points)):
        if skl[number] <= level:
            share = (skl[number - 1] - level) / (skl[number - 1] - skl[number])
            return (1 - share) * points[number - 1] + share * points[number]
    return None


def curve_table(curves: Sequence[Curve], samples: int = RESAMPLES) -> pd.DataFrame:
    """One row per method and lambda, like `Measurement.table`. Each method's first row is the model's own ranking."""
    rows = []
    for curve in curves:
        points, figures = [(BASE, 0.0, 0.0)], curve.base[None]
        if curve.reranker != BASE:
            points += [(curve.reranker, lam, seconds) for lam, seconds in zip(curve.lambdas, curve.seconds, strict=True)]
            figures = np.concatenate([figures, curve.figures])
        for (reranker, lam, seconds), row in zip(points, metric_rows(figures, curve.runs[0].k, samples), strict=True):
            first = {"method": curve.name, "group": curve.group, "model": curve.model, "reranker": reranker, "lambda": lam}
            rows.append({**first, "seeds": len(curve.runs), **row, "seconds": seconds})
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class Comparison:
    """A reference, and the curves to compare with it; the reference may be among them."""

    reference: Curve
    curves: Sequence[Curve]


def compare(comparison: Comparison, levels: Sequence[float]) -> pd.DataFrame:
    """Compare nDCG and HR of each method with the reference at the same mean S_KL, by paired t-tests.

    Returns:
        One row per method, S_KL level that both reach, and metric: `value`, `reference_value`, `difference`, and `p` of a test
        over the users. Then `seeds` that both have, and over these seeds the `spread` of the difference (its standard
        deviation) and `p_seeds`, nan for one seed. Each seed is compared at the level, too; one that does not reach it does
        not count.
    """
    reference = comparison.reference
    rows = []
    for level in levels:
        ours = reference.at_skl(level)
        for curve in comparison.curves:
            theirs = curve.at_skl(level)
            if curve is reference or ours is None or theirs is None:
                continue
            by_seed = _differences_by_seed(curve, reference, level)
            for metric in ("ndcg", "hit"):
                one, other = theirs[METRICS.index(metric)], ours[METRICS.index(metric)]
                difference, p = paired_test(one - other)
                of_seeds = by_seed[:, METRICS.index(metric)]
                several = len(of_seeds) > 1
                rows.append(
                    {
                        "method": curve.name, "group": curve.group, "reference": reference.name, "skl": level, "metric": metric,
                        "value": one.mean(), "reference_value": other.mean(), "difference": difference, "p": p,
                        "seeds": len(of_seeds), "spread": of_seeds.std(ddof=1) if several else math.nan,
                        "p_seeds": paired_test(of_seeds)[1] if several else math.nan,
                    }
                )  # fmt: skip
    return pd.DataFrame(rows, columns=_COMPARED)


_COMPARED = [
    "method", "group", "reference", "skl", "metric", "value", "reference_value", "difference", "p", "seeds", "spread", "p_seeds",
]  # fmt: skip


def _differences_by_seed(curve: Curve, reference: Curve, level: float) -> np.ndarray:
    """How far the means over users are apart for each seed that both have and that reaches the level, `[S, metric]`."""
    ours, theirs = reference.means_by_seed, curve.means_by_seed
    pairs = [(_at_skl(list(theirs[seed]), level), _at_skl(list(ours[seed]), level)) for seed in ours if seed in theirs]
    found = [one - other for one, other in pairs if one is not None and other is not None]
    return np.array(found).reshape(len(found), len(METRICS))


def with_holm(compared: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """All comparisons in one table, with `p_holm`: p adjusted for the number of tests in the table (Holm, 1979)."""
    some = [one for one in compared if len(one)]
    table = pd.concat(some, ignore_index=True) if some else pd.DataFrame(columns=_COMPARED)
    table.insert(table.columns.get_loc("p") + 1, "p_holm", holm(table["p"].to_numpy(dtype=float)))
    return table


def own_levels(reference: Curve, count: int = 4) -> list[float]:
    """S_KL levels to compare at: between the largest and the smallest of the reference, in even ratios, rounded up."""
    skl = reference.figures[:, _SKL].mean(-1)
    inner = np.geomspace(max(skl.max(), 0.001), max(skl.min(), 0.001), count + 2)[1:-1]
    return sorted({math.ceil(level * 1000) / 1000 for level in inner}, reverse=True)
