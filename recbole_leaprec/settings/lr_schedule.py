"""How the learning rate goes over the epochs."""

from __future__ import annotations

import math
from collections.abc import Callable

SCHEDULES: dict[str, Callable[[float], float]] = {
    "constant": lambda done: 1.0,
    "cosine": lambda done: (1 + math.cos(math.pi * done)) / 2,
}
"""Share of the learning rate that an epoch gets, from the share of all epochs that is done before it."""
