"""Train, evaluate and report in one call, as RecBole users expect."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from recbole_leaprec.checkpoint import save_lambda
from recbole_leaprec.common.did_you_mean import unknown_name
from recbole_leaprec.common.files import write_json
from recbole_leaprec.common.interrupt import leaving
from recbole_leaprec.config import LeapRecConfig
from recbole_leaprec.reranking.reranking import Reranking
from recbole_leaprec.run import Run, trained_run
from recbole_leaprec.run_folder import left_of_training
from recbole_leaprec.run_log import run_log
from recbole_leaprec.settings.keys import RESUME_KEYS, check_changes
from recbole_leaprec.trainer import LeapRecTrainer
from recbole_leaprec.training_state import STATE, restore_state


def run_leaprec(
    model: str | None = None,
    dataset: str | None = None,
    config_file_list: list[str] | None = None,
    config_dict: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Train a model, rerank its test lists, and write a run folder.

    The best epoch is chosen by `valid_metric` of the plain ranking. Lambda has no effect on training.

    Args:
        model, dataset: names; None for those in the files or the dict, else SASRecCD and ml-100k.
        config_file_list: yaml files; later ones win.
        config_dict: keys that win over the files.

    Returns:
        The content of result.json: `backbone.valid`, `backbone.test`, `rerank` (a list of `{reranker, lambda, test,
        seconds}`), `target_met` if there is a `target_skl`, `config`, `seed`, `versions`, `timing`, `best_epoch`, `epochs`,
        and `folder`, the folder of the run.

    Raises:
        ValueError: bad configuration or data. Nothing is written then.
    """
    config = LeapRecConfig(model, dataset, config_file_list, config_dict)
    with run_log(config) as log:
        run = Run.prepare(config)
        return train_and_measure(run, run.open(log, "train.log"))


def resume(folder: str | Path, config_dict: dict[str, Any] | None = None) -> dict[str, Any]:
    """Go on with a killed training after its last finished epoch. The result is the same as without the interruption.

    Args:
        folder: the folder of the run.
        config_dict: keys to change, only those in `RESUME_KEYS`, such as `data_path`, `show_progress` and GPUs.

    Returns:
        The same as `run_leaprec`.

    Raises:
        ValueError: there is no training to go on with, or the data has changed.
    """
    config = resumed_config(folder, config_dict)
    with run_log(config) as log:
        run = Run.prepare(config, resumed=True)
        trainer = run.open(log, "train.log")
        restore_state(run.folder / STATE, trainer, run.train_data)
        return train_and_measure(run, trainer)


def resumed_config(folder: str | Path, config_dict: dict[str, Any] | None) -> LeapRecConfig:
    """The config of a killed training; ValueError as `resume`."""
    folder = Path(folder)
    check_changes(config_dict or {}, RESUME_KEYS)
    if (folder / "result.json").is_file():
        raise ValueError(f"resume: the training in {folder} is done; its result.json is there")
    for name in ("config.yaml", STATE):
        if not (folder / name).is_file():
            raise ValueError(f"resume: {folder} holds no {name}: there is no training to go on with, start it again")
    given = {**(config_dict or {}), "output_dir": str(folder)}
    return LeapRecConfig(config_file_list=[str(folder / "config.yaml")], config_dict=given)


def train_and_measure(
    run: Run, trainer: LeapRecTrainer, fit: Callable[[Run, LeapRecTrainer], None] = Run.fit
) -> dict[str, Any]:
    """Train, measure the best epoch on test, and write the result.

    Args:
        fit: a function that trains, writes to the run's folder, and leaves the trainer in its state after the last epoch.
    """
    started = time.perf_counter()
    with leaving(lambda: left_of_training(run.folder)):
        fit(run, trainer)
        run.timing["training"] = time.perf_counter() - started
        best = trainer.load(trainer.saved_model_file)
        result = run.evaluate(trainer)
        if run.config["target_skl"] is not None:
            save_lambda(Path(trainer.saved_model_file), best, result["rerank"][0]["lambda"])
    result["backbone"] = {"valid": trainer.best_valid_result, **result["backbone"]}
    result["best_epoch"], result["epochs"] = best["epoch"], len(trainer.train_loss_dict)
    write_json(run.folder / "result.json", result)
    (run.folder / STATE).unlink(missing_ok=True)
    return result


def evaluate(
    checkpoint: str | Path,
    config_dict: dict[str, Any] | None = None,
    rerankings: list[Reranking] | None = None,
    split: str = "test",
) -> dict[str, Any]:
    """Rerank and measure the test lists of a trained model again, with other rerankers, lambdas, list lengths or metrics.

    Args:
        checkpoint: the model.pth of a run.
        config_dict: keys to change; only those in `EVALUATION_KEYS`.
        rerankings: several methods and lambdas, measured together with users scored only once; None for the configured one.
        split: `test`; or `valid`, to choose settings by its metrics.

    Returns:
        The same as `run_leaprec`, without the entries about training.

    Raises:
        ValueError: no such checkpoint, or not one of this plugin; a dataset that has changed since; a key that
            evaluation cannot change. Nothing is written then.
    """
    if split not in ("valid", "test"):
        raise ValueError(unknown_name("split", str(split), ("valid", "test")))
    with trained_run(checkpoint, config_dict) as (run, trainer):
        result = {"checkpoint": str(checkpoint), **run.evaluate(trainer, rerankings, split)}
        write_json(run.folder / "result.json", result)
        return result
