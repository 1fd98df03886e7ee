"""Checkpoints, model.pth: only tensors and plain values, so loading one runs no code from it.

`LeapRecTrainer` writes these entries: `format`, the mark of this format; `config`, to make the config again; `dataset`,
the fingerprint of the data; `serving`, the data that lists need (`data.frozen`); `state_dict` and `other_parameter` of the
model; `epoch`, `cur_step`, `best_valid_score` and `optimizer` of the training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from recbole_leaprec.common.files import check_checkpoint, written_whole
from recbole_leaprec.common.reading import check_archive, in_words, reading
from recbole_leaprec.data import SequenceDataset
from recbole_leaprec.settings.keys import check_keys, check_values

FORMAT = "recbole-leaprec checkpoint 2"
EARLIER = ("recbole-leaprec checkpoint 1",)
"""Older formats that can still be read for evaluation. They lack the data that lists need."""


def save_checkpoint(path: Path, content: dict[str, Any], mark: str = FORMAT) -> None:
    """Write a checkpoint with the mark of its format, as a whole or not at all."""
    with written_whole(path) as scratch:
        try:
            torch.save({"format": mark, **content}, scratch)
        except RuntimeError as error:  # torch raises this for a full disk
            raise OSError(f"{path} could not be written: {in_words(error)}; is the disk full?") from error


def save_lambda(path: Path, content: dict[str, Any], lam: float) -> None:
    """Write a checkpoint with the lambda that was found for it, so that its lists need no data to find it."""
    save_checkpoint(path, {**content, "config": {**content["config"], "rerank_lambda": lam, "target_skl": None}})


def load_checkpoint(
    path: str | Path, device: torch.device | str = "cpu", marks: Sequence[str] = (FORMAT, *EARLIER)
) -> dict[str, Any]:
    """Read a checkpoint of this plugin. ValueError if there is none at `path`, if it has none of these marks, or is damaged.

    torch writes an archive with a checksum for every tensor, but does not check them when it reads. This function does.
    """
    check_checkpoint(path)
    with reading(
        path, f"{_OURS} (it is damaged, or holds more than tensors and plain values, as RecBole's own checkpoints do)"
    ):
        check_archive(path)
        content = torch.load(path, map_location=device, weights_only=True)
    if not isinstance(content, dict) or content.get("format") not in marks:
        raise ValueError(f"{path} is not {_OURS}: it lacks the mark {marks[0]!r}")
    _check_parts(content, path)
    return content


_OURS = "a checkpoint of this plugin"

_TOO_LARGE = 1e15
"""Parameters of this size, or nan, lead to scores that are not finite."""


def _check_parts(content: Mapping[str, Any], path: str | Path) -> None:
    """Raise ValueError if a required part of a checkpoint is missing or of the wrong kind."""
    parts = ["dataset", "state_dict"]
    if content["format"] in (FORMAT, *EARLIER):
        parts.append("config")
    if content["format"] == FORMAT:
        parts.append("serving")
    for part in parts:
        if not isinstance(content.get(part), dict) or not all(isinstance(key, str) for key in content[part]):
            raise ValueError(f"{path} is not a whole checkpoint: its {part!r} is missing, or not what it should be")
    if not all(isinstance(value, int | str) for value in content["dataset"].values()):
        raise ValueError(f"{path} is not a whole checkpoint: its 'dataset' holds more than numbers and texts")
    if not all(isinstance(value, torch.Tensor) for value in content["state_dict"].values()):
        raise ValueError(f"{path} is not a whole checkpoint: its 'state_dict' holds more than tensors")
    if "config" in parts:
        try:
            check_keys(content["config"])
            check_values(content["config"])
        except ValueError as error:
            raise ValueError(f"{path}, its config: {error}") from error


def check_fits(content: dict[str, Any], dataset: SequenceDataset, path: str | Path) -> None:
    """Raise ValueError if the checkpoint was trained on another dataset."""
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
        raise ValueError(f"{path} does not fit this {type(model).__name__}: {' '.join(str(error).split())}") from error
    for name, parameter in model.named_parameters():
        if not bool((parameter.detach().abs() < _TOO_LARGE).all()):
            raise ValueError(f"{path} is damaged: its {name!r} holds numbers that no training ends with")
    with reading(path, _OURS):
        model.load_other_parameter(content.get("other_parameter"))
