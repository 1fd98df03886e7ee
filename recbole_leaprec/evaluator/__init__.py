"""Evaluation: reranked lists for RecBole's metrics, and two metrics of our own."""

from recbole_leaprec.evaluator.collector import Reranking, RerankingCollector
from recbole_leaprec.evaluator.metrics import CKL, SKL, register_metrics

__all__ = ["CKL", "SKL", "Reranking", "RerankingCollector", "register_metrics"]
