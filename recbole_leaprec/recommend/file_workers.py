"""Files to workers over a Ray cluster, and what they make of them beside the files.

Files lie where all nodes see them. So no process holds all of the rows, and what is done stays done when a node dies: the rest goes
to those that are left.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from recbole_leaprec.cluster import quiet_data, ray_node
from recbole_leaprec.common.files import written_whole

RETRIES = 10
"""How many times a run may lose workers."""

NODE = "node"
"""A column of what comes back from Ray: where it was made."""

_logger = logging.getLogger(__name__)


class FileWorker:
    """Makes a table out of a file, one file after the other; what it needs for that is loaded once."""

    def __init__(self, result: str):
        """`result` is how the files that it makes end."""
        self._result, self._node = result, ray_node()

    def make(self, path: Path) -> pa.Table:
        raise NotImplementedError

    def __call__(self, chunk: pd.DataFrame) -> pd.DataFrame:
        for path in map(Path, chunk["path"]):
            made = self.make(path)
            with written_whole(path.with_suffix(self._result)) as scratch:
                node = pa.array([self._node] * len(made), pa.string())
                pa.parquet.write_table(made.append_column(NODE, node), scratch)
        return chunk


def over_ray(
    paths: Iterable[Path], worker: type[FileWorker], arguments: dict[str, Any], workers: int | None, result: str = ".made"
) -> Iterator[pa.Table]:
    """The tables that workers make of the files, in the order of the files.

    Args:
        worker: made once per process, with these arguments beside `result`.
        workers: processes, one CPU each; None for as many as there are CPUs.
        result: how the files end that workers leave. Another work on the same files needs another: a worker that was thought dead may
            still write what it was asked for first.
    """
    import ray.exceptions

    waiting = deque(paths)
    failures = 0
    while waiting:
        missing = [path for path in waiting if not path.with_suffix(result).exists()]
        try:
            for _ in _run(missing, worker, {**arguments, "result": result}, workers):
                yield from _made(waiting, result)
        except ray.exceptions.RayTaskError:  # an error of the worker's own
            raise
        except ray.exceptions.RayError as error:
            failures += 1
            if failures > RETRIES:
                raise
            _logger.warning("Ray lost a worker (%s); the lists that are missing are made again", type(error).__name__)
        yield from _made(waiting, result)


def _made(waiting: deque[Path], result: str) -> Iterator[pa.Table]:
    """Take the tables that come next and are there."""
    while waiting and (made := waiting[0].with_suffix(result)).exists():
        waiting.popleft()
        table = pa.parquet.read_table(made)
        made.unlink()  # the file that it is made of stays: a worker thought dead may still come to it
        yield table


def _run(paths: list[Path], worker: type[FileWorker], arguments: dict[str, Any], workers: int | None) -> Iterator[Any]:
    """Have these files worked on; yields as they are."""
    import ray
    import ray.data

    if not paths:
        return
    workers = min(workers or int(ray.cluster_resources().get("CPU", 1)), len(paths))
    with quiet_data():
        made = ray.data.from_pandas([pd.DataFrame({"path": [str(path)]}) for path in paths]).map_batches(
            worker,
            fn_constructor_kwargs=arguments,
            compute=ray.data.ActorPoolStrategy(min_size=1, max_size=workers),
            batch_size=1,
            batch_format="pandas",
            num_cpus=1,
        )
        yield from made.iter_batches(batch_size=1, batch_format="pandas")
