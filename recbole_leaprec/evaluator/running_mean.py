"""Means over users, summed up batch by batch."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from recbole.evaluator.base_metric import AbstractMetric, TopkMetric
from recbole.evaluator.collector import DataStruct


class RunningMean:
    """A `TopkMetric`, RecBole's or our own, over users that come in batches. It keeps only one sum per K.

    Such a metric computes one value per user and K, and gives them all to `topk_result`, which takes and rounds the means.
    """

    def __init__(self, metric: TopkMetric):
        self._metric = metric
        self._in_batches: Any = copy.copy(metric)
        self._in_batches.topk_result = lambda name, value: {name: value}  # all values, before their mean is taken
        self._sums: dict[str, np.ndarray] = {}
        self._users = 0

    def add(self, batch: DataStruct, users: int) -> None:
        self._users += users
        for name, value in self._in_batches.calculate_metric(batch).items():
            self._sums[name] = self._sums.get(name, 0) + value.sum(axis=0, dtype=np.float64)

    @property
    def means(self) -> dict[str, np.ndarray]:
        """The means by name, `[max K]` each, not rounded. The mean for K is at index K - 1."""
        return {name: total / self._users for name, total in self._sums.items()}

    def result(self) -> dict[str, float]:
        """The result that `calculate_metric` would return for all users at once."""
        results = [self._metric.topk_result(name, mean[None]) for name, mean in self.means.items()]
        return {name: float(value) for result in results for name, value in result.items()}


def is_mean_over_users(metric: AbstractMetric) -> bool:
    """Whether `RunningMean` can sum up the metric. Others, such as ItemCoverage, need the lists of all users together."""
    return isinstance(metric, TopkMetric)
