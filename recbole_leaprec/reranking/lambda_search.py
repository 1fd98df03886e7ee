"""Finds the smallest lambda whose S_KL meets a target. Its lists are the most accurate ones that are calibrated enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence


class TargetNotMet(ValueError):
    """No lambda meets a target. `lam` is the tried lambda with the smallest S_KL, `skl` is that S_KL."""

    def __init__(self, target: float, lam: float, skl: float):
        super().__init__(f"no lambda meets the S_KL of {target:g}; the least is {skl:.4f}, at lambda {lam:g}")
        self.lam, self.skl = lam, skl


STEPS = 10
ROUNDS = 3
"""Lambda is found with a precision of 1 / STEPS ** ROUNDS."""


def smallest_lambda(skl: Callable[[Sequence[float]], Sequence[float]], target: float) -> tuple[float, float]:
    """`(lambda, S_KL)`: the smallest lambda of 0, 0.001, 0.002, .., 1 whose S_KL is at most `target`, and its S_KL.

    Each round makes the steps ten times smaller, and looks between the first lambda that meets the target and the one
    before it. This finds the smallest lambda if S_KL falls as lambda grows.

    Args:
        skl: a function that returns the S_KL at each of several lambdas.

    Raises:
        TargetNotMet: no lambda meets the target.

    Example:
        >>> smallest_lambda(lambda lambdas: [1 - lam for lam in lambdas], target=0.25)
        (0.75, 0.25)
    """
    whole = STEPS**ROUNDS  # lambda is counted in whole parts of 1 / whole
    step, grid = whole // STEPS, range(0, whole + 1, whole // STEPS)
    found: tuple[int, float] | None = None
    while True:
        values = skl([part / whole for part in grid])
        found = next(((part, value) for part, value in zip(grid, values, strict=True) if value <= target), found)
        if found is None:
            least, part = min(zip(values, grid, strict=True))
            raise TargetNotMet(target, part / whole, least)
        if step == 1 or found[0] == 0:
            return found[0] / whole, found[1]
        start, step = found[0] - step, step // STEPS
        grid = range(start + step, start + STEPS * step, step)
