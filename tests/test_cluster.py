"""Two real Ray nodes on loopback: both work, and one may die."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pandas as pd
import pytest

from recbole_leaprec.cluster import connected
from recbole_leaprec.convert.bad_lines import BadLines
from recbole_leaprec.convert.tables import Table
from recbole_leaprec.quick_start import run_leaprec
from recbole_leaprec.recommend import Recommender, chunk_workers
from recbole_leaprec.recommend.catalogue import Catalogue, ItemIds
from recbole_leaprec.recommend.deal import deal
from recbole_leaprec.recommend.file_workers import NODE
from recbole_leaprec.recommend.parts import CANDIDATES, TASTES, Parts
from recbole_leaprec.recommend.read_rows import candidate_rows, history_rows
from recbole_leaprec.recommend.rerank_part import Counts, Wanted
from recbole_leaprec.tune import tune
from tests.recommend.test_rerank import tables
from tests.toy import SMALL

pytestmark = pytest.mark.ray

RAY = Path(sys.executable).with_name("ray")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Node:
    """A `ray start` process with what it starts."""

    def __init__(self, folder: Path, *arguments: str, home: Path | None = None):
        """`home` may hold a token, which Ray then asks for."""
        folder.mkdir(parents=True)
        command = [str(RAY), "start", "--block", "--num-cpus=1", "--disable-usage-stats", *arguments]
        own = {"RAY_AUTH_MODE": "disabled"} if home is None else {"HOME": str(home)}
        self.log = (folder / "ray.log").open("w")
        self.process = subprocess.Popen(
            command, stdout=self.log, stderr=subprocess.STDOUT, start_new_session=True, env={**without_ray(), **own}
        )

    def alive(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        """All at once, as when a machine loses power."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.log.close()


def without_ray() -> dict[str, str]:
    """The environment without what Ray has put there or would read."""
    return {key: value for key, value in os.environ.items() if not key.startswith("RAY_")} | {"OMP_NUM_THREADS": "1"}


@contextmanager
def one_node(folder: Path, home: Path | None = None):
    port = free_port()
    ray_folder = f"/tmp/ray-{port}"  # Ray's socket names must be short
    head = Node(folder / "head", "--head", "--node-ip-address=127.0.0.1", f"--port={port}", "--include-dashboard=false",
                f"--temp-dir={ray_folder}", f"--ray-client-server-port={free_port()}", "--resources={\"first\": 1}", home=home)  # fmt: skip
    try:
        wait_for(lambda: answers(port), "the head node")
        yield f"127.0.0.1:{port}"
    finally:
        head.kill()
        subprocess.run(["rm", "-rf", ray_folder], check=True)


