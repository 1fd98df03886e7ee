"""How the learning rate changes over the epochs."""

from __future__ import annotations

import math
from collections.abc import Callable

SCHEDULES: dict[str, Callable[[float], float]] = {
    "constant": lambda done: 1.0,
    "cosine": lambda done: (1 + math.cos(math.pi * done)) / 2,
}
"""From the share of all epochs that are done to the factor of the next epoch's learning rate."""
