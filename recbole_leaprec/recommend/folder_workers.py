"""A folder of files to a folder of lists over Ray Data: it reads, its workers make lists, and it writes.

Each file is read, worked on and written as one: it is one block of Ray Data, which one worker holds at a time. So the lists of a file are
those of one process, and a file of lists is named after what it is made of.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import ray
import ray.data
import ray.exceptions
from tqdm import tqdm

from recbole_leaprec.cluster import quiet_data, ray_node
from recbole_leaprec.common.parquet_folder import Folder, Footer
from recbole_leaprec.list_sink import CONTENT, ERROR, NAME, ListSink
from recbole_leaprec.recommend.file_workers import NODE, RETRIES
from recbole_leaprec.recommend.list_folder import ListFolder, packed

PATH = "path"
"""The column where Ray Data puts the file that a row is of."""

LOOK = 2.0
"""Seconds from one look at what is done to the next."""

_logger = logging.getLogger(__name__)


class FolderWorker:
    """Makes lists out of one file after the other; what it needs for that is loaded once."""

    def __init__(self, names: Mapping[str, str], rows: Mapping[str, int]):
        """`names` of the files by their paths, and how many rows each has."""
        self._names, self._rows, self._node = names, rows, ray_node()

    def make(self, name: str, table: pa.Table) -> tuple[pa.Table, dict[str, Any]]:
        """The lists of a file, and what was counted on the way."""
        raise NotImplementedError

    def __call__(self, table: pa.Table) -> pa.Table:
        """One row: the name and the content of the file of lists, or the sentence that says why there is none.

        Ray Data would keep the type and the words of an error of ours to itself.
        """
        name = self._names[table.column(PATH)[0].as_py()]
        if len(table) != self._rows[name]:
            raise RuntimeError(
                f"Ray Data gave {len(table)} of the {self._rows[name]} rows of {name}: a block must be a file"
            )
        content, error = b"", ""
        try:
            lists, counted = self.make(name, table.drop_columns(PATH))
            content = packed(lists, {**counted, NODE: self._node})
        except ValueError as found:
            error = str(found).replace("\n", " ")
        return pa.table({NAME: [name], CONTENT: pa.array([content], pa.large_binary()), ERROR: [error]})


def make_lists(
    source: Folder,
    footers: Mapping[str, Footer],
    columns: Sequence[str],
    out: ListFolder,
    worker: type[FolderWorker],
    arguments: Mapping[str, Any],
    workers: int | None,
    empty: bytes,
    show_progress: bool = True,
) -> list[dict[str, Any]]:
    """Make the lists that are not there yet, over the cluster that is connected to.

    Args:
        footers: of the files that lists are made of, by their names.
        columns: that are read.
        worker: made once per process, with these arguments beside the files' names and rows.
        workers: processes, one CPU each; None for as many as there are CPUs.
        empty: the file for a file without rows, of which Ray Data gives nothing.

    Returns:
        What was counted on the way to each file.

    Raises:
        ValueError: a worker says what is wrong with a file. Those that are done stay.
    """
    rows = {name: footer.rows for name, footer in footers.items()}
    out.begin()
    for name in out.missing({name: None for name, count in rows.items() if not count}):
        out.folder.write_whole(name, empty)
    failures = 0
    with _progress(out, rows, show_progress):
        while missing := out.missing(rows):
            try:
                _run(source, {name: rows[name] for name in missing}, columns, out.folder, worker, arguments, workers)
            except ray.exceptions.RayTaskError as error:
                if isinstance(error.cause, ValueError):
                    raise ValueError(str(error.cause).splitlines()[0]) from error  # what comes after that is Ray's
                raise
            except ray.exceptions.RayError as error:
                failures += 1
                if failures > RETRIES:
                    raise
                _logger.warning("Ray lost a worker (%s); the lists that are missing are made again", type(error).__name__)
            else:
                if out.missing(rows):
                    raise RuntimeError(f"Ray Data has ended without the lists of {out.missing(rows)[0]}")
    return out.finish(rows)


def _run(
    source: Folder,
    rows: Mapping[str, int],
    columns: Sequence[str],
    out: Folder,
    worker: type[FolderWorker],
    arguments: Mapping[str, Any],
    workers: int | None,
) -> None:
    """These files through Ray Data."""
    names = {source.path_of(name): name for name in rows}
    workers = min(workers or int(ray.cluster_resources().get("CPU", 1)), len(names))
    with quiet_data(), _a_block_per_file():
        read = ray.data.read_parquet(
            list(names), filesystem=source.filesystem, include_paths=True, partitioning=None, override_num_blocks=len(names)
        )
        made = read.select_columns([*columns, PATH]).map_batches(
            worker,
            fn_constructor_kwargs={**arguments, "names": names, "rows": rows},
            compute=ray.data.ActorPoolStrategy(min_size=1, max_size=workers),
            batch_size=None,
            batch_format="pyarrow",
            num_cpus=1,
        )
        # Writing waits for the network or the disk. Had it to wait for a CPU, workers that have them all would wait for it.
        made.write_datasink(ListSink(out), ray_remote_args={"num_cpus": 0}, concurrency=workers)


@contextmanager
def _a_block_per_file() -> Iterator[None]:
    """Ray Data cuts blocks by their size, and its newer reading puts small files together, unless it is told not to."""
    context = ray.data.DataContext.get_current()
    before = context.target_max_block_size, context.use_datasource_v2
    context.target_max_block_size, context.use_datasource_v2 = None, False
    try:
        yield
    finally:
        context.target_max_block_size, context.use_datasource_v2 = before


@contextmanager
def _progress(out: ListFolder, rows: Mapping[str, int], show: bool) -> Iterator[None]:
    """A bar of the users whose file is done. Nobody tells of them while Ray Data works, so it looks into the folder."""
    if not show:
        yield
        return
    stop, total = threading.Event(), sum(rows.values())
    with tqdm(total=total, desc="lists", unit="row") as bar:

        def look() -> None:
            bar.update(total - sum(rows[name] for name in out.missing(rows)) - bar.n)

        def watch() -> None:
            while not stop.wait(LOOK):
                look()

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
            look()
        finally:
            stop.set()
            watcher.join()
