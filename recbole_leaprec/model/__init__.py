"""The models: the plugin's own, RecBole's sequential ones, and `<Any>CD` for each of these."""

from __future__ import annotations

from collections import ChainMap
from functools import cache

import recbole.model.sequential_recommender as recbole_models

import recbole_leaprec.model.sequential_recommender as own_models
from recbole_leaprec.model.one_row_per_prefix import OneRowPerPrefixMixin
from recbole_leaprec.settings.model_names import check_model

__all__ = ["get_model"]

_MODELS = ChainMap(vars(own_models), vars(recbole_models))  # ours win over RecBole's of the same name


@cache
def get_model(name: str) -> type:
    """The model class of that name. `<Any>CD` of a RecBole model is made on the fly.

    Raises:
        ValueError: there is no such model (the message has the most similar name), or it cannot run here (with the reason).
    """
    check_model(name)
    if name in _MODELS:
        return _MODELS[name]
    base = name.removesuffix("CD")
    documentation = f"RecBole's {base} trained on `L_BPR + gamma L_CD-BPR`, one row per prefix."
    return type(name, (OneRowPerPrefixMixin, _MODELS[base]), {"__doc__": documentation})
