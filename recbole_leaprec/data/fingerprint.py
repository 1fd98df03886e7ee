"""The fingerprint of a dataset (items, categories, sequences), which ties a trained model to it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from recbole_leaprec.core.categories import ItemCategories
from recbole_leaprec.data.sequences import Sequences


def fingerprint(item_tokens: Iterable[str], categories: ItemCategories, sequences: Sequences) -> dict[str, Any]:
    """Counts for people to read, and digests that change with everything that matters to a model."""
    return {
        "users": len(sequences.offsets) - 2,  # user 0 is padding
        "items": categories.n_items - 1,
        "categories": categories.n_categories,
        "interactions": len(sequences.items),
        "item ids": _digest("\n".join(map(str, item_tokens)).encode()),
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
