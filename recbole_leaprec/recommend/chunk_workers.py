"""Sends histories to recommenders over a Ray cluster, in chunks.

The model gets the same batches of users as in one process. So on CPUs the lists are the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from recbole_leaprec.common.files import scratch_folder
from recbole_leaprec.recommend.file_workers import FileWorker, over_ray
from recbole_leaprec.recommend.recommender import Recommender

BATCH = 512
"""Users that are scored together."""

CHUNK = 8
"""Batches that go to a Ray worker at a time."""


def ray_data(
    batches: Iterable[pd.DataFrame], arguments: dict[str, Any], workers: int | None, out: Path
) -> Iterator[pd.DataFrame]:
    """Lists for all batches, made over Ray Data, in the order of the histories. Each worker loads the model once.

    Histories are first cut into files in a folder beside `out`, and workers write their lists into this folder. All
    nodes must see it.
    """
    with scratch_folder(out) as folder:
        for lists in over_ray(_cut(iter(batches), folder), ChunkRecommender, {**arguments, "batch": BATCH}, workers):
            yield lists.to_pandas()


def _cut(batches: Iterator[pd.DataFrame], folder: Path) -> Iterator[Path]:
    for number in count():
        chunk = list(islice(batches, CHUNK))
        if not chunk:
            return
        path = folder / f"{number:08}.parquet"
        pd.concat(chunk).to_parquet(path)
        yield path


class ChunkRecommender(FileWorker):
    """Makes lists for the rows of files, `batch` users at a time."""

    def __init__(self, result: str, batch: int, **arguments: Any):
        super().__init__(result)
        self._users, self._recommender = batch, Recommender(**arguments)

    def make(self, path: Path) -> pa.Table:
        histories = pd.read_parquet(path)
        starts = range(0, len(histories), self._users)
        lists = pd.concat([self._recommender(histories.iloc[n : n + self._users]) for n in starts])
        return pa.Table.from_pandas(lists, preserve_index=False)
