"""Makes lists for a folder of histories, over Ray."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from recbole_leaprec.cluster import connected
from recbole_leaprec.common.parquet_folder import checked_folder
from recbole_leaprec.recommend import chunk_workers
from recbole_leaprec.recommend.folder_workers import FolderWorker, Work, make_lists
from recbole_leaprec.recommend.histories import ITEMS, LEAVE_OUT, USER, check_schema, check_users
from recbole_leaprec.recommend.list_folder import ListFolder, file_fingerprint, fingerprint, packed
from recbole_leaprec.recommend.recommender import Recommender
from recbole_leaprec.recommend.totals import Totals
from recbole_leaprec.recommend.writer import as_table, list_schema
from recbole_leaprec.settings.keys import NO_PART_OF_LISTS


class FolderRecommender(FolderWorker):
    """Makes lists for the rows of files, `batch` users at a time."""

    def __init__(self, names: dict[str, str], rows: dict[str, int], batch: int, arguments: dict[str, Any]):
        super().__init__(names, rows)
        self._users, self._recommender = batch, Recommender(**arguments)

    def make(self, name: str, table: pa.Table) -> tuple[pa.Table, dict[str, Any]]:
        totals, made = Totals(histories=len(table)), []
        for start in range(0, len(table), self._users):
            histories = table.slice(start, self._users).to_pandas()
            check_users(histories, name)
            try:
                lists = self._recommender(histories)
            except ValueError as error:
                raise ValueError(f"histories file {name}: {error}") from error
            totals.add_lists(lists)
            made.append(as_table(lists, list_schema(self._recommender.has_titles)))
        return pa.concat_tables(made), totals.numbers()


def recommend_folder(
    recommender: Recommender,
    arguments: dict[str, Any],
    histories: str | Path,
    out: str | Path,
    workers: int | None,
    ray_address: str | None,
    show_progress: bool,
) -> Totals:
    """Make lists for all files of a folder. Each worker has its own `Recommender`, created with `arguments`."""
    columns = (USER, ITEMS, LEAVE_OUT)
    source, footers, files = checked_folder(histories, "histories", columns, check_schema)
    rules = {name: value for name, value in arguments.items() if name not in ("checkpoint", "changes")}
    settings = {
        "histories": source.path,  # an address may hold a password
        "files of histories": fingerprint(files),
        "checkpoint": file_fingerprint(arguments["checkpoint"]),
        **{key: value for key, value in arguments["changes"].items() if key not in NO_PART_OF_LISTS},
        **{name: value if isinstance(value, int) else fingerprint(value) for name, value in rules.items()},
    }
    lists = ListFolder.at(out, settings)
    schema = next(iter(footers.values())).schema
    totals = Totals()
    work = Work(
        source=source,
        footers=footers,
        columns=[name for name in columns if name in schema.names],
        worker=FolderRecommender,
        arguments={"batch": chunk_workers.BATCH, "arguments": arguments},
        workers=workers,
        empty=packed(list_schema(recommender.has_titles).empty_table(), totals.numbers()),
    )
    with connected(ray_address):
        for counted in make_lists(work, lists, show_progress):
            totals.add(counted)
    return totals
