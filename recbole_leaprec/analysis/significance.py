"""How certain a mean over users is: bootstrap intervals and paired tests over users."""

from __future__ import annotations

import numpy as np
from scipy import stats

from recbole_leaprec.common.defaults import RESAMPLES

_CHUNK = 2**22
"""How many resampled users are held at a time."""


def bootstrap_interval(values: np.ndarray, samples: int = RESAMPLES, level: float = 0.95, seed: int = 0) -> np.ndarray:
    """Lower and upper ends of the intervals of M means over users, `[2, M]`: percentiles of means over resampled users.

    Args:
        values: `[U, M]`, M metrics of each user; a resampled user brings all of them.
        samples: how often U users are drawn, with replacement.
    """
    users, random = len(values), np.random.default_rng(seed)
    rows = max(1, _CHUNK // users)
    means = []
    for start in range(0, samples, rows):
        drawn = random.integers(users, size=(min(rows, samples - start), users))
        counts = np.stack([np.bincount(row, minlength=users) for row in drawn])
        means.append(counts @ values / users)
    tail = (1 - level) / 2
    return np.quantile(np.concatenate(means), [tail, 1 - tail], axis=0)


def paired_test(differences: np.ndarray) -> tuple[float, float]:
    """`(mean, p)` of a two-sided t-test that the mean of the users' differences is 0.

    p is 1 if all differences are 0, and nan for a single user with a difference.

    Example:
        >>> mean, p = paired_test(np.array([1.0, 2.0, 3.0]))
        >>> mean, round(p, 4)
        (2.0, 0.0742)
    """
    if not differences.any():
        return 0.0, 1.0
    if len(differences) == 1:
        return float(differences[0]), float("nan")
    if np.ptp(differences) <= 1e-12 * np.abs(differences).max():  # all users have the same difference
        return float(differences[0]), 0.0
    return float(differences.mean()), float(stats.ttest_1samp(differences, 0).pvalue)


def holm(p: np.ndarray) -> np.ndarray:
    """p-values adjusted for their number (Holm, 1979).

    If every test with an adjusted p below a level is rejected, the chance of any false rejection is at most that level.

    Example:
        >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
        [0.03, 0.06, 0.06]
    """
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1)
    return adjusted
