"""The tables of a report. Each becomes a CSV file beside the page."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from recbole_leaprec.analysis.curves import Comparison, Curve, compare, curve_table, own_levels, with_holm
from recbole_leaprec.analysis.density import density_grid, density_table
from recbole_leaprec.analysis.measurement import BASE
from recbole_leaprec.reranking.registry import get_reranker

TABLES = ("tradeoff", "comparison", "times", "density", "shift")

PAPER_COMPLEXITY = {
    **dict.fromkeys(("leaprec", "calirec", "calirec_plus", "pr_reverse"), "O(n k m)"),
    "mip": "O(n m^k)",
    "mcf": "O(n (k + c) m^2 log m)",
}
"""The paper's Table 2: n users, m items, k items per list, c categories."""


def all_tables(
    curves: Sequence[Curve], comparisons: Sequence[Comparison], match: Sequence[float] = ()
) -> dict[str, pd.DataFrame]:
    """The `TABLES` by name.

    Args:
        match: S_KL levels to compare at; if empty, some levels of each reference (`own_levels`).
    """
    compared = [compare(one, match or own_levels(one.reference)) for one in comparisons]
    spread, grid = [curve for curve in curves if curve.reranker != BASE], density_grid(curves[0].runs[0])
    shift = pd.DataFrame(curves[0].runs[0].shift.T, columns=["interval", "kl", "users"])
    return {
        "tradeoff": curve_table(curves),
        "comparison": with_holm(compared),
        "times": time_table(curves),
        "density": pd.concat([_density(curve, grid) for curve in spread], ignore_index=True) if spread else pd.DataFrame(),
        "shift": shift.astype({"interval": int, "users": int}),
    }


def time_table(curves: Sequence[Curve]) -> pd.DataFrame:
    """Seconds of training and of reranking all test users, with the complexity (the paper's Tables 2 and 3).

    `reranking` is for one lambda. If several `lambdas` were reranked together, it is an equal share of their time. This
    is less than one lambda alone takes, for methods that do part of the work once for all lambdas.
    """
    return pd.DataFrame(
        [
            {
                "method": curve.name,
                "reranker": curve.reranker,
                "training": curve.training,
                "reranking": float(np.mean(curve.seconds)),
                "lambdas": int((curve.runs[0].rerankers == curve.reranker).sum()),
                "complexity": PAPER_COMPLEXITY.get(curve.reranker, ""),
                "here": get_reranker(curve.reranker).complexity,
            }
            for curve in curves
        ]
    )


def _density(curve: Curve, grid: np.ndarray) -> pd.DataFrame:
    """The density table of a curve's first run. A density is over users; means over seeds would change it."""
    table = density_table(curve.runs[0], curve.reranker, curve.lambdas, grid)
    table.insert(0, "method", curve.name)
    return table
