"""Models by name: the plugin's own, RecBole's sequential ones, and `<Any>CD` for these."""

from __future__ import annotations

import inspect
from functools import cache

import recbole.model.sequential_recommender as recbole_models
from recbole.model.abstract_recommender import SequentialRecommender

import recbole_leaprec.model.sequential_recommender as own_models
from recbole_leaprec.model.cd_mixin import CalibrationDisentangledMixin
from recbole_leaprec.suggest import unknown_name

__all__ = ["UNSUPPORTED", "get_model", "known_models"]

_ONE_ITEM = "it scores one item at a time for click prediction and cannot rank the whole catalogue"
_GRAPH = "it needs embeddings of a knowledge graph beside the interactions"
UNSUPPORTED = {
    "DIN": _ONE_ITEM,
    "DIEN": _ONE_ITEM,
    "GRU4RecKG": _GRAPH,
    "KSR": _GRAPH,
    "S3Rec": "it needs a stage of pre-training with a trainer of its own",
}
"""RecBole's sequential models that do not run here, and why."""


def known_models() -> list[str]:
    """Every name that `--model` takes."""
    plain = [name for name in _models_of(recbole_models) if name not in UNSUPPORTED]
    return sorted({*plain, *(f"{name}CD" for name in plain), *_models_of(own_models)})


@cache
def get_model(name: str) -> type:
    """The model class of that name, made if it is `<Any>CD` of a RecBole model.

    Raises:
        ValueError: there is no such model, with the nearest name; or it cannot run here, with the reason.
    """
    base = name.removesuffix("CD")
    if base in UNSUPPORTED:
        raise ValueError(f"model {name!r} is not supported: {UNSUPPORTED[base]}")
    if name not in known_models():
        raise ValueError(unknown_name("model", name, known_models()))
    models = _models_of(recbole_models) | _models_of(own_models)
    if name in models:
        return models[name]
    documentation = f"RecBole's {base} trained on `L_BPR + gamma L_CD-BPR`, one row a prefix."
    return type(name, (CalibrationDisentangledMixin, models[base]), {"__doc__": documentation})


def _models_of(module) -> dict[str, type]:
    members = inspect.getmembers(module, inspect.isclass)
    return {name: member for name, member in members if issubclass(member, SequentialRecommender)}
