"""Calibrated sequential recommendation for RecBole: LeapRec (CIKM '24), its competitors, and S_KL@K.

The tensor functions work without RecBole. `run_leaprec` and `evaluate` do everything, from files to metrics.
"""

from typing import TYPE_CHECKING

from recbole_leaprec.common.lazy import lazy_names

if TYPE_CHECKING:
    from recbole_leaprec.core.calibration import miscalibration
    from recbole_leaprec.core.categories import ItemCategories
    from recbole_leaprec.core.preference import sequential_preference
    from recbole_leaprec.quick_start import evaluate, run_leaprec
    from recbole_leaprec.recommend.rerank_frame import rerank_frame
    from recbole_leaprec.reranking.lists import rerank

__version__ = "1.0.0rc1"
__all__ = ["ItemCategories", "evaluate", "miscalibration", "rerank", "rerank_frame", "run_leaprec", "sequential_preference"]

__getattr__ = lazy_names(
    __name__,
    {
        "ItemCategories": "core.categories",
        "evaluate": "quick_start",
        "miscalibration": "core.calibration",
        "rerank": "reranking.lists",
        "rerank_frame": "recommend.rerank_frame",
        "run_leaprec": "quick_start",
        "sequential_preference": "core.preference",
    },
)
