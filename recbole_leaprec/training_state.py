"""The state of a training after an epoch, so that one that was killed goes on where it was."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from recbole_leaprec.checkpoint import check_fits, load_checkpoint, save_checkpoint

if TYPE_CHECKING:
    from recbole_leaprec.trainer import LeapRecTrainer

STATE = "state.pth"
"""It is in a run's folder as long as the run is trained."""

STATE_FORMAT = "recbole-leaprec training 1"


def save_state(path: Path, trainer: LeapRecTrainer, train_data: Any, epoch: int) -> None:
    """Write everything that the next epoch depends on, all of it or nothing."""
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
    """Put a trainer where it was after the epoch of a state; ValueError if it is not of this training."""
    content = load_checkpoint(path, trainer.device, (STATE_FORMAT,))
    check_fits(content, trainer.dataset, path)
    trainer.model.load_state_dict(content["state_dict"])
    trainer.optimizer.load_state_dict(content["optimizer"])
    trainer.start_epoch = content["epoch"] + 1
    trainer.cur_step = content["cur_step"]
    trainer.best_valid_score, trainer.best_valid_result = content["best_valid_score"], content["best_valid_result"] or None
    trainer.train_loss_dict = content["train_loss"]
    saved = content["random"]
    torch.set_rng_state(saved["torch"].cpu())
    if saved["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all([state.cpu() for state in saved["cuda"]])
    train_data.generator.set_state(saved["batches"].cpu())
    kind, keys, *rest = saved["numpy"]
    np.random.set_state((kind, keys.cpu().numpy().astype(np.uint32), *rest))
    random.setstate(_tuples(saved["python"]))


def _tuples(value: Any) -> Any:
    """Lists as the tuples that they were."""
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value
