"""The records that trials write, and the files that a search writes at its end: the table, the picture, the winner."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pandas as pd

from recbole_leaprec.common.files import write_csv, write_json, write_yaml, written_whole
from recbole_leaprec.common.reading import read_json, read_settings, reading
from recbole_leaprec.settings.keys import MACHINE_KEYS
from recbole_leaprec.tune.objective import OUT_OF_BOUND
from recbole_leaprec.tune.plot import parallel_coordinates
from recbole_leaprec.tune.settings import SearchSettings


def standing(record: dict[str, Any]) -> tuple[float, float]:
    """The sort key of trials: the score; of equal scores, the trial that started first is better."""
    return record["score"], -record["started"]


def read_trials(folder: Path) -> list[dict[str, Any]]:
    """The records of all trials, oldest first."""
    paths = sorted(folder.glob("trials/*/trial.json"))
    return sorted((_read(path) for path in paths), key=lambda record: record["started"])


def _read(path: Path) -> dict[str, Any]:
    """The record of a trial; ValueError if the file is not one that a trial writes."""
    what = "the record of a trial"
    with reading(path, what):
        record = read_json(path, what)
        if not isinstance(record["started"], int | float) or not all(
            isinstance(record[key], str) for key in ("trial", "status")
        ):
            raise ValueError("it does not say which trial it is of, and when that began")
        return record


def close_trial(folder: Path, trial_id: str, epochs: int) -> dict[str, Any] | None:
    """The record of a trial that has ended; None if its worker could not even start.

    A trial that is stopped from outside cannot write its last status, so it is written here.
    """
    path = folder / "trials" / trial_id / "trial.json"
    if not path.is_file():
        return None
    record = _read(path)
    if record["status"] == "running":
        record["status"] = "finished" if record["epochs"] >= epochs else "stopped early"
        write_json(path, record)
    return record


def keep_better(folder: Path, record: dict[str, Any], best: dict[str, Any] | None) -> dict[str, Any] | None:
    """The better of a finished trial and the best so far. The checkpoint of the other one is deleted."""
    wins = (
        record.get("score") is not None and record["status"] != "failed" and (not best or standing(record) > standing(best))
    )
    loser = best if wins else record
    if loser:
        (folder / "trials" / loser["trial"] / "model.pth").unlink(missing_ok=True)
    return record if wins else best


def sample_of(record: dict[str, Any], settings: SearchSettings) -> dict[str, Any]:
    """The hyperparameter values that were drawn for a trial."""
    return {key: record[f"config/{key}"] for key in settings.space}


def collect(folder: Path, settings: SearchSettings) -> pd.DataFrame:
    """All trials as a table, best first. It is also written to trials.csv and trials.html."""
    records = read_trials(folder)
    for record in records:
        if record["status"] == "running":
            record["status"] = "interrupted"
    scored = [record for record in records if record.get("score") is not None]
    rest = [record for record in records if record.get("score") is None]
    table = pd.DataFrame([*sorted(scored, key=standing, reverse=True), *rest])
    if table.empty:
        return table
    write_csv(folder / "trials.csv", table)
    with written_whole(folder / "trials.html") as scratch:
        scratch.write_text(parallel_coordinates(table, list(settings.space), settings.objective), encoding="utf-8")
    return table


def settle(folder: Path, finished: pd.DataFrame, settings: SearchSettings) -> dict[str, Any]:
    """Copy the winner's checkpoint to `best/` and its settings to best.yaml; returns the `best` of `search.json`."""
    winner = _read(folder / "trials" / finished.iloc[0]["trial"] / "trial.json")
    source = folder / "trials" / winner["trial"]
    config = read_settings(source / "config.yaml", "config file")
    if winner.get("lambda") is not None:
        config |= {"rerank_lambda": winner["lambda"], "target_skl": None}
    config.pop("gpu_id")  # Ray gave this GPU to the trial; show_progress was off there, too
    config |= {key: settings.config[key] for key in ("show_progress", *MACHINE_KEYS) if key in settings.config}
    (folder / "best").mkdir(exist_ok=True)
    with written_whole(folder / "best" / "model.pth") as scratch:
        shutil.copyfile(source / "model.pth", scratch)
    write_yaml(folder / "best.yaml", config)
    return {
        "trial": winner["trial"],
        "objective": settings.objective,
        "score": winner["score"],
        "within_bound": winner["score"] > OUT_OF_BOUND,
        "lambda": winner.get("lambda"),
        "sample": sample_of(winner, settings),
        "valid": {name.removeprefix("valid/"): value for name, value in winner.items() if name.startswith("valid/")},
    }
