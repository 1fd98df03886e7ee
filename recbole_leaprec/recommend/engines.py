"""How histories get to a recommender: batch by batch here, or in chunks over a Ray cluster.

Both hand the same batches of users to the model, so both make the same lists to the last bit.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import pandas as pd

from recbole_leaprec.recommend.recommender import Recommender

BATCH = 512
"""Users that are scored together."""

CHUNK = 8
"""Batches that go to a Ray worker at a time."""


def local(batches: Iterable[pd.DataFrame], arguments: dict[str, Any]) -> Iterator[pd.DataFrame]:
    recommender = Recommender(**arguments)
    yield from map(recommender, batches)


def ray_data(
    batches: Iterable[pd.DataFrame], arguments: dict[str, Any], workers: int | None, scratch: Path
) -> Iterator[pd.DataFrame]:
    """Over Ray Data: the model is loaded once a worker, and lists come back in the order of the histories.

    Histories are first cut into files under `scratch`, which all nodes must see; so no process holds all of them.
    """
    import ray
    import ray.data

    ray.data.DataContext.get_current().execution_options.preserve_order = True
    folder = Path(tempfile.mkdtemp(prefix=".histories-", dir=scratch))
    try:
        paths = list(_cut(iter(batches), folder))
        workers = min(workers or int(ray.cluster_resources().get("CPU", 1)), max(1, len(paths)))
        chunks = ray.data.from_pandas([pd.DataFrame({"path": [path]}) for path in paths])
        lists = chunks.map_batches(
            ChunkRecommender,
            fn_constructor_kwargs={**arguments, "batch": BATCH},
            compute=ray.data.ActorPoolStrategy(min_size=1, max_size=workers),
            batch_size=1,
            batch_format="pandas",
            num_cpus=1,
        )
        yield from lists.iter_batches(batch_size=None, batch_format="pandas")
    finally:
        shutil.rmtree(folder)


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

    def __call__(self, chunks: pd.DataFrame) -> pd.DataFrame:
        lists = []
        for path in chunks["path"]:
            histories = pd.read_parquet(path)
            for start in range(0, len(histories), self._users):
                lists.append(super().__call__(histories.iloc[start : start + self._users]))
        return pd.concat(lists)
