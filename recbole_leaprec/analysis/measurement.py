"""The metrics and lists of one trained model, for every test user and many rerankings. Curves and pages use them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbole_leaprec.analysis.significance import bootstrap_interval
from recbole_leaprec.common.defaults import RESAMPLES
from recbole_leaprec.common.files import written_whole
from recbole_leaprec.common.reading import reading
from recbole_leaprec.evaluator.per_user import METRICS
from recbole_leaprec.settings.keys import PROTOCOL_KEYS

BASE = "none"
"""The reranker of a model's own ranking."""

FILE = "measured.npz"

HISTORY = 20
"""How many items of a history are kept, to be shown."""


@dataclass(frozen=True)
class Measurement:
    """Metrics and lists of M rerankings, the first of which is the model's own ranking, for U test users.

    Attributes:
        info: `model`, `dataset`, `checkpoint`, `k`, `interactions`, and the `config` that it was measured with.
        rerankers, lambdas, seconds: `[M]`.
        figures: `[M, len(METRICS), U]`, the metrics.
        lists, ranks: `[M, U, K]` item ids, 0 where a list is short; and their places in the model's own ranking, from 1.
        users, targets: `[U]` tokens; `[U]` the items to find.
        preference_begin, preference_category, preference_share: the sequential preferences without their zeros; the
            entries of user u are those from `preference_begin[u]` to `preference_begin[u+1]`.
        history, history_length: `[U, HISTORY]` the last items before the target, 0 in front if there are fewer; `[U]`.
        items, item_categories, categories: `[I]` names; `[I, C]` whether an item has a category; `[C]` names.
        shift: `[3, .]` the columns interval, kl and users of `category_shift`.
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
        """The index of each `(reranker, lambda)` among the M rerankings."""
        return {
            (name, lam): n for n, (name, lam) in enumerate(zip(self.rerankers.tolist(), self.lambdas.tolist(), strict=True))
        }

    def preference(self, user: int) -> np.ndarray:
        """The sequential preference of one user, `[C]`."""
        own = slice(self.preference_begin[user], self.preference_begin[user + 1])
        p = np.zeros(len(self.categories), dtype=np.float32)
        p[self.preference_category[own]] = self.preference_share[own]
        return p

    def metric(self, name: str) -> np.ndarray:
        """One metric of every reranking and user, `[M, U]`."""
        return self.figures[:, METRICS.index(name)]

    def table(self, samples: int = RESAMPLES) -> pd.DataFrame:
        """One row per reranking: `model`, `checkpoint`, `reranker`, `lambda`, metrics with intervals, and `seconds`."""
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
        """Read a file that `save` wrote; ValueError for any other file, and for one that was changed or damaged."""
        with reading(path, "a measurement of this version of the plugin"):
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as content:
                arrays = {name: content[name] for name in content.files}
            made = cls(info=json.loads(str(arrays.pop("info"))), **arrays)
            _check_info(made.info)
            _check_arrays(made)
            return made


_TEXT, _WHOLE, _NUMBER, _TRUTH = "U", "iu", "f", "b"
_ARRAYS = {
    "rerankers": (_TEXT, "M"), "lambdas": (_NUMBER, "M"), "seconds": (_NUMBER, "M"), "figures": (_NUMBER, "M4U"), "lists": (_WHOLE, "MUK"),
    "ranks": (_WHOLE, "MUK"), "users": (_TEXT, "U"), "targets": (_WHOLE, "U"), "preference_begin": (_WHOLE, "P"),
    "preference_category": (_WHOLE, "N"), "preference_share": (_NUMBER, "N"), "history": (_WHOLE, "UH"), "history_length": (_WHOLE, "U"),
    "items": (_TEXT, "I"), "item_categories": (_TRUTH, "IC"), "categories": (_TEXT, "C"), "shift": (_NUMBER, "3S"),
}  # fmt: skip
"""The kind (as in numpy) and the shape of each array. The same letter stands for the same size in all of them."""


def _check_info(info: Any) -> None:
    """ValueError unless `info` has every entry that is read later, in the form in which `measure` writes it."""
    kinds = {"model": str, "dataset": str, "checkpoint": str, "k": int, "interactions": int, "config": dict}
    for name, kind in kinds.items():
        if not isinstance(info, dict) or not isinstance(info.get(name), kind):
            raise ValueError(f"its {name!r} is missing, or not what it should be")
    if "\0" in info["checkpoint"]:
        raise ValueError("its 'checkpoint' is no path")
    for key in (*PROTOCOL_KEYS, "title_field"):
        if key not in info["config"]:
            raise ValueError(f"its config lacks {key}")
    if type(info["config"].get("seed")) is not int:
        raise ValueError("the seed in its config is missing, or no whole number")


def _check_arrays(made: Measurement) -> None:
    """ValueError for an array of a wrong kind or shape, a number that is not finite, or an index out of range."""
    sizes: dict[str, int] = {"4": len(METRICS), "3": 3, "K": made.info["k"], "H": HISTORY}
    for name, (kind, shape) in _ARRAYS.items():
        array = getattr(made, name)
        if array.dtype.kind not in kind or array.ndim != len(shape):
            raise ValueError(f"{name} has values of type {array.dtype} in {array.ndim} dimensions")
        for letter, size in zip(shape, array.shape, strict=True):
            if sizes.setdefault(letter, size) != size:
                raise ValueError(f"{name} has the shape {array.shape}, which does not fit the others")
        if kind == _NUMBER and name != "shift" and not np.isfinite(array).all():  # nan if no history is long enough
            raise ValueError(f"{name} holds what is no number")
    if min(sizes[letter] for letter in "MUKIC") < 1 or made.place.get((BASE, 0.0)) != 0:
        raise ValueError("it holds no lists of the model's own ranking")
    _check_places(made, sizes)


def _check_places(made: Measurement, sizes: Mapping[str, int]) -> None:
    for name, above in (
        ("lists", sizes["I"]), ("targets", sizes["I"]), ("history", sizes["I"]), ("preference_category", sizes["C"]),
        ("preference_begin", sizes["N"] + 1),
    ):  # fmt: skip
        array = getattr(made, name)
        if array.size and not 0 <= array.min() <= array.max() < above:
            raise ValueError(f"{name} points where there is nothing")
    if sizes["P"] != sizes["U"] + 1 or (np.diff(made.preference_begin) < 0).any():
        raise ValueError("preference_begin does not go up from user to user")


def metric_rows(figures: np.ndarray, k: int, samples: int) -> list[dict[str, Any]]:
    """One dict per reranking of `figures [M, metric, U]`: the means over users and their 95 % intervals."""
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
