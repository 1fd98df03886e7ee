"""Turns a dataset's state after loading, filtering and renumbering into plain values and flat arrays, and back."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import recbole
import torch
from recbole.data.interaction import Interaction
from recbole.utils import FeatureSource, FeatureType
from recbole.utils.argument_list import dataset_arguments

import recbole_leaprec
from recbole_leaprec.compat import CompatDataset, TokenIds
from recbole_leaprec.data.cache import Cache
from recbole_leaprec.data.sequences import Sequences

SETTINGS = tuple(
    sorted(
        {*dataset_arguments, "dataset", "encoding", "numerical_features", "discretization", "category_field", "title_field"}
        - {"MAX_ITEM_LIST_LENGTH", "ITEM_LIST_LENGTH_FIELD", "LIST_SUFFIX"}
    )
)
"""The keys that a prepared dataset depends on: all that RecBole's loading reads.

Names and lengths of list fields are left out, because they are set after it.
"""

_CODE = ("atomic_files.py", "compat.py", "data/dataset.py", "data/prepared.py", "data/cache.py", "data/sequences.py")
"""Files of this package that make the prepared dataset. If one of them changes, it is made anew."""


def cache_of(dataset: CompatDataset) -> Cache:
    """The cache for the prepared form of a dataset, whose files must exist."""
    config, folder = dataset.config, Path(dataset.config["data_path"])
    settings = {key: config[key] for key in SETTINGS}
    code = hashlib.sha256()
    for name in _CODE:
        code.update((Path(recbole_leaprec.__file__).parent / name).read_bytes())
    versions = {name: version(name) for name in ("numpy", "pandas", "pyarrow", "torch")}
    made_by = {"code": code.hexdigest(), "class": type(dataset).__qualname__, "recbole": recbole.__version__, **versions}
    files = [folder / f"{config['dataset']}.{kind}" for kind in ("inter", "item", "user")]
    return Cache(folder, files, {**settings, "made by": made_by})


def state_of(dataset: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """`(values, arrays)` of a dataset. Its features must be Interactions, and its `sequences` set."""
    values: dict[str, Any] = {
        "types": {field: kind.value for field, kind in dataset.field2type.items()},
        "sources": {field: source.value for field, source in dataset.field2source.items()},
        "lengths": {field: int(length) for field, length in dataset.field2seqlen.items()},
        "buckets": {field: int(count) for field, count in dataset.field2bucketnum.items()},
        "aliases": {name: fields.tolist() for name, fields in dataset.alias.items()},
        "rest": [str(field) for field in dataset._rest_fields],
        "features": {name: list(getattr(dataset, name).interaction) for name in dataset.feat_name_list},
        "tokens": list(dataset.field2id_token),
        "weights": list(dataset._preloaded_weight),
        "short_users": int(dataset.short_users),
        "short_interactions": int(dataset.short_interactions),
    }
    arrays = {
        f"{name}/{field}": getattr(dataset, name)[field].numpy()
        for name, fields in values["features"].items()
        for field in fields
    }
    arrays |= {f"tokens/{field}": dataset.field2id_token[field] for field in values["tokens"]}
    arrays |= {f"weight/{field}": dataset._preloaded_weight[field] for field in values["weights"]}
    arrays["offsets"] = dataset.sequences.offsets.numpy()
    return values, arrays


def put_state(dataset: Any, values: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Restore in a dataset the state that `state_of` returned."""
    dataset.field2type = {field: FeatureType(kind) for field, kind in values["types"].items()}
    dataset.field2source = {field: FeatureSource(source) for field, source in values["sources"].items()}
    dataset.field2seqlen, dataset.field2bucketnum = dict(values["lengths"]), dict(values["buckets"])
    dataset.alias = {name: np.array(fields) for name, fields in values["aliases"].items()}
    dataset._rest_fields = np.array(values["rest"])
    dataset.feat_name_list = list(values["features"])
    dataset.user_feat = dataset.item_feat = None
    for name, fields in values["features"].items():
        setattr(dataset, name, Interaction({field: torch.from_numpy(arrays[f"{name}/{field}"]) for field in fields}))
    dataset.field2id_token = {field: arrays[f"tokens/{field}"] for field in values["tokens"]}
    dataset.field2token_id = {field: TokenIds(tokens) for field, tokens in dataset.field2id_token.items()}
    dataset._preloaded_weight = {field: arrays[f"weight/{field}"] for field in values["weights"]}
    dataset.short_users, dataset.short_interactions = values["short_users"], values["short_interactions"]
    dataset.sequences = Sequences(dataset.inter_feat[dataset.iid_field], torch.from_numpy(arrays["offsets"]))
