"""Calibrated sequential recommendation for RecBole: LeapRec (CIKM '24), its competitors, and S_KL@K.

The tensor functions need no RecBole; `run_leaprec` and `evaluate` are the whole way from files to figures.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recbole_leaprec.calibration import miscalibration
    from recbole_leaprec.categories import ItemCategories
    from recbole_leaprec.preference import sequential_preference
    from recbole_leaprec.quick_start import evaluate, run_leaprec
    from recbole_leaprec.reranking import rerank

__version__ = "0.1.0"
__all__ = ["ItemCategories", "evaluate", "miscalibration", "rerank", "run_leaprec", "sequential_preference"]

_HOMES = {
    "ItemCategories": "categories",
    "evaluate": "quick_start",
    "miscalibration": "calibration",
    "rerank": "reranking",
    "run_leaprec": "quick_start",
    "sequential_preference": "preference",
}


def __getattr__(name: str) -> Any:
    # Torch takes a second to import and RecBole several: each name brings in what it needs itself.
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
