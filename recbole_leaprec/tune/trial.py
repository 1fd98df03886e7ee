"""One trial of a search: a training that reports after every validation. It runs in a Ray worker."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recbole_leaprec.cluster import given_gpus, ray_node
from recbole_leaprec.common.files import write_json
from recbole_leaprec.tune.objective import Objective, Point, parse_objective
from recbole_leaprec.tune.settings import SearchSettings

if TYPE_CHECKING:
    from recbole_leaprec.config import LeapRecConfig
    from recbole_leaprec.trainer import LeapRecTrainer


def run_trial(sample: dict[str, Any], settings: SearchSettings) -> None:
    """Train with `settings.config` and `sample`, which wins.

    The reported metrics are those of the checkpoint that is kept: the best epoch so far by `valid_metric`. Test data is
    not used.
    """
    from ray import tune

    trial_id = tune.get_context().get_trial_id()
    folder = Path(settings.folder) / "trials" / trial_id
    drawn = {f"config/{key}": value for key, value in sample.items()}
    record = {"trial": trial_id, "status": "running", "epochs": 0, **drawn, "started": time.time(), "node": ray_node()}
    started = time.perf_counter()

    def save(**changes: Any) -> None:
        record.update(changes, seconds=round(time.perf_counter() - started, 1))
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "trial.json", record)

    save()
    try:
        _train(sample, settings, folder, save)
        save(status="finished")
    except Exception as error:
        save(status="failed", error=f"{type(error).__name__}: {' '.join(str(error).split())}")
        raise


def _train(sample: dict[str, Any], settings: SearchSettings, folder: Path, save: Callable[..., None]) -> None:
    import torch
    from ray import tune

    from recbole_leaprec.config import LeapRecConfig
    from recbole_leaprec.run import train_only

    torch.set_num_threads(max(1, int(settings.cpus)))
    own = {"output_dir": str(folder), "show_progress": False, "gpu_id": given_gpus() if settings.gpus else ""}
    config = LeapRecConfig(config_dict={**settings.config, **sample, **own})
    objective = parse_objective(settings.objective, settings.metrics, config["beta"])
    figures: dict[str, Any] = {}

    def report(trainer: LeapRecTrainer, valid_data: Any, epoch: int) -> None:
        if trainer.cur_step == 0:  # this epoch is the best so far
            score, lam = objective.score(trainer.best_valid_result, _sweep(objective, trainer, valid_data, config))
            valid = {f"valid/{name}": float(value) for name, value in trainer.best_valid_result.items()}
            figures.update(score=score, best_epoch=epoch + 1, **({} if lam is None else {"lambda": lam}), **valid)
        save(epochs=epoch + 1, **figures)
        tune.report({"score": figures["score"], "epoch": epoch + 1})

    train_only(config, report)


def _sweep(objective: Objective, trainer: LeapRecTrainer, valid_data: Any, config: LeapRecConfig) -> list[Point]:
    from recbole_leaprec.reranking.reranking import Reranking

    if not objective.lambdas:
        return []
    rerankings = [Reranking.from_config(config, lam) for lam in objective.lambdas]
    return [Point(one.reranking.lam, one.metrics) for one in trainer.evaluate_rerankings(valid_data, rerankings)]
