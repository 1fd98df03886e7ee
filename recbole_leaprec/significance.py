"""How sure a figure is: bootstrap intervals over users."""

from __future__ import annotations

import numpy as np

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
