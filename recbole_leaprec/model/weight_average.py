"""A running mean of a model's weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


class WeightAverage:
    """The running mean of a model's parameters over the steps of its optimizer.

    Each step keeps `decay` of the old mean, and less in the first steps, `(1 + n) / (10 + n)` in step n: the weights of the
    beginning are soon forgotten. The mean is smoother than the weights themselves, and mostly ranks better.
    """

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, decay: float):
        self._parameters, self._decay = list(model.parameters()), decay
        self._mean: list[Tensor] = []  # empty before the first step
        self._steps = 0
        optimizer.register_step_post_hook(self._update)

    @torch.no_grad()
    def _update(self, *_: Any) -> None:
        self._steps += 1
        if not self._mean:
            self._mean = [one.detach().clone() for one in self._parameters]
        kept = min(self._decay, (1 + self._steps) / (10 + self._steps))
        torch._foreach_lerp_(self._mean, [one.detach() for one in self._parameters], 1 - kept)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Inside of this, the model has the mean for its weights."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        for parameter, mean in zip(self._parameters, self._mean, strict=bool(self._mean)):
            own = parameter.detach().clone()
            parameter.copy_(mean)
            mean.copy_(own)

    def state(self) -> dict[str, Any]:
        """What the next steps depend on, in tensors and plain values."""
        return {"steps": self._steps, "mean": self._mean}

    def restore(self, state: Any) -> None:
        """Go on from a state; ValueError if it is none of this model."""
        if not isinstance(state, dict) or not self._fits(state.get("steps"), state.get("mean")):
            raise ValueError("its mean of the weights is not what it should be")
        self._steps, self._mean = state["steps"], [one.clone() for one in state["mean"]]

    def _fits(self, steps: Any, mean: Any) -> bool:
        if type(steps) is not int or not isinstance(mean, list) or len(mean) != (len(self._parameters) if steps > 0 else 0):
            return False
        return all(
            isinstance(one, Tensor) and one.shape == own.shape and one.dtype == own.dtype and bool(one.isfinite().all())
            for one, own in zip(mean, self._parameters, strict=bool(mean))
        )
