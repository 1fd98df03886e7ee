"""Adds the plugin's metrics to RecBole."""

from __future__ import annotations

import inspect
from typing import Any

from recbole.evaluator import register
from recbole.evaluator.base_metric import AbstractMetric

from recbole_leaprec.evaluator import metrics


def register_metrics() -> None:
    """Make the classes of `metrics` known to RecBole. Call it before a config is made."""
    found: list[Any] = [one for one in vars(metrics).values() if inspect.isclass(one) and issubclass(one, AbstractMetric)]
    for metric in found:
        name = metric.__name__.lower()
        register.metrics_dict[name] = metric
        register.metric_information[name] = metric.metric_need
        register.metric_types[name] = metric.metric_type
        if metric.smaller and name not in register.smaller_metrics:
            register.smaller_metrics.append(name)
