"""Files and the tables that workers make of them, without a Ray cluster."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import ray.exceptions

from recbole_leaprec.recommend import file_workers
from recbole_leaprec.recommend.file_workers import FileWorker, over_ray


def pretend(monkeypatch, *runs):
    """Have each run of Ray Data make the tables of these files; one that is an error is raised after them."""
    runs = iter(runs)

    def run(paths, worker, arguments, workers):
        for one in next(runs):
            if isinstance(one, Exception):
                raise one
            pq.write_table(pa.table({"made_of": [one.name]}), one.with_suffix(arguments["result"]))
            yield None

    monkeypatch.setattr(file_workers, "_run", run)


def made(paths):
    return [table.column("made_of")[0].as_py() for table in over_ray(paths, FileWorker, {}, None)]


def test_tables_come_in_the_order_of_the_files(tmp_path, monkeypatch):
    paths = [tmp_path / f"{name}.parquet" for name in "abc"]
    pretend(monkeypatch, reversed(paths))
    assert made(paths) == ["a.parquet", "b.parquet", "c.parquet"]


def test_a_run_that_loses_a_worker_is_followed_by_another(tmp_path, monkeypatch):
    paths = [tmp_path / f"{name}.parquet" for name in "abc"]
    lost = ray.exceptions.ActorDiedError()
    pretend(monkeypatch, [paths[1], lost], [lost], [paths[0], paths[2], lost], [])
    assert made(paths) == ["a.parquet", "b.parquet", "c.parquet"]


def test_a_run_that_ends_without_a_table_is_an_error(tmp_path, monkeypatch):
    """Before, it was started again for ever."""
    paths = [tmp_path / f"{name}.parquet" for name in "abc"]
    pretend(monkeypatch, [paths[0], paths[2]])
    with pytest.raises(RuntimeError, match=r"Ray Data has ended without .*b\.made"):
        made(paths)
