"""Folders of Parquet files in, folders of lists out: over Ray, on this machine and on S3."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

from recbole_leaprec.cli import main
from recbole_leaprec.common.parquet_folder import Folder
from recbole_leaprec.recommend import chunk_workers, recommend
from recbole_leaprec.recommend.file_workers import NODE
from recbole_leaprec.recommend.list_folder import FINISHED, STARTED
from tests.recommend.test_model_file import train
from tests.recommend.test_rerank import NAMES, tables
from tests.test_cluster import free_port, two_nodes, wait_for

BUCKET = "lists"


@pytest.fixture
def checkpoint(toy, tmp_path):
    return train(toy, tmp_path / "run")


def histories(users, first=0):
    """Of users that the model does not know, some with an unknown item and some with nothing."""
    rows = [
        (f"new{u}", [*(f"i{(u * 7 + step) % 40}" for step in range(u % 9)), *(["unheard"] if u % 11 == 0 else [])])
        for u in range(first, first + users)
    ]
    return pd.DataFrame(rows, columns=["user", "items"])


def write_folder(folder, files, users=40):
    """Files of histories, some of them in folders below; returns the folder."""
    for number in range(files):
        path = folder / ("day=1 %41#" if number % 2 else "") / f"part {number:03}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        histories(users, number * users).to_parquet(path, row_group_size=17)
    return folder


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.parquet"))


def local_lists(checkpoint, folder, scratch, **more):
    """The lists of each file, by the local engine."""
    found = {}
    for name in names(folder):
        out = scratch / f"local-{len(found)}.parquet"
        recommend(checkpoint, out, folder / name, show_progress=False, **more)
        found[name] = pd.read_parquet(out)
    return found


def assert_same(folder, expected):
    """Every file of lists has the rows that are expected, bit for bit, and there is no other."""
    assert names(folder) == sorted(expected)
    for name, lists in expected.items():
        pd.testing.assert_frame_equal(pq.ParquetFile(folder / name).read().to_pandas(), lists)


@pytest.mark.ray
@pytest.mark.slow
def test_each_file_of_histories_becomes_a_file_of_lists_and_a_finished_folder_is_left_alone(checkpoint, tmp_path, capfd):
    source, out = write_folder(tmp_path / "in", 4, users=600), tmp_path / "out"
    schema = pa.schema([("user", pa.string()), ("items", pa.list_(pa.string()))])
    pq.write_table(schema.empty_table(), source / "part 999.parquet")
    other = pa.table({"user": ["a"], "items": [["i1"]], "more": [1]}, schema.append(pa.field("more", pa.int64())))
    pq.write_table(
        other, source / "part 888.parquet"
    )  # texts of another kind than pandas writes, and a column that is not read
    (source / "_SUCCESS").touch()
    words = [f"--checkpoint={checkpoint}", f"--histories={source}", f"--out={out}", "--engine=ray", "--workers=2", "--k=5"]
    assert main(["recommend", *words]) == 0
    told = capfd.readouterr()
    assert f"lists: 100%|{'█' * 10}| 2401/2401" in told.err
    assert "2401 lists in" in told.out
    expected = local_lists(checkpoint, source, tmp_path, k=5)
    assert_same(out, expected)
    assert len(expected["part 999.parquet"]) == 0
    assert {path.name for path in out.rglob("*") if path.is_file() and path.suffix != ".parquet"} == {STARTED, FINISHED}
    assert main(["recommend", *words]) == 2
    assert f"{out} holds finished lists already; name another folder" in capfd.readouterr().err
    assert len(pd.read_parquet(out)) == 2401 * 5  # as one table


@pytest.mark.ray
@pytest.mark.slow
def test_what_is_done_stays_done_and_what_is_counted_is_of_all(checkpoint, tmp_path):
    source, out = write_folder(tmp_path / "in", 6), tmp_path / "out"
    settings = {"histories": source, "out": out, "engine": "ray", "workers": 2, "show_progress": False}
    bad = source / "part 004.parquet"
    good = bad.read_bytes()
    frame = pd.read_parquet(bad)
    frame.assign(user=[None, *frame["user"][1:]]).to_parquet(bad)
    with pytest.raises(ValueError, match=r"^histories file part 004\.parquet has a row without a user$"):
        recommend(checkpoint, **settings)
    assert not (out / FINISHED).exists()
    assert "part 004.parquet" not in names(out)
    with pytest.raises(ValueError, match=r"were begun with another rerank_lambda: 0\.3, and now 0\.5"):
        recommend(checkpoint, **settings, config_dict={"rerank_lambda": 0.5})
    with pytest.raises(ValueError, match="were begun with another k: 10, and now 4"):
        recommend(checkpoint, **settings, k=4)
    bad.write_bytes(good)
    with pytest.raises(ValueError, match="were begun with another files of histories"):
        recommend(checkpoint, **settings)
    whole = recommend(checkpoint, **{**settings, "out": tmp_path / "whole"})
    expected = local_lists(checkpoint, source, tmp_path)
    assert_same(tmp_path / "whole", expected)
    # As an interruption leaves it: no end, some files missing, and half of one under a name of its own.
    (tmp_path / "whole" / FINISHED).unlink()
    for name in names(tmp_path / "whole")[3:]:
        (tmp_path / "whole" / name).unlink()
    left = tmp_path / "whole" / ".part 005.parquet.0.part"
    left.write_bytes(b"PAR1")
    kept = tmp_path / "whole" / names(tmp_path / "whole")[0]
    before = kept.stat().st_mtime_ns
    again = recommend(checkpoint, **{**settings, "out": tmp_path / "whole"}, config_dict={"state": "WARNING"})
    assert kept.stat().st_mtime_ns == before
    assert not left.exists()
    assert_same(tmp_path / "whole", expected)
    assert {**again, "seconds": 0} == {**whole, "seconds": 0}
    first = pd.concat(lists[lists["rank"] == 1] for lists in expected.values())
    assert whole["users"] == len(first) == 240
    assert whole["unknown_items"] == len([u for u in range(240) if u % 11 == 0])
    assert whole["empty_histories"] == len([u for u in range(240) if u % 9 == 0]) == first["skl"].isna().sum()
    assert whole["skl"] == pytest.approx(first["skl"].mean())


def nodes_of(folder):
    """Where the lists that are there were made."""
    made = Folder.at(folder, "out")
    return {json.loads(one.schema.metadata[b"leaprec"])[NODE] for one in made.footers(made.files()).values()}


def kill_when_both_work(folder, node, done):
    """End the node when lists of both are there, and not all."""
    while not done.wait(0.05):
        if len(nodes_of(folder)) == 2:
            node.kill()
            return


@pytest.mark.ray
@pytest.mark.slow
def test_both_nodes_work_on_a_folder_and_no_list_is_lost_or_there_twice_when_one_dies(checkpoint, tmp_path, monkeypatch):
    monkeypatch.setattr(chunk_workers, "BATCH", 5)  # long enough for both nodes to come to work
    source, out, done = write_folder(tmp_path / "in", 80, users=400), tmp_path / "out", threading.Event()
    with two_nodes(tmp_path / "ray") as (address, second):
        killer = threading.Thread(target=kill_when_both_work, args=(out, second, done))
        killer.start()
        result = recommend(checkpoint, out, source, engine="ray", workers=2, ray_address=address, show_progress=False)
        done.set()
        killer.join()
        assert not second.alive()
    assert len(nodes_of(out)) == 2
    assert result["users"] == 32_000
    users = pd.concat(pd.read_parquet(out / name, columns=["user", "rank"]) for name in names(out))
    assert sorted(users.loc[users["rank"] == 1, "user"]) == sorted(f"new{u}" for u in range(32_000))
    assert_same(out, local_lists(checkpoint, source, tmp_path))
    assert not [path for path in out.rglob(".*") if path.is_file()]


def test_folders_that_cannot_be_worked_on_are_refused_in_one_sentence_and_nothing_is_written(
    checkpoint, tmp_path, monkeypatch, capsys
):
    source = write_folder(tmp_path / "in", 2)
    for name in ("empty", "odd", "mixed", "zero", "rows", "wrong", "full"):
        (tmp_path / name).mkdir()
    (tmp_path / "odd" / "notes.csv").write_text("user,items\n")
    (tmp_path / "zero" / "a.parquet").touch()
    frame = histories(3)
    frame.to_parquet(tmp_path / "mixed" / "a.parquet")
    frame.assign(items=frame["items"].str.join(" ")).to_parquet(tmp_path / "mixed" / "b.parquet")
    frame.rename(columns={"user": "person"}).to_parquet(tmp_path / "wrong" / "a.parquet")
    pq.write_table(pa.table({"user": ["a"], "items": [["i1"]]}).slice(1), tmp_path / "rows" / "a.parquet")
    (tmp_path / "full" / "mine.txt").write_text("mine")
    (tmp_path / "one.csv").write_text("user,items\na,i1\n")
    refused = [
        ("nowhere", "out", "histories file nowhere does not exist"),
        ("empty", "out", "empty holds no .parquet file (--histories)"),
        ("odd", "out", "odd holds notes.csv, which is no .parquet file (--histories): take it away"),
        ("zero", "out", "zero: a.parquet cannot be read as Parquet"),
        ("rows", "out", "the files of rows have no rows (--histories)"),
        ("wrong", "out", "histories file wrong/a.parquet has no column user; it has person, items"),
        (
            "mixed",
            "out",
            "mixed: a.parquet and b.parquet differ in the column 'items', which is a list of string in the one and string in the other",
        ),
        ("in", "full", "full is not empty: it holds mine.txt; name another folder (--out)"),
        ("in", "in", "in is not empty: it holds"),
        ("in", "lists.parquet", "--out: out of a folder of files a folder of them is made, got the file 'lists.parquet'"),
        ("one.csv", "full", "full is a folder (--out): lists are written to one out of folders (--histories)"),
        ("nofs://bucket/in", "out", "nofs://bucket/in is no folder that pyarrow can reach (--histories)"),
    ]
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.chdir(tmp_path)
    for where, out, message in refused:
        words = [
            f"--checkpoint={checkpoint}",
            f"--histories={where}",
            f"--out={out}",
            "--engine=ray",
            "--show_progress=False",
        ]
        assert main(["recommend", *words]) == 2
        told = capsys.readouterr().err
        assert f"leaprec: error: {message}" in told
        assert len(told.strip().splitlines()) == 1
    assert main(["recommend", f"--checkpoint={checkpoint}", "--histories=in", "--out=out"]) == 2
    assert "in is a folder (--histories), which --engine=ray reads; got the engine local" in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before
    assert source.exists()


def write_parts(folder, frame, files):
    """A file per so many users, the same users in the file of the same name whatever the frame."""
    for number in range(files):
        own = frame[frame["user"].str.split().str[1].astype(int) % files == number]
        path = folder / f"part-{number:03}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        own.to_parquet(path)
    return folder


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["histories", "preferences"])
def test_candidates_in_folders_give_the_lists_of_one_file(tmp_path, kind, capsys):
    candidates, items, past = tables(users=90)
    candidates = pd.concat(
        [candidates, pd.DataFrame([("u 7", "unheard", 9.0), ("u 8", "item 1", None)], columns=candidates.columns)]
    )
    shares = pd.DataFrame(
        [(f"u {u}", name, u % 3 + n) for u in range(90) for n, name in enumerate(NAMES)],
        columns=["user", "category", "share"],
    )
    likes = {"histories": past, "preferences": shares}[kind]
    items.to_parquet(tmp_path / "items.parquet")
    for name, frame in (("candidates", candidates), (kind, likes)):
        frame.to_parquet(tmp_path / f"{name}.parquet")
        write_parts(tmp_path / name, frame, 5)
    files = [f"--{name}={tmp_path / name}" for name in ("candidates", kind)]
    settings = ["--k=5", "--rerank_lambda=0.6", f"--items={tmp_path / 'items.parquet'}"]
    assert main(["rerank", *(f"{word}.parquet" for word in files), *settings, f"--out={tmp_path / 'lists.parquet'}"]) == 0
    out = tmp_path / "lists"
    assert main(["rerank", *files, *settings, f"--out={out}", "--engine=ray", "--workers=2"]) == 0
    expected = pd.read_parquet(tmp_path / "lists.parquet")
    mean = expected.loc[expected["rank"] == 1, "skl"].mean()
    assert capsys.readouterr().out.count(f"mean S_KL {mean:.4f}: ") == 2
    lists = pd.concat([pq.ParquetFile(out / name).read().to_pandas() for name in names(out)])
    assert lists.loc[lists["rank"] == 1, "user"].nunique() == 90
    by = ["user", "rank"]
    pd.testing.assert_frame_equal(lists.sort_values(by, ignore_index=True), expected.sort_values(by, ignore_index=True))
    for name in names(out):
        assert {*pd.read_parquet(out / name)["user"]} == {*pd.read_parquet(tmp_path / "candidates" / name)["user"]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "histories" / "part-001.parquet").unlink(), "holds part-001.parquet, and histories does not: a user's candidates and histories must be in files of the same name"),
        (lambda folder: tables()[2].drop(columns="items").to_parquet(folder / "histories" / "part-000.parquet"), "histories/part-000.parquet has no column 'item' (--histories)"),
        (lambda folder: tables()[2].to_parquet(folder / "candidates" / "part-000.parquet"), "candidates/part-000.parquet has no column 'item' (--candidates)"),
    ],
)  # fmt: skip
def test_folders_of_candidates_that_do_not_fit_are_refused(tmp_path, monkeypatch, capsys, change, message):
    monkeypatch.chdir(tmp_path)
    candidates, items, past = tables(users=12)
    items.to_parquet("items.parquet")
    for name, frame in (("candidates", candidates), ("histories", past)):
        write_parts(tmp_path / name, frame, 2)
    words = [
        "rerank",
        "--candidates=candidates",
        "--histories=histories",
        "--items=items.parquet",
        "--out=out",
        "--engine=ray",
    ]
    assert main([*words, "--target_skl=0.1"]) == 2
    assert "target_skl: one file of candidates is enough to find the lambda" in capsys.readouterr().err
    assert main([*words[:2], "--histories=items.parquet", *words[3:]]) == 2
    assert (
        "items.parquet is no folder (--histories), and --candidates is one: all must be, or none" in capsys.readouterr().err
    )
    change(tmp_path)
    assert main(words) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.fixture
def s3(tmp_path, monkeypatch):
    """An S3 server of our own with a bucket, which the environment names; a folder there."""
    port = free_port()
    with (tmp_path / "s3.log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "moto.server", "-p", str(port)],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any",
            "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
        }.items():  # fmt: skip
            monkeypatch.setenv(name, value)
        try:
            wait_for(lambda: "Running on" in (tmp_path / "s3.log").read_text(), "the S3 server")
            pa.fs.FileSystem.from_uri(f"s3://{BUCKET}?allow_bucket_creation=true")[0].create_dir(BUCKET)
            yield f"s3://{BUCKET}"
        finally:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


@pytest.mark.ray
@pytest.mark.slow
def test_folders_on_s3_and_no_list_is_lost_or_there_twice_when_a_node_dies(checkpoint, tmp_path, monkeypatch, s3):
    monkeypatch.setattr(chunk_workers, "BATCH", 5)  # long enough for both nodes to come to work
    local, done = write_folder(tmp_path / "in", 80, users=400), threading.Event()
    pa.fs.copy_files(str(local), f"{s3}/in")
    out = f"{s3}/some/where/out"
    with two_nodes(tmp_path / "ray") as (address, second):
        killer = threading.Thread(target=kill_when_both_work, args=(out, second, done))
        killer.start()
        words = [
            f"--checkpoint={checkpoint}",
            f"--histories={s3}/in/",
            f"--out={out}",
            "--engine=ray",
            f"--ray_address={address}",
        ]
        assert main(["recommend", *words, "--workers=2"]) == 0
        done.set()
        killer.join()
        assert not second.alive()
    assert len(nodes_of(out)) == 2
    Path(tmp_path / "back").mkdir()
    pa.fs.copy_files(out, str(tmp_path / "back"))
    assert_same(tmp_path / "back", local_lists(checkpoint, local, tmp_path))
    assert {path.name for path in (tmp_path / "back").iterdir() if path.is_file() and path.suffix != ".parquet"} == {
        STARTED,
        FINISHED,
    }
    assert main(["recommend", *words]) == 2
