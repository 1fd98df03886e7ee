"""S_KL@K and C_KL@K as RecBole metrics, SKL and CKL: `metrics: [Hit, NDCG, SKL]`, per `topk`, smaller is better."""

from __future__ import annotations

from recbole.evaluator.base_metric import AbstractMetric
from recbole.utils import EvaluatorType

from recbole_leaprec.core.calibration import miscalibration
from recbole_leaprec.evaluator.resources import CATEGORIES, LISTS, SEQUENTIAL_PREFERENCE, STATIC_PREFERENCE


class _Miscalibration(AbstractMetric):
    """The mean over users of the miscalibration of their first K items."""

    metric_type = EvaluatorType.RANKING
    smaller = True
    preference: str

    def __init__(self, config):
        super().__init__(config)
        self.topk, self.beta = config["topk"], config["beta"]

    def calculate_metric(self, dataobject):
        lists, p = dataobject.get(LISTS), dataobject.get(self.preference)
        categories = dataobject.get(CATEGORIES)
        name = type(self).__name__.lower()
        return {
            f"{name}@{k}": round(miscalibration(p, lists[:, :k], categories, self.beta).mean().item(), self.decimal_place)
            for k in self.topk
        }


class SKL(_Miscalibration):
    """S_KL@K (Eq. 1): miscalibration against the sequential preference, decayed by `alpha`."""

    preference = SEQUENTIAL_PREFERENCE
    metric_need = [LISTS, SEQUENTIAL_PREFERENCE, CATEGORIES]


class CKL(_Miscalibration):
    """C_KL@K: miscalibration against the static preference, the plain mean over the history (Steck, 2018)."""

    preference = STATIC_PREFERENCE
    metric_need = [LISTS, STATIC_PREFERENCE, CATEGORIES]
