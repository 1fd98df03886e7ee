"""Reranking: makes calibrated lists from relevance scores and a category preference. Nothing here uses RecBole."""

from typing import TYPE_CHECKING

from recbole_leaprec.common.lazy import lazy_names
from recbole_leaprec.reranking.registry import ORDERS, RERANKERS, Reranker, get_reranker, register, register_greedy

if TYPE_CHECKING:
    from recbole_leaprec.reranking.lists import rerank, rerank_sweep
    from recbole_leaprec.reranking.reranking import Reranking

__all__ = [
    "ORDERS", "RERANKERS", "Reranker", "Reranking", "get_reranker", "register", "register_greedy", "rerank", "rerank_sweep",
]  # fmt: skip

__getattr__ = lazy_names(__name__, {"Reranking": "reranking", "rerank": "lists", "rerank_sweep": "lists"})
