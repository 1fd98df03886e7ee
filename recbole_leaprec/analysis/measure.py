"""Score the test users of a trained model once, and rerank the scores in many ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from recbole_leaprec.analysis.category_shift import shift_of
from recbole_leaprec.analysis.measurement import BASE, HISTORY, Measurement
from recbole_leaprec.common.did_you_mean import did_you_mean
from recbole_leaprec.data import SequenceDataset
from recbole_leaprec.evaluator import Evaluation
from recbole_leaprec.evaluator.resources import LISTS, RANKS, USER_METRICS, USER_PREFERENCES
from recbole_leaprec.reranking.reranking import Reranking
from recbole_leaprec.run import Run, trained_run
from recbole_leaprec.settings.keys import MEASUREMENT_KEYS, check_changes


def measure(
    checkpoint: str | Path,
    rerankers: Mapping[str, Sequence[float]],
    config_dict: dict[str, Any],
    log_name: str = "measure.log",
    user: str | None = None,
) -> Measurement:
    """Score the test users once, and rerank the scores with every reranker and lambda.

    Args:
        rerankers: the lambdas of each reranker; the model's own ranking is always added.
        config_dict: keys to change, those in `MEASUREMENT_KEYS`; the log goes to `output_dir`.
        user: a user who must be among the test users.

    Raises:
        ValueError: as `evaluate`; or the user is not a test user.
    """
    check_changes(config_dict, MEASUREMENT_KEYS | {"output_dir"})
    # The metrics of every user are kept in any case (`per_user`); the means, which nobody reads here, are of one cheap metric.
    changes = {**config_dict, "metrics": ["Hit"], "target_skl": None}

    def check(run: Run) -> None:
        known = run.dataset.field2id_token[run.dataset.uid_field][1:]  # all of them are test users
        if user is not None and user not in known:
            raise ValueError(f"{run.config['dataset']} has no test user {user!r}{did_you_mean(user, known.tolist())}")

    with trained_run(checkpoint, changes, log_name, check) as (run, trainer):
        config, data, targets = run.config, run.dataset, run.test_data.dataset.targets
        users = _users(data, targets)
        rerankings = [Reranking()]
        for name, lambdas in rerankers.items():
            one = replace(Reranking.from_config(config, 0.0), method=name)
            rerankings += [replace(one, lam=float(lam)) for lam in lambdas] if name != BASE else []
        evaluations = trainer.evaluate_rerankings(run.test_data, rerankings, config["show_progress"], per_user=True)
        info = {
            "model": config["model"],
            "dataset": config["dataset"],
            "checkpoint": str(checkpoint),
            "k": max(config["topk"]),
            "interactions": len(data.sequences.items),
            "config": config.plain(),
        }
        shift = shift_of(data, config["beta"]).to_numpy(dtype=float).T
        return Measurement(info=info, **_lists(evaluations), **users, **_catalogue(data), shift=shift)


def _lists(evaluations: Sequence[Evaluation]) -> dict[str, np.ndarray]:
    """The arrays of a `Measurement` that the rerankings give."""
    structs = [one.struct for one in evaluations]
    preferences = structs[0].get(USER_PREFERENCES)
    return {
        "rerankers": np.array([one.reranking.method for one in evaluations]),
        "lambdas": np.array([one.reranking.lam for one in evaluations]),
        "seconds": np.array([one.seconds for one in evaluations]),
        "figures": np.stack([struct.get(USER_METRICS).T.contiguous().numpy() for struct in structs]),
        "lists": np.stack([struct.get(LISTS).numpy() for struct in structs]),
        "ranks": np.stack([struct.get(RANKS).numpy() for struct in structs]),
        "preference_begin": preferences.indptr,
        "preference_category": preferences.indices,
        "preference_share": preferences.data,
    }


def _users(data: SequenceDataset, targets: torch.Tensor) -> dict[str, np.ndarray]:
    """The arrays of a `Measurement` about the test users, their histories and targets."""
    sequences = data.sequences
    latest, length = sequences.latest(targets, HISTORY)
    return {
        "users": np.array(data.field2id_token[data.uid_field])[sequences.user_of(targets)].astype(str),
        "targets": sequences.items[targets].numpy(),
        "history": latest.numpy().astype(np.int32),
        "history_length": length.numpy(),
    }


def _catalogue(data: SequenceDataset) -> dict[str, np.ndarray]:
    """The arrays of a `Measurement` about items and categories."""
    members = np.zeros((len(data.item_members), data.categories.n_categories), dtype=bool)
    for item, own in enumerate(data.item_members):
        members[item, own] = True
    return {
        "items": np.array(data.item_names()).astype(str),
        "item_categories": members,
        "categories": np.array(data.categories.names).astype(str),
    }
