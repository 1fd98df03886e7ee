"""Imports RecBole without scikit-learn. This module must be imported before all imports from RecBole.

RecBole needs scikit-learn only for three metrics of click prediction, and no ranking metric calls it. It would take a
quarter of the time, and 70 MB of the memory, of every start.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

_MODULE = "sklearn.metrics"
_NAMES = ("auc", "mean_absolute_error", "mean_squared_error")
"""The functions that RecBole's metrics import from it."""


def _imported_when_called(name: str) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        return getattr(import_module(_MODULE), name)(*arguments, **options)

    return call


if _MODULE not in sys.modules:
    stand_in = ModuleType(_MODULE)
    for _name in _NAMES:
        setattr(stand_in, _name, _imported_when_called(_name))
    sys.modules[_MODULE] = stand_in
    try:
        import_module("recbole.evaluator.metrics")
    finally:
        del sys.modules[_MODULE]
