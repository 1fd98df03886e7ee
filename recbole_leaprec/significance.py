"""How sure a figure is: bootstrap intervals over users, and paired tests between two methods."""

from __future__ import annotations

import numpy as np
from scipy import stats

_CHUNK = 2**22
"""Resampled users held at once."""


def bootstrap_interval(values: np.ndarray, samples: int = 1000, level: float = 0.95, seed: int = 0) -> np.ndarray:
    """`[2, M]`: between which figures the mean over users lies, by the percentiles of means over resampled users.

    Args:
        values: `[U, M]`, M figures of each user; all of them are resampled alike.
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


def paired_test(one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """`(mean difference, p-value)` of a paired t-test over users: whether `one [U]` and `other [U]` have the same mean.

    Equal in every user is a p-value of 1.
    """
    difference = np.asarray(one, dtype=float) - np.asarray(other, dtype=float)
    mean, error = float(difference.mean()), float(difference.std(ddof=1)) / len(difference) ** 0.5
    if error == 0:
        return mean, 1.0 if mean == 0 else 0.0
    return mean, float(2 * stats.t.sf(abs(mean) / error, len(difference) - 1))
