"""What a search shows while it runs: a line for each trial that ends, and a bar."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ray.tune import Callback
from tqdm import tqdm

from recbole_leaprec.run_folder import write_json
from recbole_leaprec.tune.objective import OUT_OF_BOUND
from recbole_leaprec.tune.trial import standing


class LiveTable(Callback):
    """A table that grows by a line with each trial, above a progress bar; keeps the best checkpoint alone on disk."""

    def __init__(self, settings: dict[str, Any], folder: Path, done: list[dict[str, Any]], show: bool):
        self._folder, self._total, self._show = folder, settings["trials"], show
        self._epochs, self._keys = settings["config"]["epochs"], list(settings["space"])
        self._ended = {record["trial"] for record in done}
        scored = [record for record in done if record.get("score") is not None and record["status"] != "failed"]
        self._best = max(scored, key=standing, default=None)
        self._bar: tqdm | None = None

    def __enter__(self) -> LiveTable:
        self._bar = tqdm(total=self._total, initial=len(self._ended), desc="trials", unit="trial", disable=not self._show)
        self._write(f"{'trial':<16}{'status':<15}{'epochs':>6}  {'score':>9}  " + "  ".join(self._keys))
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_bar": None}  # Ray saves its callbacks with the experiment

    def unfinished(self) -> bool:
        """Whether trials are left to run."""
        return len(self._ended) < self._total

    def on_trial_complete(self, iteration, trials, trial, **info):
        self._end(trial.trial_id)

    def on_trial_error(self, iteration, trials, trial, **info):
        self._end(trial.trial_id)

    def _end(self, trial_id: str) -> None:
        self._ended.add(trial_id)
        path = self._folder / "trials" / trial_id / "trial.json"
        if not path.is_file():  # the worker could not even start
            return
        record = json.loads(path.read_text(encoding="utf-8"))
        if record["status"] == "running":  # a trial that is stopped from outside has no last word
            record["status"] = "finished" if record["epochs"] >= self._epochs else "stopped early"
            write_json(path, record)
        score = record.get("score")
        self._write(
            f"{trial_id:<16}{record['status']:<15}{record['epochs']:>6}  {_shown(score):>9}  "
            + "  ".join(f"{record[f'config/{key}']!s:<{len(key)}.8}" for key in self._keys)
        )
        if (
            score is not None
            and record["status"] != "failed"
            and (not self._best or standing(record) > standing(self._best))
        ):
            record, self._best = self._best, record
        if record:
            (self._folder / "trials" / record["trial"] / "model.pth").unlink(missing_ok=True)
        self._bar.update(len(self._ended) - self._bar.n)
        if self._best:
            self._bar.set_postfix(best=_shown(self._best["score"]))

    def _write(self, line: str) -> None:
        if self._show:
            tqdm.write(line)


def _shown(score: float | None) -> str:
    if score is None:
        return ""
    return f"{score:.4f}" if score > OUT_OF_BOUND else "no lambda"
