"""Commands that are killed at random moments: what they leave can be read, and the same command, or the one that is named, ends as if nothing had been."""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import pytest
import yaml

from recbole_leaprec.training_state import STATE
from tests.fuzz.cases import Bench, Broken, fuzz
from tests.fuzz.conftest import DATA, RERANK
from tests.fuzz.forks import Forks
from tests.toy import SMALL
from tests.toy_study import spec_file

pytestmark = pytest.mark.slow
MOST_KILLS = 4
"""Of one case; then it may end."""


@dataclass
class Job:
    """A command, what it makes, and how long that takes.

    Attributes:
        out: the folder or the file that it makes.
        same: files that are the same to the last digit however often it was killed, but for times.
    """

    words: list[str]
    out: str
    same: tuple[str, ...] = ()
    seconds: float = 0.0
    files: set[str] = field(default_factory=set)

    def learn(self, forks: Forks, folder: Path) -> None:
        """Run it once without a kill."""
        folder.mkdir()
        outcome = forks.run(self.words, folder)
        assert outcome.code == 0, outcome.err
        self.seconds, self.files = outcome.seconds, below(folder)


def below(folder: Path) -> set[str]:
    """Files by name, without those of TensorBoard, which begins a new one with every start."""
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith("events.out.tfevents")
    }


def content(path: Path) -> object:
    """What a file says, but for how long something took."""
    if path.suffix != ".csv":
        return path.read_bytes()
    return pd.read_csv(path, keep_default_na=False).drop(columns=["seconds"], errors="ignore").to_dict("records")


def figures(path: Path) -> object:
    """What a run's result.json says of its metrics."""
    result = json.loads(path.read_text())
    metrics = {"valid", "test"}
    reranked = [{name: one[name] for name in metrics & one.keys()} for one in result["rerank"]]
    return result["backbone"], reranked, result["epochs"], result["best_epoch"]


def check_readable(folder: Path) -> None:
    """Broken if a file that does not say of itself that it is unfinished is damaged."""
    for path in folder.rglob("*"):
        try:
            if path.suffix in (".npz", ".pth"):
                with zipfile.ZipFile(path) as archive:
                    assert archive.testzip() is None
            elif path.suffix == ".json":
                json.loads(path.read_text())
            elif path.suffix == ".yaml":
                assert yaml.safe_load(path.read_text()) is not None
            elif path.suffix == ".csv":
                assert len(pd.read_csv(path))
            elif path.suffix in (".html", ".svg"):
                assert path.read_text().rstrip().endswith(("</html>", "</svg>"))
        except Exception as error:
            raise Broken(f"{path.name} cannot be read after a kill: {error!r}") from error


def go_on(job: Job, bench: Bench, seconds: float) -> int:
    """Run the command, or what its refusal names, for so many seconds; returns the exit code."""
    words, kept = job.words, (bench.folder / job.out / STATE).exists()
    for _ in range(3):
        outcome = bench.forks.run(words, bench.folder, seconds)
        bench.count(outcome.code == 0, outcome.cpu, killed=outcome.code == -signal.SIGKILL)
        if outcome.code != 2:
            break
        if named := re.search(r"go on with leaprec (--resume=\S+)", outcome.err):
            words = [named[1], "--show_progress=False"]
        elif "remove it and start again" in outcome.err and not kept:
            shutil.rmtree(bench.folder / job.out)
        elif below(bench.folder) == job.files and "already" in outcome.err:
            return 0  # the kill came after the last file
        else:
            raise Broken(f"does not go on after a kill: {outcome.err[-300:]}")
    if "Traceback (most recent" in outcome.err or outcome.code not in (0, -signal.SIGKILL):
        raise Broken(f"exit code {outcome.code} after a kill: {outcome.err[-300:]}")
    return outcome.code


def check_same(job: Job, folder: Path, whole: Path) -> None:
    if below(folder) != job.files:
        raise Broken(f"leaves {sorted(below(folder) ^ job.files)[:3]} more or less than without a kill")
    for name in job.same:
        if content(folder / name) != content(whole / name):
            raise Broken(f"{name} is another than without a kill")
    for name in job.files:
        if Path(name).name == "result.json" and figures(folder / name) != figures(whole / name):
            raise Broken(f"{name} has other metrics than without a kill")


@pytest.fixture(scope="module")
def jobs(shop, forks, tmp_path_factory) -> dict[str, tuple[Job, Path]]:
    """Each command, with the folder of a run that nobody killed."""
    place = tmp_path_factory.mktemp("whole")
    data = [word for word in DATA if not word.startswith(("--epochs=", "--data_path="))] + [f"--data_path={shop}/data"]
    keys = {**SMALL, "epochs": 6, "topk": 5, "valid_metric": "NDCG@5"}
    settings = {**keys, "dataset": "toy", "data_path": str(shop / "data")}
    spec = spec_file(place, shop / "data", settings=settings, seeds=[1])
    model = f"--checkpoint={shop}/run/model.pth"
    rerank = [word.replace("=", f"={shop}/", 1) if re.search(r"=\w+\.", word) else word for word in RERANK]
    made = {
        "train": Job([*data, "--epochs=25", "--stopping_step=25", "--output_dir=out"], "out"),
        "tradeoff": Job(
            ["tradeoff", model, f"--data_path={shop}/data", "--lambdas=0,0.5", "--samples=20", "--output_dir=out"], "out", ("out/tradeoff.csv",)
        ),
        "study": Job(["study", f"--spec={spec}", "--output_dir=out"], "out", ("out/tradeoff.csv", "out/comparison.csv")),
        "report": Job(["report", f"{shop}/tradeoff", "--out=out/report.html"], "out", ("out/tradeoff.csv",)),
        "recommend": Job(["recommend", model, f"--data_path={shop}/data", "--out=lists.csv"], "lists.csv", ("lists.csv",)),
        "rerank": Job([*rerank, "--out=lists.csv"], "lists.csv", ("lists.csv",)),
        "data csv": Job(
            ["data", "csv", f"--interactions={shop}/data/toy/toy.inter", f"--items={shop}/data/toy/toy.item",
             "--categories=genre", "--out=out/toy"], "out", ("out/toy/toy.inter", "out/toy/toy.item"),
        ),
    }  # fmt: skip
    for name, job in made.items():
        job.learn(forks, place / name)
    return {name: (job, place / name) for name, job in made.items()}


def test_commands_that_are_killed_go_on(jobs, forks, tmp_path):
    def case(draw: random.Random, bench: Bench) -> None:
        job, whole = jobs[draw.choice([*jobs, "train", "study"])]
        for _ in range(draw.randint(1, MOST_KILLS)):
            code = go_on(job, bench, draw.uniform(0, 1.05 * job.seconds))
            if code == 0:
                break
            check_readable(bench.folder)
        else:
            if go_on(job, bench, 240) != 0:
                raise Broken("takes more than four minutes after a kill")
        check_same(job, bench.folder, whole)

    fuzz("kills", 0.1, forks, tmp_path, case)
