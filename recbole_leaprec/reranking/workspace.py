"""Memory that is kept from call to call."""

from __future__ import annotations

import math
import threading

import torch
from torch import Tensor


class Workspace(threading.local):
    """Tensors that are written over again and again, each under a name, for each thread.

    New memory is slow to touch, slower than most sums over it, and callers come batch by batch with the same shapes.
    """

    def __init__(self):
        self._buffers: dict[str, Tensor] = {}

    def take(self, name: str, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
        """A tensor of this shape with anything in it, the same memory as last time where that is large enough."""
        size = math.prod(shape)
        buffer = self._buffers.get(name)
        if buffer is None or len(buffer) < size or buffer.dtype != dtype or buffer.device != device:
            buffer = self._buffers[name] = torch.empty(size, dtype=dtype, device=device)
        return buffer[:size].view(shape)
