"""How histories get to recommenders over a Ray cluster, in chunks.

The model gets the same batches of users as in one process, so on CPUs the lists are the same to the last bit.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import pandas as pd

from recbole_leaprec.cluster import quiet_data, ray_node
from recbole_leaprec.files import written_whole
from recbole_leaprec.recommend.recommender import Recommender

BATCH = 512
"""Users that are scored together."""

RETRIES = 10
"""How many times a run may lose workers."""

_logger = logging.getLogger(__name__)

NODE = "node"
"""A column of what comes back from Ray: where it was made."""

CHUNK = 8
"""Batches that go to a Ray worker at a time."""


def ray_data(
    batches: Iterable[pd.DataFrame], arguments: dict[str, Any], workers: int | None, scratch: Path
) -> Iterator[pd.DataFrame]:
    """Over Ray Data: the model is loaded once per worker, and lists come back in the order of the histories.

    Histories are first cut into files under `scratch`, and workers put their lists beside them; all nodes must see it. So no process
    holds all of them, and what is done stays done when a node dies: the rest goes to those that are left.
    """
    import ray.exceptions

    folder = Path(tempfile.mkdtemp(prefix=".histories-", dir=scratch))
    try:
        waiting = deque(_cut(iter(batches), folder))
        failures = 0
        while waiting:
            missing = [path for path in waiting if not _lists_of(path).exists()]
            try:
                for _ in _run(missing, arguments, workers):
                    while waiting and _lists_of(waiting[0]).exists():
                        yield _take(waiting.popleft())
            except ray.exceptions.RayTaskError:  # an error of the recommender's own
                raise
            except ray.exceptions.RayError as error:
                failures += 1
                if failures > RETRIES:
                    raise
                _logger.warning("Ray lost a worker (%s); the lists that are missing are made again", type(error).__name__)
            while waiting and _lists_of(waiting[0]).exists():
                yield _take(waiting.popleft())
    finally:
        shutil.rmtree(folder)


def _run(paths: list[str], arguments: dict[str, Any], workers: int | None) -> Iterator[Any]:
    """Have the lists of these files made; yields as they are."""
    import ray
    import ray.data

    if not paths:
        return
    workers = min(workers or int(ray.cluster_resources().get("CPU", 1)), len(paths))
    with quiet_data():
        made = ray.data.from_pandas([pd.DataFrame({"path": [path]}) for path in paths]).map_batches(
            ChunkRecommender,
            fn_constructor_kwargs={**arguments, "batch": BATCH},
            compute=ray.data.ActorPoolStrategy(min_size=1, max_size=workers),
            batch_size=1,
            batch_format="pandas",
            num_cpus=1,
        )
        yield from made.iter_batches(batch_size=1, batch_format="pandas")


def _lists_of(path: str) -> Path:
    return Path(path).with_suffix(".lists")


def _take(path: str) -> pd.DataFrame:
    lists = pd.read_parquet(_lists_of(path))
    _lists_of(path).unlink()  # the histories stay: a worker thought dead may still come to them
    return lists


def _cut(batches: Iterator[pd.DataFrame], folder: Path) -> Iterator[str]:
    for number in count():
        chunk = list(islice(batches, CHUNK))
        if not chunk:
            return
        path = folder / f"{number:08}.parquet"
        pd.concat(chunk).to_parquet(path)
        yield str(path)


class ChunkRecommender(Recommender):
    """A recommender for the rows of files, `batch` users at a time."""

    def __init__(self, *arguments: Any, batch: int, **more: Any):
        super().__init__(*arguments, **more)
        self._users = batch
        self._node = ray_node()

    def __call__(self, chunks: pd.DataFrame) -> pd.DataFrame:
        for path in chunks["path"]:
            histories = pd.read_parquet(path)
            starts = range(0, len(histories), self._users)
            lists = pd.concat([super(ChunkRecommender, self).__call__(histories.iloc[n : n + self._users]) for n in starts])
            with written_whole(_lists_of(path)) as scratch:
                lists.assign(**{NODE: self._node}).to_parquet(scratch)
        return chunks
