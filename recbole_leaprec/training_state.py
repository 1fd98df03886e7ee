"""The state of a training after an epoch, so that a killed training can go on."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from recbole_leaprec.checkpoint import check_fits, load_checkpoint, restore, save_checkpoint
from recbole_leaprec.common.reading import reading

if TYPE_CHECKING:
    from recbole_leaprec.trainer import LeapRecTrainer

STATE = "state.pth"
"""The file of the state. It is in a run's folder only during the training."""

STATE_FORMAT = "recbole-leaprec training 1"


def save_state(path: Path, trainer: LeapRecTrainer, train_data: Any, epoch: int) -> None:
    """Write everything that the next epoch depends on, as a whole or not at all."""
    numpy_state: Any = np.random.get_state()
    content = {
        "dataset": trainer.dataset.fingerprint,
        "epoch": epoch,
        "cur_step": trainer.cur_step,
        "best_valid_score": float(trainer.best_valid_score),
        "best_valid_result": dict(trainer.best_valid_result or {}),  # RecBole has None before the first validation
        "train_loss": dict(trainer.train_loss_dict),
        "state_dict": trainer.model.state_dict(),
        "optimizer": trainer.optimizer.state_dict(),
        "average": trainer.average.state() if trainer.average else None,
        "random": {
            "torch": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state_all(),
            "batches": train_data.generator.get_state(),
            "numpy": (numpy_state[0], torch.from_numpy(numpy_state[1].astype(np.int64)), *numpy_state[2:]),
            "python": random.getstate(),
        },
    }
    save_checkpoint(path, content, STATE_FORMAT)


def restore_state(path: Path, trainer: LeapRecTrainer, train_data: Any) -> None:
    """Restore a trainer to a saved state; ValueError if the state does not belong to this training."""
    content = load_checkpoint(path, trainer.device, (STATE_FORMAT,))
    check_fits(content, trainer.dataset, path)
    restore(trainer.model, content, path)
    with reading(path, "the state of a training"):
        _check_state(content)
        _restore_optimizer(content["optimizer"], trainer.optimizer)
        if trainer.average:
            trainer.average.restore(content.get("average"))
        _restore_progress(content, trainer)
        _restore_random(content["random"], train_data)


def _check_state(content: dict[str, Any]) -> None:
    """Raise ValueError for values that `save_state` cannot have written."""
    kinds = {"epoch": int, "cur_step": int, "best_valid_score": float, "best_valid_result": dict, "train_loss": dict}
    for name, kind in kinds.items():
        if type(content.get(name)) is not kind:
            raise ValueError(f"its {name!r} is missing, or not what it should be")
    values = {**content["best_valid_result"], **content["train_loss"]}
    if not all(isinstance(value, int | float) for value in values.values()) or content["cur_step"] < 0:
        raise ValueError("its metrics and losses are not what they should be")
    losses = content["train_loss"]
    if len(losses) != content["epoch"] + 1 or sorted(losses) != list(range(len(losses))):
        raise ValueError(f"it is of epoch {content['epoch']}, and has the losses of epochs {sorted(losses)}")


def _restore_optimizer(saved: dict[str, Any], optimizer: torch.optim.Optimizer) -> None:
    """Restore the state of an optimizer; ValueError for values that do not fit it, which torch does not check."""
    before = _settings_of(optimizer)
    optimizer.load_state_dict(saved)
    rates = [group["lr"] for group in optimizer.param_groups]
    if _settings_of(optimizer) != before or not all(type(rate) is float for rate in rates):
        raise ValueError("the settings of its optimizer are not what they should be")
    for parameter, state in optimizer.state.items():
        for name, value in state.items():
            if not isinstance(value, torch.Tensor) or value.shape not in (parameter.shape, torch.Size([])):
                raise ValueError(f"{name!r} of its optimizer is no tensor that fits a parameter")
            if not torch.isfinite(value).all() or (name in _NOT_NEGATIVE and bool((value < 0).any())):
                raise ValueError(f"{name!r} of its optimizer holds numbers that no training ends with")


_NOT_NEGATIVE = ("step", "exp_avg_sq", "square_avg", "sum")
"""Counts and means of squares in the state of torch's optimizers. They are never negative."""


def _settings_of(optimizer: torch.optim.Optimizer) -> list[dict[str, Any]]:
    """The settings that come from the config. The learning rate is left out because it changes with the epochs."""
    return [
        {name: value for name, value in group.items() if name not in ("params", "lr")} for group in optimizer.param_groups
    ]


def _restore_progress(content: dict[str, Any], trainer: LeapRecTrainer) -> None:
    trainer.start_epoch = content["epoch"] + 1
    trainer.cur_step = content["cur_step"]
    trainer.best_valid_score, trainer.best_valid_result = content["best_valid_score"], content["best_valid_result"] or None
    trainer.train_loss_dict = content["train_loss"]


def _restore_random(saved: dict[str, Any], train_data: Any) -> None:
    torch.set_rng_state(saved["torch"].cpu())
    for number, state in enumerate(saved["cuda"][: torch.cuda.device_count()]):  # there may be other GPUs than before
        torch.cuda.set_rng_state(state.cpu(), number)
    train_data.generator.set_state(saved["batches"].cpu())
    kind, keys, *rest = saved["numpy"]
    np.random.set_state((kind, keys.cpu().numpy().astype(np.uint32), *rest))
    random.setstate(_tuples(saved["python"]))


def _tuples(value: Any) -> Any:
    """The value with all lists turned back into tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value
