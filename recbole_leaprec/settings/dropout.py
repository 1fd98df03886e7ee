"""A dropout that depends on the data: `hidden_dropout_prob: auto`."""

from __future__ import annotations

import math

AUTO = "auto"
LEAST, MOST = 0.1, 0.5


def dropout_for(interactions_per_item: float) -> float:
    """The dropout for a dataset. It is larger if items are rare, because a model soon overfits to a sparse dataset.

    `0.8 - 0.1 ln(interactions per item)`, in steps of 0.05 from 0.1 to 0.5: 0.3 for ML-1M with its 148, 0.5 for
    Amazon Sports with its 16. These two were chosen by validation; the formula is a line (in the logarithm) through them.
    """
    wanted = 0.8 - 0.1 * math.log(interactions_per_item)
    return round(20 * min(max(wanted, LEAST), MOST)) / 20
