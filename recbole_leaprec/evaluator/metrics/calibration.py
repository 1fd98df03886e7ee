"""S_KL@K and C_KL@K as the RecBole metrics SKL and CKL: `metrics: [Hit, NDCG, SKL]`, for each `topk`. Lower is better."""

from __future__ import annotations

import numpy as np
from recbole.evaluator.base_metric import TopkMetric

from recbole_leaprec.core.calibration import miscalibration
from recbole_leaprec.evaluator.resources import CATEGORIES, LISTS, SEQUENTIAL_PREFERENCE, STATIC_PREFERENCE


class _Miscalibration(TopkMetric):
    """The mean over users of the miscalibration of the first K items of their lists."""

    smaller = True
    preference: str

    def __init__(self, config):
        super().__init__(config)
        self.beta = config["beta"]

    def calculate_metric(self, dataobject):
        lists, p, categories = (dataobject.get(name) for name in (LISTS, self.preference, CATEGORIES))
        values = np.zeros((len(lists), max(self.topk)))
        for k in self.topk:  # other columns are never read
            values[:, k - 1] = miscalibration(p, lists[:, :k], categories, self.beta).numpy()
        return self.topk_result(type(self).__name__.lower(), values)


class SKL(_Miscalibration):
    """S_KL@K (Eq. 1): miscalibration against the sequential preference, with the decay `alpha`."""

    preference = SEQUENTIAL_PREFERENCE
    metric_need = [LISTS, SEQUENTIAL_PREFERENCE, CATEGORIES]


class CKL(_Miscalibration):
    """C_KL@K: miscalibration against the static preference, the plain mean over the history (Steck, 2018)."""

    preference = STATIC_PREFERENCE
    metric_need = [LISTS, STATIC_PREFERENCE, CATEGORIES]