@contextmanager
def two_nodes(folder: Path):
    with one_node(folder) as address:
        # Another address of the same machine, so that a driver attaches to the head.
        second = Node(folder / "second", f"--address={address}", "--node-ip-address=127.0.0.2", '--resources={"second": 1}')
        try:
            wait_for_nodes(address, 2)
            yield address, second
        finally:
            second.kill()


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for(condition, what: str, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited for {what}"
        time.sleep(0.2)


def wait_for_nodes(address: str, count: int) -> None:
    script = (
        "import ray, sys, time\n"
        f"ray.init({address!r}, logging_level='ERROR', log_to_driver=False)\n"
        "for _ in range(900):\n"
        f"    if sum(node['Alive'] for node in ray.nodes()) == {count}: sys.exit(0)\n"
        "    time.sleep(0.2)\n"
        "sys.exit(1)\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True, timeout=240)


@contextmanager
def first_node_busy(address: str, folder: Path):
    """Take the CPU of the first node until there is something in the folder."""
    script = (
        "import pathlib, ray, time\n"
        f"ray.init({address!r}, logging_level='ERROR', log_to_driver=False)\n"
        "@ray.remote(num_cpus=1, resources={'first': 1})\n"
        "def hold():\n"
        f"    while not list(pathlib.Path({str(folder)!r}).glob('*/trial.json')): time.sleep(0.2)\n"
        "held = hold.remote()\n"
        "while ray.available_resources().get('first'): time.sleep(0.1)\n"
        "print('busy', flush=True)\n"
        "ray.get(held)\n"
    )
    with subprocess.Popen([sys.executable, "-W", "ignore", "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "busy\n"
        try:
            yield
        finally:
            process.kill()


@pytest.fixture
def trained(toy, tmp_path):
    settings = {**SMALL, "topk": [10], "data_path": str(toy), "output_dir": str(tmp_path / "run"), "epochs": 2}
    run_leaprec("SASRecCD", "toy", config_dict=settings)
    return tmp_path / "run" / "model.pth"


def test_both_nodes_run_trials(toy, tmp_path):
    (tmp_path / "space.yaml").write_text("gamma: {uniform: [0.0, 0.5]}\n")
    # The first node is kept busy until a trial has begun, on the second then; the rest is for both. Trials are long enough for
    # Ray to see that the first is free again.
    with two_nodes(tmp_path / "ray") as (address, _), first_node_busy(address, tmp_path / "out" / "trials"):
        config = {
            **SMALL,
            "model": "SASRecCD",
            "dataset": "toy",
            "data_path": str(toy),
            "epochs": 400,
            "stopping_step": 1000,
        }
        tune(tmp_path / "space.yaml", tmp_path / "out", config_dict=config, trials=4, early_stopping=False, search="random",
             ray_address=address, show_progress=False)  # fmt: skip
    trials = pd.read_csv(tmp_path / "out" / "trials.csv")
    assert (trials["status"] == "finished").all()
    assert trials["node"].nunique() == 2


def test_both_nodes_make_lists_and_none_is_lost_with_a_node(trained, tmp_path, monkeypatch):
    items = [f"i{n}" for n in range(40)]
    histories = pd.DataFrame(
        [(f"new{u}", [items[(u * 7 + step) % 40] for step in range(1 + u % 9)]) for u in range(20_000)],
        columns=["user", "items"],
    )
    monkeypatch.setattr(chunk_workers, "BATCH", 20)
    monkeypatch.setattr(chunk_workers, "CHUNK", 2)
    batches = [histories.iloc[start : start + 20] for start in range(0, len(histories), 20)]
    arguments = {"checkpoint": str(trained), "changes": {}, "k": 10}
    made: dict[str, int] = {}
    parts = []
    with two_nodes(tmp_path / "ray") as (address, second), connected(address):
        for rows in chunk_workers.ray_data(batches, arguments, workers=2, out=tmp_path / "lists.parquet"):
            parts.append(rows)
            for node, count in rows[NODE].value_counts().items():
                made[node] = made.get(node, 0) + count
            if len(made) == 2 and second.alive():
                second.kill()
    assert len(made) == 2
    assert not second.alive()
    lists = pd.concat(parts, ignore_index=True).drop(columns=NODE)
    expected = pd.concat(map(Recommender(**arguments), batches), ignore_index=True)
    pd.testing.assert_frame_equal(lists, expected)


def test_both_nodes_rerank_candidates_and_no_list_is_lost_with_a_node(tmp_path):
    candidates, items, histories = tables(users=3_000)
    ids, counts = ItemIds(Catalogue.of(items)), Counts()
    for name, frame in (("candidates", candidates), ("histories", histories)):
        frame.to_parquet(tmp_path / f"{name}.parquet")
    (tmp_path / "parts").mkdir()
    own, past = (Table(tmp_path / f"{name}.parquet") for name in ("candidates", "histories"))
    deal(candidate_rows(own, ids, BadLines(own.path, 0), False), tmp_path / "parts", CANDIDATES, 400)
    deal(history_rows(past, ids, counts, BadLines(past.path, 0), False), tmp_path / "parts", TASTES, 400)
    wanted, made, parts = Wanted(k=5), set(), []
    with two_nodes(tmp_path / "ray") as (address, second), connected(address):
        for rows in Parts(tmp_path / "parts", 400, ids.catalogue(), workers=2, ray=True).lists(wanted, counts):
            parts.append(rows)
            made |= {*rows[NODE]}
            if len(made) == 2 and second.alive():
                second.kill()
    assert len(made) == 2
    assert not second.alive()
    assert counts.users == 3_000
    expected = Parts(tmp_path / "parts", 400, ids.catalogue()).lists(wanted, Counts())
    pd.testing.assert_frame_equal(
        pd.concat(parts, ignore_index=True).drop(columns=NODE), pd.concat(expected, ignore_index=True)
    )


def test_a_cluster_with_one_cpu_makes_lists(trained, tmp_path):
    histories = pd.DataFrame({"user": ["a", "b"], "items": [["i1", "i2"], ["i3"]]})
    arguments = {"checkpoint": str(trained), "changes": {}, "k": 10}
    with one_node(tmp_path / "ray") as address, connected(address):
        lists = pd.concat(chunk_workers.ray_data([histories], arguments, workers=None, out=tmp_path / "lists.parquet"))
    pd.testing.assert_frame_equal(lists.drop(columns=NODE), Recommender(**arguments)(histories))


def test_a_cluster_that_asks_for_a_token_is_joined_with_it_and_says_so_without(trained, tmp_path):
    """A local Ray leaves a token in the user's home, and `ray start` asks for it from then on."""
    home = tmp_path / "home"
    (home / ".ray").mkdir(parents=True)
    (home / ".ray" / "auth_token").write_text("b" * 64)
    command = [sys.executable, "-m", "recbole_leaprec", "recommend", f"--checkpoint={trained}", "--engine=ray"]
    done = {}
    with one_node(tmp_path / "ray", home) as address:
        for name, mode in {"with": {"RAY_AUTH_MODE": "token"}, "without": {}}.items():
            words = [*command, f"--out={tmp_path / name}.csv", f"--ray_address={address}"]
            environment = {**without_ray(), "HOME": str(home), **mode}
            done[name] = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300)
    assert done["with"].returncode == 0, done["with"].stderr
    assert len(pd.read_csv(tmp_path / "with.csv")) > 0
    assert done["without"].returncode == 2
    assert "if the cluster asks for a token, set RAY_AUTH_MODE=token" in done["without"].stderr
    assert not (tmp_path / "without.csv").exists()
