"""How S_KL spreads over users (the paper's Figure 7)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.stats import gaussian_kde

from recbole_leaprec.analysis.measurement import Measurement

GRID = 241
"""How many S_KL values a density is computed at."""


def density_table(measured: Measurement, reranker: str, lambdas: Sequence[float], grid: np.ndarray) -> pd.DataFrame:
    """One row per lambda and grid value: `lambda`, `skl`, `density`, and the lambda's means `ndcg` and `mean_skl`."""
    places = [measured.place[reranker, lam] for lam in lambdas]
    columns = zip(lambdas, measured.metric("skl")[places], measured.metric("ndcg")[places], strict=True)
    return pd.concat(
        [
            pd.DataFrame(
                {"lambda": lam, "skl": grid, "density": density(skl, grid), "ndcg": ndcg.mean(), "mean_skl": skl.mean()}
            )
            for lam, skl, ndcg in columns
        ],
        ignore_index=True,
    )


def density_grid(measured: Measurement) -> np.ndarray:
    """S_KL values from 0 to the 99 % quantile of the users' S_KL for the model's own ranking."""
    return np.linspace(0, max(float(np.quantile(measured.metric("skl")[0], 0.99)), 1e-3), GRID)


def density(values: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """The kernel density estimate of the users' S_KL: Gaussian kernels, Scott's bandwidth; nan if all S_KL are equal.

    No S_KL is below 0, so the density that the kernels put there is mirrored to above 0.
    """
    if len(values) < 2 or np.ptp(values) == 0:
        return np.full(len(grid), np.nan)
    kernels = gaussian_kde(values)
    return kernels(grid) + kernels(-grid)
