"""What the lists of one trained model come to, for every test user and in many rerankings: what curves and pages are made of."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pandas as pd

from recbole_leaprec.config import largest_k
from recbole_leaprec.evaluator import Reranking
from recbole_leaprec.evaluator.collector import RANKS
from recbole_leaprec.evaluator.metrics import SEQUENTIAL_PREFERENCE
from recbole_leaprec.evaluator.per_user import per_user
from recbole_leaprec.quick_start import EVALUATION_KEYS, check_changes, trained_run
from recbole_leaprec.run_folder import written_whole
from recbole_leaprec.shift import category_shift
from recbole_leaprec.significance import bootstrap_interval
from recbole_leaprec.suggest import did_you_mean

METRICS = ("hit", "ndcg", "skl", "ckl")
BASE = "none"
"""The reranker of a model's own ranking."""

FILE = "measured.npz"

MEASURED_KEYS = EVALUATION_KEYS - {"reranker", "rerank_lambda", "target_skl", "metrics", "output_dir"}
"""What a command that measures may change of a trained run."""

PROTOCOL_KEYS = ("alpha", "beta", "mask_history", "preference_history")
"""What figures must have in common to stand in one table, beside the dataset and K."""

HISTORY = 20
"""Items of a history that are kept for looking at."""

INTERVALS, WINDOW = range(0, 201, 10), 20
"""Of the shift of categories."""


@dataclass(frozen=True)
class Measured:
    """Figures and lists of M rerankings, the first of which is the model's own ranking, for U test users.

    Attributes:
        info: `model`, `dataset`, `checkpoint`, `k`, `interactions`, and the `config` that it was measured with.
        rerankers, lambdas, seconds: `[M]`.
        figures: `[M, len(METRICS), U]`.
        lists, ranks: `[M, U, K]` item ids, 0 where a list is short, and their places in the model's own ranking, from 1.
        users, targets, preference: `[U]` tokens, `[U]` the items to find, `[U, C]` the sequential preferences.
        history, history_length: `[U, HISTORY]` the last items before the target, 0 in front where there are fewer; `[U]`.
        items, item_categories, categories: `[I]` names, `[I, C]` whether an item has a category, `[C]` names.
        shift: `[3, .]` interval, divergence and users, as `category_shift` has them.
    """

    info: dict[str, Any]
    rerankers: np.ndarray
    lambdas: np.ndarray
    seconds: np.ndarray
    figures: np.ndarray
    lists: np.ndarray
    ranks: np.ndarray
    users: np.ndarray
    targets: np.ndarray
    preference: np.ndarray
    history: np.ndarray
    history_length: np.ndarray
    items: np.ndarray
    item_categories: np.ndarray
    categories: np.ndarray
    shift: np.ndarray

    @property
    def k(self) -> int:
        return self.info["k"]

    @cached_property
    def place(self) -> dict[tuple[str, float], int]:
        """Where each `(reranker, lambda)` stands among the M."""
        return {
            (name, lam): n for n, (name, lam) in enumerate(zip(self.rerankers.tolist(), self.lambdas.tolist(), strict=True))
        }

    def figure(self, metric: str) -> np.ndarray:
        """`[M, U]`."""
        return self.figures[:, METRICS.index(metric)]

    def table(self, samples: int = 1000) -> pd.DataFrame:
        """A row for each reranking: `model`, `checkpoint`, `reranker`, `lambda`, each metric with its interval, `seconds`."""
        rows = figure_rows(self.figures, self.k, samples)
        for row, name, lam, seconds in zip(rows, self.rerankers, self.lambdas, self.seconds, strict=True):
            row["seconds"] = seconds
            row |= {"model": self.info["model"], "checkpoint": self.info["checkpoint"], "reranker": name, "lambda": lam}
        first = ["model", "checkpoint", "reranker", "lambda"]
        table = pd.DataFrame(rows)
        return table[first + [column for column in table if column not in first]]

    def save(self, path: Path) -> None:
        arrays = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "info"}
        with written_whole(path) as scratch, open(scratch, "wb") as file:
            np.savez_compressed(file, info=np.array(json.dumps(self.info)), **arrays)

    @classmethod
    def load(cls, path: str | Path) -> Measured:
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as content:
                arrays = {name: content[name] for name in content.files}
            return cls(info=json.loads(str(arrays.pop("info"))), **arrays)
        except (ValueError, KeyError, TypeError, EOFError, OSError, BadZipFile, zlib.error) as error:
            raise ValueError(f"{path} is not a measurement of this version of the plugin: {error}") from error


