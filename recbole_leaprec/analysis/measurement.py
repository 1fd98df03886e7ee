"""The metrics and lists of one trained model, for every test user and in many rerankings: what curves and pages are made of."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pandas as pd

from recbole_leaprec.analysis.significance import bootstrap_interval
from recbole_leaprec.defaults import RESAMPLES
from recbole_leaprec.evaluator.per_user import METRICS
from recbole_leaprec.files import written_whole

BASE = "none"
"""The reranker of a model's own ranking."""

FILE = "measured.npz"

HISTORY = 20
"""Items of a history that are kept for looking at."""


@dataclass(frozen=True)
class Measurement:
    """Metrics and lists of M rerankings, the first of which is the model's own ranking, for U test users.

    Attributes:
        info: `model`, `dataset`, `checkpoint`, `k`, `interactions`, and the `config` that it was measured with.
        rerankers, lambdas, seconds: `[M]`.
        figures: `[M, len(METRICS), U]`.
        lists, ranks: `[M, U, K]` item ids, 0 where a list is short, and their places in the model's own ranking, from 1.
        users, targets: `[U]` tokens, `[U]` the items to find.
        preference_begin, preference_category, preference_share: the sequential preferences without their zeros; user u's are those
            from `preference_begin[u]` to `preference_begin[u+1]`.
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
    preference_begin: np.ndarray
    preference_category: np.ndarray
    preference_share: np.ndarray
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

    def preference(self, user: int) -> np.ndarray:
        """`[C]`: the sequential preference of one user."""
        own = slice(self.preference_begin[user], self.preference_begin[user + 1])
        p = np.zeros(len(self.categories), dtype=np.float32)
        p[self.preference_category[own]] = self.preference_share[own]
        return p

    def metric(self, name: str) -> np.ndarray:
        """`[M, U]`."""
        return self.figures[:, METRICS.index(name)]

    def table(self, samples: int = RESAMPLES) -> pd.DataFrame:
        """A row for each reranking: `model`, `checkpoint`, `reranker`, `lambda`, each metric with its interval, `seconds`."""
        rows = metric_rows(self.figures, self.k, samples)
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
    def load(cls, path: str | Path) -> Measurement:
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as content:
                arrays = {name: content[name] for name in content.files}
            return cls(info=json.loads(str(arrays.pop("info"))), **arrays)
        except (ValueError, KeyError, TypeError, EOFError, OSError, BadZipFile, zlib.error) as error:
            raise ValueError(f"{path} is not a measurement of this version of the plugin: {error}") from error


def metric_rows(figures: np.ndarray, k: int, samples: int) -> list[dict[str, Any]]:
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
