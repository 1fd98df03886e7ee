"""Evaluation: reranked lists for RecBole's metrics, and our own metrics."""

import recbole_leaprec.lighter_recbole  # isort: skip  # noqa: F401, before all imports from RecBole

from recbole_leaprec.evaluator.collector import Evaluation, RerankingCollector
from recbole_leaprec.evaluator.register import register_metrics

__all__ = ["Evaluation", "RerankingCollector", "register_metrics"]
