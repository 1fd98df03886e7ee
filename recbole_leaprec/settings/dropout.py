"""A dropout that the data asks for: `hidden_dropout_prob: auto`."""

from __future__ import annotations

import math

AUTO = "auto"
LEAST, MOST = 0.1, 0.5


def dropout_for(interactions_per_item: float) -> float:
    """More where items are rare: a model soon knows the few rows of a sparse dataset by heart.

    `0.8 - 0.1 ln(interactions per item)`, in steps of 0.05 from 0.1 to 0.5: 0.3 for ML-1M with its 148, 0.5 for
    Amazon Sports with its 16. These two were chosen by validation; between and beyond them it is a straight line.
    """
    wanted = 0.8 - 0.1 * math.log(interactions_per_item)
    return round(20 * min(max(wanted, LEAST), MOST)) / 20
