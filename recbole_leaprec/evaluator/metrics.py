"""SKL and CKL as RecBole metrics: `metrics: [Hit, NDCG, SKL]`, per `topk`, smaller is better."""

from __future__ import annotations

from recbole.evaluator import register
from recbole.evaluator.base_metric import AbstractMetric
from recbole.utils import EvaluatorType

from recbole_leaprec.calibration import miscalibration

CATEGORIES = "data.categories"
SEQUENTIAL_PREFERENCE = "rec.sequential_preference"
STATIC_PREFERENCE = "rec.static_preference"


class _Miscalibration(AbstractMetric):
    """The mean over users of the miscalibration of their first K items."""

    metric_type = EvaluatorType.RANKING
    smaller = True
    preference: str

    def __init__(self, config):
        super().__init__(config)
        self.topk, self.beta = config["topk"], config["beta"]

    def calculate_metric(self, dataobject):
        lists, p = dataobject.get("rec.items"), dataobject.get(self.preference)
        categories = dataobject.get(CATEGORIES)
        name = type(self).__name__.lower()
        return {
            f"{name}@{k}": round(miscalibration(p, lists[:, :k], categories, self.beta).mean().item(), self.decimal_place)
            for k in self.topk
        }


class SKL(_Miscalibration):
    """S_KL@K (Eq. 1): miscalibration against the sequential preference, decayed by `alpha`."""

    preference = SEQUENTIAL_PREFERENCE
    metric_need = ["rec.items", SEQUENTIAL_PREFERENCE, CATEGORIES]


class CKL(_Miscalibration):
    """C_KL@K: miscalibration against the static preference, the plain mean over the history (Steck, 2018)."""

    preference = STATIC_PREFERENCE
    metric_need = ["rec.items", STATIC_PREFERENCE, CATEGORIES]


def register_metrics() -> None:
    """Make SKL and CKL known to RecBole; must come before a config is made."""
    for metric in (SKL, CKL):
        name = metric.__name__.lower()
        register.metrics_dict[name] = metric
        register.metric_information[name] = metric.metric_need
        register.metric_types[name] = metric.metric_type
        if name not in register.smaller_metrics:
            register.smaller_metrics.append(name)
