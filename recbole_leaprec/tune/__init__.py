"""Hyperparameter search with Ray Tune, on validation."""

from recbole_leaprec.tune.search import tune

__all__ = ["tune"]
