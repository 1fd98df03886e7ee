"""Models by name: the plugin's own, then RecBole's sequential ones."""

from __future__ import annotations

import inspect

import recbole.model.sequential_recommender as recbole_models
from recbole.model.abstract_recommender import SequentialRecommender

import recbole_leaprec.model.sequential_recommender as own_models
from recbole_leaprec.suggest import unknown_name

__all__ = ["get_model", "known_models"]


def known_models() -> dict[str, type]:
    """Every model that `--model` takes."""
    models = {}
    for module in (recbole_models, own_models):
        models |= {
            name: member
            for name, member in inspect.getmembers(module, inspect.isclass)
            if issubclass(member, SequentialRecommender)
        }
    return models


def get_model(name: str) -> type:
    """The model class of that name; ValueError with the nearest known name if there is none."""
    models = known_models()
    if name not in models:
        raise ValueError(unknown_name("model", name, models))
    return models[name]
