"""The output of a search while it runs: a line per finished trial, and a progress bar."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ray.tune import Callback
from ray.tune.experiment import Trial
from tqdm import tqdm

from recbole_leaprec.tune.objective import OUT_OF_BOUND
from recbole_leaprec.tune.records import close_trial, keep_better, standing
from recbole_leaprec.tune.settings import SearchSettings


class LiveTable(Callback):
    """Prints a line per trial that ends, above a progress bar; closes the trial, and keeps only the best checkpoint."""

    def __init__(self, settings: SearchSettings, folder: Path, done: list[dict[str, Any]], show: bool):
        self._folder, self._total, self._show = folder, settings.trials, show
        self._epochs, self._keys = settings.config["epochs"], list(settings.space)
        self._ended = {record["trial"] for record in done}
        scored = [record for record in done if record.get("score") is not None and record["status"] != "failed"]
        self._best = max(scored, key=standing, default=None)
        self._bar: tqdm  # set in __enter__

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

    def on_trial_complete(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        self._end(trial.trial_id)

    def on_trial_error(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        self._end(trial.trial_id)

    def _end(self, trial_id: str) -> None:
        self._ended.add(trial_id)
        record = close_trial(self._folder, trial_id, self._epochs)
        if record is None:
            return
        self._write(
            f"{trial_id:<16}{record['status']:<15}{record['epochs']:>6}  {_shown(record.get('score')):>9}  "
            + "  ".join(f"{record[f'config/{key}']!s:<{len(key)}.8}" for key in self._keys)
        )
        self._best = keep_better(self._folder, record, self._best)
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
