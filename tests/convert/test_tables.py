"""Tables are read some rows at a time."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recbole_leaprec.convert.bad_lines import BadLines
from recbole_leaprec.convert.tables import Table
from recbole_leaprec.recommend.histories import of_file


@pytest.mark.parametrize("form", ["rows", "histories"])
def test_a_parquet_file_is_never_in_memory_as_a_whole(tmp_path, monkeypatch, form):
    monkeypatch.setattr("recbole_leaprec.convert.tables.ROWS", 500)
    random, path = np.random.default_rng(0), tmp_path / "t.parquet"
    schema = pa.schema([("user", pa.string()), ("items", pa.string())])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for _ in range(40):
            texts = [random.bytes(250).hex() for _ in range(1_000)]
            writer.write_table(pa.table({"user": texts, "items": texts}, schema))
    before, most, rows = pa.total_allocated_bytes(), 0, 0
    batches = Table(path).batches(["user", "items"], BadLines(path, 0)) if form == "rows" else of_file(path, 500)
    for batch in batches:
        rows += len(batch)
        most = max(most, pa.total_allocated_bytes() - before)
    assert rows == 40_000
    assert most < path.stat().st_size / 4


def test_a_line_that_is_no_text_is_told_without_a_traceback(tmp_path, capfd):
    """Found by tests/fuzz: pyarrow showed a traceback of its own on the terminal."""
    path = tmp_path / "a.csv"
    path.write_bytes(b"user,item\nu1,i1\n\xff\xfe\x80\n")
    with pytest.raises(ValueError, match=r"a\.csv cannot be read: CSV parse error: Row #3"):
        list(Table(path).batches(["user"], BadLines(path, 9), show_progress=False))
    assert capfd.readouterr().err == ""


def test_a_column_of_structs_is_named(tmp_path):
    """Found by tests/fuzz: it was a KeyError, or a sentence without the file's name."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"user": ["u"], "category": [{"a": 1}]}), path)
    with pytest.raises(ValueError, match=r"a\.parquet: column 'category' holds struct<a: int64>, which is no text"):
        list(Table(path).batches(["user", "category"], BadLines(path, 9), False, ["user", "category"]))
