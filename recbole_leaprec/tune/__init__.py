"""Hyperparameter search with Ray Tune, on validation."""

from recbole_leaprec.cluster import import_ray

import_ray()

from recbole_leaprec.tune.search import tune  # noqa: E402

__all__ = ["tune"]
