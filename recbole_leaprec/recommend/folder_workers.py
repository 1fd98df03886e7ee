"""Turns a folder of files into a folder of lists. Ray Data reads the files, lets workers make lists, and writes them.

Each file is one block of Ray Data, and one worker holds it at a time. So the lists of a file are the same as with one
process, and a file of lists has the name of the file that it is made from.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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
"""The column where Ray Data puts the file that a row comes from."""

LOOK = 2.0
"""Seconds between two checks of what is done."""

_logger = logging.getLogger(__name__)


class FolderWorker:
    """Makes lists out of each file, one file after the other. What it needs for that is loaded once."""

    def __init__(self, names: Mapping[str, str], rows: Mapping[str, int]):
        """`names`: the name of each file by its path. `rows`: the number of rows by name."""
        self._names, self._rows, self._node = names, rows, ray_node()

    def make(self, name: str, table: pa.Table) -> tuple[pa.Table, dict[str, Any]]:
        """The lists of a file, and the counts made on the way."""
        raise NotImplementedError

    def __call__(self, table: pa.Table) -> pa.Table:
        """One row: the name and the content of the file of lists, or an error message.

        Errors are returned as text because Ray Data would hide the type and the message of an exception.
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


@dataclass(frozen=True)
class Work:
    """Files to make lists of, and who makes them.

    Attributes:
        footers: the footers of the source files, by name.
        columns: the columns to read.
        worker: created once per process, with `arguments` and the files' names and rows.
        workers: number of processes, one CPU each; None for one per CPU.
        empty: the content to write for a source file without rows, since Ray Data returns nothing for it.
    """

    source: Folder
    footers: Mapping[str, Footer]
    columns: Sequence[str]
    worker: type[FolderWorker]
    arguments: Mapping[str, Any]
    workers: int | None
    empty: bytes


def make_lists(work: Work, out: ListFolder, show_progress: bool = True) -> list[dict[str, Any]]:
    """Make the lists that do not exist yet, over the connected cluster.

    Returns:
        The counts of each file.

    Raises:
        ValueError: a file is bad; the message is the worker's. Files that are done are kept.
    """
    rows = {name: footer.rows for name, footer in work.footers.items()}
    out.begin()
    for name in out.missing({name: None for name, count in rows.items() if not count}):
        out.folder.write_whole(name, work.empty)
    failures = 0
    with _progress(out, rows, show_progress):
        while missing := out.missing(rows):
            try:
                _run(work, {name: rows[name] for name in missing}, out.folder)
            except ray.exceptions.RayTaskError as error:
                if isinstance(error.cause, ValueError):
                    raise ValueError(str(error.cause).splitlines()[0]) from error  # the other lines are Ray's
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


def _run(work: Work, rows: Mapping[str, int], out: Folder) -> None:
    """Send files with so many rows through Ray Data."""
    names = {work.source.path_of(name): name for name in rows}
    workers = min(work.workers or int(ray.cluster_resources().get("CPU", 1)), len(names))
    with quiet_data(), _a_block_per_file():
        read = ray.data.read_parquet(
            list(names),
            filesystem=work.source.filesystem,
            include_paths=True,
            partitioning=None,
            override_num_blocks=len(names),
        )
        made = read.select_columns([*work.columns, PATH]).map_batches(
            work.worker,
            fn_constructor_kwargs={**work.arguments, "names": names, "rows": rows},
            compute=ray.data.ActorPoolStrategy(min_size=1, max_size=workers),
            batch_size=None,
            batch_format="pyarrow",
            num_cpus=1,
        )
        # Writing asks for no CPU. Else it would wait for workers, which may hold all CPUs, and they would wait for it.
        made.write_datasink(ListSink(out), ray_remote_args={"num_cpus": 0}, concurrency=workers)


@contextmanager
def _a_block_per_file() -> Iterator[None]:
    """Keep Ray Data from cutting large files into blocks, and its newer reader from joining small files."""
    context = ray.data.DataContext.get_current()
    before = context.target_max_block_size, context.use_datasource_v2
    context.target_max_block_size, context.use_datasource_v2 = None, False
    try:
        yield
    finally:
        context.target_max_block_size, context.use_datasource_v2 = before


@contextmanager
def _progress(out: ListFolder, rows: Mapping[str, int], show: bool) -> Iterator[None]:
    """A progress bar of the rows whose file is done. Ray Data does not report them, so the bar looks into the folder."""
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
