"""A process to fork from, a trained model to damage, and what was run."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.fuzz.cases import FUZZED, TALLIES
from tests.fuzz.forks import Forks
from tests.toy import GENRES, SMALL, write_dataset

DATA = [f"--{key}={value}" for key, value in {**SMALL, "topk": 5, "valid_metric": "NDCG@5", "epochs": 1}.items()]
DATA += ["--dataset=toy", "--data_path=data"]
"""Words for a small model on the data of the shop."""
RERANK = ["rerank", "--candidates=lists.parquet", "--items=items.csv", "--histories=histories.csv", "--k=3"]


@pytest.fixture(scope="session")
def shop(tmp_path_factory) -> Path:
    """`data`, a small dataset; when there are forks also `run`, a model of it, its `lists.parquet`, and `tradeoff`."""
    folder = tmp_path_factory.mktemp("shop")
    draw = random.Random(11)
    inter = [
        (f"u{user}", f"i{item}", 1_000_000_000 + draw.randrange(20))
        for user in range(12)
        for item in draw.sample(range(20), draw.choice([3, 4, 8, 15]))
    ]
    write_dataset(folder / "data", inter, {f"i{i}": " ".join(draw.sample(GENRES, 1 + i % 3)) for i in range(20)})
    return folder


@pytest.fixture(scope="session")
def forks(shop, tmp_path_factory):
    started = Forks(tmp_path_factory.mktemp("outputs"))
    started.load([*DATA, "--output_dir=run"], shop)
    started.load(["recommend", "--checkpoint=run/model.pth", "--out=lists.parquet"], shop)
    started.load(
        ["tradeoff", "--checkpoint=run/model.pth", "--lambdas=0,0.5", "--samples=20", "--output_dir=tradeoff"], shop
    )
    started.load(["report", "tradeoff", "--out=page/report.html"], shop)
    started.load(["users", "--checkpoint=run/model.pth", "--output_dir=users"], shop)
    started.load(["data", "describe", *DATA, "--output_dir=described"], shop)
    started.load(["shift", *DATA, "--longest=5", "--window=2", "--step=1", "--output_dir=shift"], shop)
    write_tables(shop)
    started.load([*RERANK, "--out=reranked.csv"], shop)
    yield started
    started.close()


def write_tables(folder: Path) -> None:
    """What `RERANK` reads beside the lists of the shop."""
    (folder / "items.csv").write_text(
        "item,categories\n" + "".join(f"i{n},{('Action', 'Drama')[n % 2]}\n" for n in range(20))
    )
    (folder / "histories.csv").write_text("user,items\n" + "".join(f"u{n},i{n} i{n + 3}\n" for n in range(12)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """What was run goes with the test's report: `tests/conftest.py` tells it at the end."""
    report = yield
    if call.when == "call":
        report.user_properties += [(FUZZED, f"{kind}: {tally.told()}") for kind, tally in TALLIES.items()]
        TALLIES.clear()
    return report
