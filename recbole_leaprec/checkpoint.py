"""Checkpoints: tensors and plain values only, so that loading one runs no code from it."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch

from recbole_leaprec.categories import ItemCategories
from recbole_leaprec.data import SequenceDataset
from recbole_leaprec.run_folder import written_whole

FORMAT = "recbole-leaprec checkpoint 1"


def fingerprint(dataset: SequenceDataset) -> dict[str, Any]:
    """What a model is tied to: the items by their ids, their categories, and the sequences."""
    tokens = "\n".join(map(str, dataset.field2id_token[dataset.iid_field])).encode()
    categories, sequences = dataset.categories, dataset.sequences
    return {
        "users": dataset.user_num - 1,
        "items": dataset.item_num - 1,
        "categories": dataset.categories.n_categories,
        "interactions": len(dataset.sequences.items),
        "item ids": _digest(tokens),
        "sequences": _digest(sequences.items.numpy().tobytes(), [sequences.offsets.numpy().tobytes()]),
        "items' categories": _digest("\n".join(categories.names).encode(), _shares(categories)),
    }


def _shares(categories: ItemCategories) -> Iterator[bytes]:
    """p(c|i) of all items, some rows at a time."""
    for items in torch.arange(categories.n_items).split(2**12):
        yield categories.shares(items).numpy().tobytes()


def _digest(first: bytes, rest: Iterable[bytes] = ()) -> str:
    digest = hashlib.sha256(first)
    for part in rest:
        digest.update(part)
    return digest.hexdigest()[:16]


def save_checkpoint(path: Path, content: dict[str, Any]) -> None:
    """Write a checkpoint, all of it or nothing."""
    with written_whole(path) as scratch:
        torch.save({"format": FORMAT, **content}, scratch)


def load_checkpoint(path: str | Path, device: torch.device | str = "cpu") -> dict[str, Any]:
    """Read a checkpoint of ours; ValueError if there is none at `path`, or if it is something else."""
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"checkpoint {path} is a folder; name the model.pth in it")
    if not path.is_file():
        raise ValueError(f"checkpoint {path} does not exist; it is the model.pth in a run's folder")
    try:
        content = torch.load(path, map_location=device, weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
        raise ValueError(
            f"{path} is not a checkpoint of this plugin (it is damaged, or holds more than tensors and plain values, as "
            f"RecBole's own checkpoints do): {type(error).__name__} {str(error).partition(chr(10))[0]}"
        ) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{path} is not a checkpoint of this plugin: it lacks the mark {FORMAT!r}")
    return content


def check_fits(content: dict[str, Any], dataset: SequenceDataset, path: str | Path) -> None:
    """ValueError if the dataset is not the one that the checkpoint was trained on."""
    now, then = fingerprint(dataset), content["dataset"]
    changed = [f"{key} {then.get(key)} then, {now[key]} now" for key in now if now[key] != then.get(key)]
    if changed:
        raise ValueError(
            f"{path} was trained on another state of dataset {dataset.dataset_name!r}: {'; '.join(changed)}. "
            f"Check data_path and the filters, or train again"
        )


def restore(model: torch.nn.Module, content: dict[str, Any], path: str | Path) -> None:
    """Put a checkpoint's parameters into a model; ValueError if they do not fit it."""
    try:
        model.load_state_dict(content["state_dict"])
    except RuntimeError as error:
        raise ValueError(f"{path} does not fit this {type(model).__name__}: {error}") from error
    model.load_other_parameter(content.get("other_parameter"))
