"""Makes torch's optimizers without torch's compiler, which they import only to switch it off.

The compiler takes a second and 70 MB in every process that makes an optimizer. Every trainer makes one, even to evaluate.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

import torch
from torch.optim import SGD, Adagrad, Adam, AdamW, Optimizer, RMSprop

OPTIMIZERS: dict[str, type[Optimizer]] = {"adam": Adam, "adamw": AdamW, "sgd": SGD, "adagrad": Adagrad, "rmsprop": RMSprop}
"""The optimizers by RecBole's names for `learner`."""


def lighter(optimizer: type[Optimizer]) -> Callable[..., Optimizer]:
    """A class of the same optimizer, with its methods freed from torch's decorators.

    Example:
        >>> weight = torch.nn.Parameter(torch.ones(1))
        >>> sgd = lighter(SGD)([weight], lr=0.5)
        >>> weight.grad = torch.ones(1)
        >>> sgd.step()
        >>> weight.item()
        0.5
    """
    names = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")
    methods = {name: inspect.unwrap(getattr(optimizer, name)) for name in names}
    # The removed decorators of `step` also switch off gradients, so `no_grad` does that here.
    return type(optimizer.__name__, (optimizer,), {**methods, "step": torch.no_grad()(inspect.unwrap(optimizer.step))})
