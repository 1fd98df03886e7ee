"""Calibrated sequential recommendation for RecBole: LeapRec (CIKM '24), its competitors, and S_KL@K.

The tensor functions need no RecBole; `run_leaprec` and `evaluate` are the whole way from files to figures.
"""

from recbole_leaprec.calibration import miscalibration
from recbole_leaprec.categories import ItemCategories
from recbole_leaprec.preference import sequential_preference
from recbole_leaprec.reranking import rerank

__version__ = "0.1.0"
__all__ = ["ItemCategories", "evaluate", "miscalibration", "rerank", "run_leaprec", "sequential_preference"]


def __getattr__(name):
    # RecBole takes seconds to import, and the tensor functions do not need it.
    if name in ("run_leaprec", "evaluate"):
        from recbole_leaprec import quick_start

        return getattr(quick_start, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
