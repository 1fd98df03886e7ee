"""A device that is none: CPU data with a tag. Mixing tagged and untagged tensors raises, as on a GPU, and so does `.numpy()`."""

from __future__ import annotations

import weakref
from collections import Counter
from typing import Any

import torch
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

DEVICE = torch.device("meta")  # any but the CPU that torch can work out gradients for without a library

TO_HOST = "copy to the host"
WAITS = (TO_HOST, "_local_scalar_dense", "nonzero", "_unique2", "unique_dim", "masked_select", "equal.default", "is_nonzero")
"""Operations whose result the host waits for."""
_NO_LAUNCH = (
    "view", "expand", "select.int", "slice", "t.default", "transpose", "permute", "detach", "alias", "unsqueeze", "squeeze", "split",
    "as_strided", "unbind", "empty", "lift_fresh", "scalar_tensor", "_local_scalar_dense",
)  # fmt: skip


class _Memory:
    """Bytes of the device that are taken; tensors may share them."""

    def __init__(self):
        self.taken = self.peak = 0
        self._holders: dict[int, list[int]] = {}

    def hold(self, address: int, size: int) -> None:
        holders = self._holders.setdefault(address, [0, size])
        if not holders[0]:
            self.taken += size
            self.peak = max(self.peak, self.taken)
        holders[0] += 1

    def let_go(self, address: int) -> None:
        self._holders[address][0] -= 1
        if not self._holders[address][0]:
            self.taken -= self._holders.pop(address)[1]


_memory = _Memory()


class Pretended(torch.Tensor):
    """A tensor of the device."""

    @staticmethod
    def __new__(cls, data: torch.Tensor):
        return torch.Tensor._make_wrapper_subclass(
            cls, data.shape, strides=data.stride(), dtype=data.dtype, device=DEVICE, requires_grad=data.requires_grad
        )

    def __init__(self, data: torch.Tensor):
        self.data_on_cpu = data
        storage = data.untyped_storage()
        _memory.hold(storage.data_ptr(), storage.nbytes())
        weakref.finalize(self, _memory.let_go, storage.data_ptr())

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise RuntimeError(f"{function}: a tensor of the pretended device outside of PretendDevice")

    def __repr__(self):
        return f"Pretended({self.data_on_cpu!r})"


class PretendDevice(TorchDispatchMode):
    """While it is entered, tensors can be made on the device and worked with.

    Attributes:
        launches, waits: how many operations a device would have been given, and how often the host would have waited for one.
        peak: bytes taken at the worst moment, beside those taken when it was started.
    """

    def __init__(self):
        super().__init__()
        self.start()

    def start(self) -> None:
        """Count from here on."""
        self.operations: Counter[str] = Counter()
        _memory.peak = self._before = _memory.taken

    @property
    def peak(self) -> int:
        return _memory.peak - self._before

    @property
    def launches(self) -> int:
        return sum(n for name, n in self.operations.items() if not any(part in name for part in _NO_LAUNCH))

    @property
    def waits(self) -> int:
        return sum(n for name, n in self.operations.items() if any(part in name for part in WAITS))

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        name, moves = str(function), "_to_copy" in str(function) or "copy_" in str(function)
        given = [value for value in tree_flatten((args, kwargs))[0] if isinstance(value, torch.Tensor)]
        tagged = [value for value in given if isinstance(value, Pretended)]
        untagged = [value for value in given if not isinstance(value, Pretended) and value.dim() > 0]
        indexes = name.startswith(("aten.index.", "aten.index_put")) and isinstance(args[0], Pretended)  # moves its indices
        if tagged and untagged and not moves and not indexes:
            raise RuntimeError(f"{name}: tensors of two devices")
        device = kwargs.get("device")
        to_device = device is not None and torch.device(device).type == DEVICE.type
        if to_device:
            kwargs["device"] = torch.device("cpu")
        if tagged or to_device:
            self.operations[name if to_device or device is None else TO_HOST] += 1
        result = function(*tree_map(_unwrap, args), **tree_map(_unwrap, kwargs))
        stays = bool(tagged) and (device is None or to_device)
        if name.startswith("aten.copy_") and isinstance(args[0], Pretended):
            return args[0]
        if stays and function._schema.name.endswith("_") and isinstance(args[0], Pretended):
            if torch.Tag.inplace_view in function.tags:  # the tag has a shape, too
                with no_dispatch():
                    function(*args, **kwargs)
            return args[0]  # in place
        if "out" in kwargs and isinstance(kwargs["out"], Pretended):
            return kwargs["out"]
        return tree_map(_wrap, result) if stays or to_device else result


def _unwrap(value: Any) -> Any:
    return value.data_on_cpu if isinstance(value, Pretended) else value


def _wrap(value: Any) -> Any:
    return Pretended(value) if isinstance(value, torch.Tensor) and not isinstance(value, Pretended) else value


def put(tensor: torch.Tensor) -> torch.Tensor:
    """The same data on the device."""
    return Pretended(tensor.detach().clone())


def take(tensor: torch.Tensor) -> torch.Tensor:
    """The data of a tensor of the device, back on the CPU."""
    assert isinstance(tensor, Pretended), "this is not on the device"
    return tensor.data_on_cpu
