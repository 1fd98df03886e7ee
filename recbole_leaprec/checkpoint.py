"""Checkpoints, model.pth: tensors and plain values only, so that loading one runs no code from it.

What one holds, as `LeapRecTrainer` writes it: `format`, the mark of this form; `config`, to make the config again; `dataset`, the
fingerprint of the data; `serving`, what lists are made of (`data.frozen`); `state_dict` and `other_parameter` of the model; `epoch`,
`cur_step`, `best_valid_score` and `optimizer` of the training.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from recbole_leaprec.data import SequenceDataset
from recbole_leaprec.files import check_checkpoint, written_whole

FORMAT = "recbole-leaprec checkpoint 2"
EARLIER = ("recbole-leaprec checkpoint 1",)
"""Forms that are still read, for evaluation: they lack what lists are made of."""


def save_checkpoint(path: Path, content: dict[str, Any], mark: str = FORMAT) -> None:
    """Write a checkpoint with the mark of its form, all of it or nothing."""
    with written_whole(path) as scratch:
        torch.save({"format": mark, **content}, scratch)


def load_checkpoint(
    path: str | Path, device: torch.device | str = "cpu", marks: Sequence[str] = (FORMAT, *EARLIER)
) -> dict[str, Any]:
    """Read a checkpoint of ours; ValueError if there is none at `path`, or if it has none of these marks."""
    check_checkpoint(path)
    try:
        content = torch.load(path, map_location=device, weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
        raise ValueError(
            f"{path} is not a checkpoint of this plugin (it is damaged, or holds more than tensors and plain values, as "
            f"RecBole's own checkpoints do): {type(error).__name__} {str(error).partition(chr(10))[0]}"
        ) from error
    if not isinstance(content, dict) or content.get("format") not in marks:
        raise ValueError(f"{path} is not a checkpoint of this plugin: it lacks the mark {marks[0]!r}")
    return content


def check_fits(content: dict[str, Any], dataset: SequenceDataset, path: str | Path) -> None:
    """ValueError if the dataset is not the one that the checkpoint was trained on."""
    now, then = dataset.fingerprint, content["dataset"]
    changed = [f"{key} {then.get(key)} then, {now[key]} now" for key in now if now[key] != then.get(key)]
    if changed:
        raise ValueError(
            f"{path} was trained on another state of dataset {dataset.dataset_name!r}: {'; '.join(changed)}. "
            f"Check data_path and the filters, or train again"
        )


def restore(model: Any, content: dict[str, Any], path: str | Path) -> None:
    """Put a checkpoint's parameters into a model; ValueError if they do not fit it."""
    try:
        model.load_state_dict(content["state_dict"])
    except RuntimeError as error:
        raise ValueError(f"{path} does not fit this {type(model).__name__}: {error}") from error
    model.load_other_parameter(content.get("other_parameter"))
