"""Runs the compiled loops on torch tensors, with as many threads as torch uses."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from recbole_leaprec.common.slow_step import in_log, slow_step
from recbole_leaprec.core.categories import ItemCategories

_logger = logging.getLogger(__name__)

USERS = 32
"""How many users a thread takes at a time. For fewer users, a second thread is not worth its start."""


class BadScores(ValueError):
    """A row of the scores holds nan or +inf."""

    def __init__(self, row: int):
        super().__init__(f"row {row} of the scores holds nan or +inf")
        self.row = row


def greedy(scores: Tensor, p: Tensor, categories: ItemCategories, k: int, weights: Tensor, beta: float) -> Tensor:
    """`greedy.greedy` with compiled loops. Raises BadScores for nan or +inf."""
    return _lists("greedy", scores, p, categories, k, len(weights), weights.numpy(), beta)


def setwise(
    scores: Tensor,
    p: Tensor,
    categories: ItemCategories,
    k: int,
    lambdas: Sequence[float],
    beta: float,
    by_probability: bool,
) -> Tensor:
    """`setwise.setwise` with compiled loops. Raises BadScores for nan or +inf."""
    return _lists("setwise", scores, p, categories, k, len(lambdas), np.array(lambdas, np.float64), beta, k, by_probability)


def _lists(name: str, scores: Tensor, p: Tensor, categories: ItemCategories, k: int, settings: int, *more: Any) -> Tensor:
    """Lists `[settings, B, k]` of a kernel. The kernel gets `more` after the scores and the preferences."""
    wide = scores if scores.dtype in (torch.float32, torch.float64) else scores.float()  # holds half precision exactly
    scores_array, p_array = wide.detach().contiguous().numpy(), p.detach().double().contiguous().numpy()
    lists = np.empty((settings, len(scores), k), np.int64)

    def work(start: int, stop: int) -> int:
        return kernel(scores_array, p_array, *more, *arrays, start, stop, lists)

    with _patience((name, scores_array.dtype)):
        from recbole_leaprec.reranking import kernels

        kernel, arrays = getattr(kernels, name), _arrays(categories)
        work(0, 0)  # compiles, the first time
    _over_users(work, len(scores))
    return torch.from_numpy(lists)


_arrays_of: WeakKeyDictionary[ItemCategories, list[np.ndarray]] = WeakKeyDictionary()


def _arrays(categories: ItemCategories) -> list[np.ndarray]:
    """The tables that the kernels read. Indices are short and unsigned, which saves the loops a test for each."""
    if categories not in _arrays_of:
        looked_up_by = {"profile_of_item", "items_by_profile", "members", "profile_by_pair"}
        names = (
            "profile_of_item", "items_by_profile", "profile_begin", "member_begin", "members", "category_begin", "pair_share",
            "pair_begin", "profile_by_pair",
        )  # fmt: skip
        arrays = [getattr(categories, name).numpy() for name in names]
        _arrays_of[categories] = [
            array.astype(np.uint32) if name in looked_up_by else array for name, array in zip(names, arrays, strict=True)
        ]
    return _arrays_of[categories]


def _over_users(work: Callable[[int, int], int], users: int) -> None:
    """Call `work(start, stop)` for all users, over threads. `work` returns its first bad row, or -1.

    Threads live only during this call, so a later fork has none to break. Each takes the next users when it is done with
    its own, so a thread that waits for a processor does not delay the others. The loops run without Python's lock (GIL).
    """
    starts, lock = iter(range(0, users, USERS)), threading.Lock()
    bad: list[int] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            while not bad and not errors:
                with lock:
                    start = next(starts, None)
                if start is None:
                    return
                row = work(start, min(start + USERS, users))
                if row >= 0:
                    bad.append(row)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(min(torch.get_num_threads(), users // USERS) - 1)]
    for thread in threads:
        thread.start()
    run()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    if bad:
        raise BadScores(min(bad))


_compiled: set[tuple] = set()


@contextmanager
def _patience(what: tuple) -> Iterator[None]:
    """Log the reason if it takes long to get a kernel ready: it is compiled at its first use on a machine."""
    if what in _compiled:
        yield
        return
    message = "compiling the rerankers for this machine, which takes a while; from then on they are there at once"
    with slow_step(message, in_log(_logger)):
        yield
    _compiled.add(what)
