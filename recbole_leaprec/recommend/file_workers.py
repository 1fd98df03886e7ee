"""Sends files to workers over a Ray cluster. Each worker writes its result beside the file.

The files are where all nodes see them. So no process holds all rows, and results are kept when a node dies: the other
nodes do the rest.
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
"""A column of the results: the node that made them."""

_logger = logging.getLogger(__name__)


class FileWorker:
    """Makes a table out of each file, one file after the other. What it needs for that is loaded once."""

    def __init__(self, result: str):
        """`result` is the ending of the files that it writes."""
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
        worker: created once per process, with `arguments` and `result`.
        workers: number of processes, one CPU each; None for one per CPU.
        result: the ending of the files that workers write. A second task on the same files needs another ending: a
            worker that was thought dead may still write a result of the first task.
    """
    import ray.exceptions

    waiting = deque(paths)
    failures = 0
    while waiting:
        missing = [path for path in waiting if not path.with_suffix(result).exists()]
        try:
            for _ in _run(missing, worker, {**arguments, "result": result}, workers):
                yield from _made(waiting, result)
        except ray.exceptions.RayTaskError:  # an error in the worker's code
            raise
        except ray.exceptions.RayError as error:
            failures += 1
            if failures > RETRIES:
                raise
            _logger.warning("Ray lost a worker (%s); the lists that are missing are made again", type(error).__name__)
        else:
            yield from _made(waiting, result)
            if waiting:
                raise RuntimeError(f"Ray Data has ended without {waiting[0].with_suffix(result)}")


def _made(waiting: deque[Path], result: str) -> Iterator[pa.Table]:
    """Yield the next tables in order, as far as they are written, and remove them from `waiting`."""
    while waiting and (made := waiting[0].with_suffix(result)).exists():
        waiting.popleft()
        table = pa.parquet.read_table(made)
        made.unlink()  # its input file stays: a worker that was thought dead may still read it
        yield table


def _run(paths: list[Path], worker: type[FileWorker], arguments: dict[str, Any], workers: int | None) -> Iterator[Any]:
    """Have workers process these files; yields each time one is done."""
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