def check_alike(configs: Mapping[str, Mapping[str, Any]], remedy: str) -> None:
    """ValueError for runs whose figures could not stand in one table.

    Args:
        configs: by what the runs are called.
        remedy: what to do about it.
    """
    for key in ("dataset", "topk", *PROTOCOL_KEYS):
        named: dict[Any, str] = {}
        for name, config in configs.items():
            named.setdefault(largest_k(config) if key == "topk" else config[key], name)
        if len(named) > 1:
            told = " and ".join(f"{value!r} ({name})" for value, name in list(named.items())[:2])
            raise ValueError(
                f"{'the largest topk' if key == 'topk' else key} must be the same for all, got {told}; {remedy}"
            )


def figure_rows(figures: np.ndarray, k: int, samples: int) -> list[dict[str, float]]:
    """For each of the M of `figures [M, metric, U]`, the means over users and their 95 % intervals."""
    flat = figures.reshape(-1, figures.shape[-1]).T
    low, high = bootstrap_interval(flat, samples).reshape(2, len(figures), -1)
    means = figures.mean(-1)
    return [
        {
            column: float(value)
            for number, metric in enumerate(METRICS)
            for column, value in (
                (f"{metric}@{k}", means[n, number]),
                (f"{metric}@{k}_low", low[n, number]),
                (f"{metric}@{k}_high", high[n, number]),
            )
        }
        for n in range(len(figures))
    ]


def measure(
    checkpoint: str | Path,
    rerankers: Mapping[str, Sequence[float]],
    config_dict: dict[str, Any],
    log_name: str = "measure.log",
    user: str | None = None,
) -> Measured:
    """Score the test users once and rerank them in every way.

    Args:
        rerankers: the lambdas of each; the model's own ranking is always there.
        config_dict: keys to change, those in `MEASURED_KEYS`; `output_dir` is where the log goes.
        user: somebody who must be among the test users.

    Raises:
        ValueError: as `evaluate`; no such user.
    """
    check_changes(config_dict, MEASURED_KEYS | {"output_dir"})
    changes = {**config_dict, "metrics": ["Hit", "NDCG", "SKL", "CKL"]}
    with trained_run(checkpoint, changes, log_name) as (run, trainer):
        config, k = run.config, max(run.config["topk"])
        data, targets = run.dataset, run.test_data.dataset.targets
        users = np.array(data.field2id_token[data.uid_field])[data.sequences.user_of(targets)].astype(str)
        if user is not None and user not in users:
            raise ValueError(f"{config['dataset']} has no test user {user!r}{did_you_mean(user, users.tolist())}")
        asked = [Reranking()]
        for name, lambdas in rerankers.items():
            one = replace(Reranking.from_config(config, 0.0), method=name)
            asked += [replace(one, lam=float(lam)) for lam in lambdas] if name != BASE else []
        results = trainer.evaluate_rerankings(run.test_data, asked, show_progress=config["show_progress"], ranks=True)
        structs = [result["struct"] for result in results]
        figures = [per_user(struct, k, config["beta"]) for struct in structs]
        sequences = data.sequences
        latest, length = sequences.latest(targets, HISTORY)
        shift = category_shift(sequences.items, sequences.offsets, data.categories, INTERVALS, WINDOW, config["beta"])
        return Measured(
            info={
                "model": config["model"],
                "dataset": config["dataset"],
                "checkpoint": str(checkpoint),
                "k": k,
                "interactions": len(sequences.items),
                "config": config.plain(),
            },
            rerankers=np.array([one.method for one in asked]),
            lambdas=np.array([one.lam for one in asked]),
            seconds=np.array([result["seconds"] for result in results]),
            figures=np.stack([np.stack([one[f"{metric}@{k}"].numpy() for metric in METRICS]) for one in figures]),
            lists=np.stack([struct.get("rec.items")[:, :k].numpy() for struct in structs]).astype(np.int32),
            ranks=np.stack([struct.get(RANKS)[:, :k].numpy() for struct in structs]).astype(np.int32),
            users=users,
            targets=sequences.items[targets].numpy(),
            preference=structs[0].get(SEQUENTIAL_PREFERENCE).numpy().astype(np.float32),
            history=latest.numpy().astype(np.int32),
            history_length=length.numpy(),
            items=np.array(data.item_names()).astype(str),
            item_categories=_members(data.item_members, data.categories.n_categories),
            categories=np.array(data.categories.names).astype(str),
            shift=shift.to_numpy(dtype=float).T,
        )  # fmt: skip


def _members(members: Sequence[Sequence[int]], count: int) -> np.ndarray:
    """`[I, count]`: whether each item has each category."""
    table = np.zeros((len(members), count), dtype=bool)
    for item, own in enumerate(members):
        table[item, own] = True
    return table
