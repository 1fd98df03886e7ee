"""Runs a search: trials over a Ray cluster, early stopping, and the winner on test."""

from __future__ import annotations

import shutil
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recbole_leaprec.checkpoint import load_checkpoint, save_lambda
from recbole_leaprec.cluster import check_room, connected, interrupts_as_before
from recbole_leaprec.common.defaults import TRIALS
from recbole_leaprec.common.files import taken, write_json
from recbole_leaprec.common.reading import read_json
from recbole_leaprec.config import LeapRecConfig
from recbole_leaprec.quick_start import evaluate
from recbole_leaprec.tune.records import collect, read_trials, sample_of, settle
from recbole_leaprec.tune.settings import SearchSettings, check_resumed_with
from recbole_leaprec.tune.space import Distribution
from recbole_leaprec.tune.trial import run_trial

if TYPE_CHECKING:
    from ray.tune.schedulers import TrialScheduler
    from ray.tune.search import Searcher

NAME = "ray"
"""The folders of Ray's own files are named after this and the time."""


def tune(
    space: str | Path | None = None,
    output_dir: str | Path = "output/tune",
    *,
    config_file_list: list[str] | None = None,
    config_dict: dict[str, Any] | None = None,
    objective: str | None = None,
    trials: int | None = None,
    search: str = "tpe",
    early_stopping: bool = True,
    concurrent: int | None = None,
    cpus_per_trial: float = 1,
    gpus_per_trial: float = 0,
    ray_address: str | None = None,
    resume: bool = False,
    show_progress: bool | None = None,
) -> dict[str, Any]:
    """Search for hyperparameters on validation, and evaluate the winner on test once.

    Args:
        space: a file of distributions, see `read_space`.
        output_dir: all nodes of a cluster must see it under this path.
        config_dict: keys of every trial, such as model, dataset and epochs.
        objective: see `parse_objective`; None for the config's valid_metric.
        trials: how many to run; None for 20, or with `resume` for as many as before.
        search: `random` or `tpe` (Optuna).
        early_stopping: whether ASHA stops trials that fall behind.
        concurrent: trials at a time; None for as many as the CPUs or GPUs allow.
        resume: go on with the search in `output_dir`, with the settings that it was started with. Only `trials` may be
            changed, to run more or fewer, but not fewer than are done.
        show_progress: whether to show progress; None for what the settings say.

    Returns:
        The content of `search.json`: `best` (trial, score, lambda, sample, whether it meets the bound; None if the
        search was interrupted before any validation), `test` (the winner's result, unless interrupted), `done`,
        `trials` and `folder`.

    Raises:
        ValueError: a bad space, objective, configuration or cluster, before anything is started or written; or all
            trials failed.
    """
    folder = Path(output_dir).absolute()
    if resume:
        given = {"space": space, "config_files": config_file_list or None, "objective": objective}
        done = sum(record["status"] != "running" for record in read_trials(folder))
        settings = SearchSettings.resume(folder, trials, done)
        check_resumed_with([*(name for name, value in given.items() if value is not None), *(config_dict or {})])
    else:
        settings = SearchSettings.begin(
            folder, space, LeapRecConfig(config_file_list=config_file_list, config_dict=config_dict), given=config_dict or {}, objective=objective,
            trials=TRIALS if trials is None else trials, search=search, early_stopping=early_stopping, concurrent=concurrent,
            cpus=cpus_per_trial, gpus=gpus_per_trial,
        )  # fmt: skip
    show = settings.config["show_progress"] if show_progress is None else show_progress
    with connected(ray_address) as own:
        check_room({"CPU": settings.cpus, "GPU": settings.gpus}, "a trial (cpus_per_trial, gpus_per_trial)", own)
        with taken(folder):
            settings.write()
            interrupted = _run(settings, show)
    table = collect(folder, settings)
    finished = table[table["score"].notna() & (table["status"] != "failed")] if "score" in table else table.iloc[:0]
    done = int((table["status"] != "interrupted").sum()) if "status" in table else 0
    result: dict[str, Any] = {
        "folder": str(folder),
        "interrupted": interrupted,
        "trials": settings.trials,
        "done": done,
        "best": None,
    }
    if not finished.empty:
        result["best"] = settle(folder, finished, settings)
    elif not interrupted:
        raise ValueError(f"no trial of {folder} came to a validation; {folder / 'trials.csv'} says why")
    if not interrupted:
        result["test"] = _test(folder, result["best"], settings, show)
        _keep_lambda(folder / "best" / "model.pth", result["best"]["lambda"], result["test"])
    write_json(folder / "search.json", result)
    return result


def _test(folder: Path, best: dict[str, Any], settings: SearchSettings, show_progress: bool) -> dict[str, Any]:
    """The winner's result on test. If an earlier call has measured the same winner, its result is used."""
    before = folder / "search.json"
    if before.is_file():
        earlier = read_json(before, "the result of a search")
        if "test" in earlier and earlier.get("best") == best:
            return earlier["test"]
    changes = {"output_dir": str(folder / "best" / "test"), "show_progress": show_progress}
    if not settings.gpus:
        changes["gpu_id"] = ""  # on a CPU, like the trials
    if best["lambda"] is not None:
        changes["rerank_lambda"] = best["lambda"]
    shutil.rmtree(folder / "best" / "test", ignore_errors=True)
    return evaluate(folder / "best" / "model.pth", changes)


def _keep_lambda(checkpoint: Path, best: float | None, test: dict[str, Any]) -> None:
    """Write the lambda of the search, or the one that `target_skl` found, into the winner's checkpoint."""
    content = load_checkpoint(checkpoint)
    if best is None and content["config"]["target_skl"] is not None:
        best = test["rerank"][0]["lambda"]
    if best is not None:
        save_lambda(checkpoint, content, best)


def _run(settings: SearchSettings, show_progress: bool) -> bool:
    """Run the rest of the search; returns whether it was interrupted.

    A resumed search is a new experiment of Ray. It gets the results of earlier trials, and repeats interrupted ones.
    """
    from ray.tune import RunConfig, TuneConfig, Tuner, with_resources

    from recbole_leaprec.tune.progress import LiveTable

    folder, records = settings.path, read_trials(settings.path)
    done = [record for record in records if record["status"] != "running"]
    cut_off = [record for record in records if record["status"] == "running"]
    for record in cut_off:
        shutil.rmtree(folder / "trials" / record["trial"])
    left = settings.trials - len(done)
    if left < 1:
        return False
    trainable = with_resources(partial(run_trial, settings=settings), {"cpu": settings.cpus, "gpu": settings.gpus})
    table = LiveTable(settings, folder, done, show_progress)
    tuner = Tuner(
        trainable,
        tune_config=TuneConfig(
            metric="score",
            mode="max",
            num_samples=left,
            max_concurrent_trials=settings.concurrent,
            search_alg=_searcher(settings, done, cut_off),
            scheduler=_scheduler(settings),
        ),
        run_config=RunConfig(
            name=f"{NAME}-{time.strftime('%Y%m%d-%H%M%S')}", storage_path=str(folder), verbose=0, callbacks=[table]
        ),
    )
    with table, interrupts_as_before():
        tuner.fit()  # Ray handles Ctrl-C itself and returns; then trials are left
    return table.unfinished()


def _searcher(settings: SearchSettings, done: list[dict[str, Any]], cut_off: list[dict[str, Any]]) -> Searcher:
    """A searcher that draws samples: first those of interrupted trials, then new ones."""
    import optuna
    from ray.tune.search.optuna import OptunaSearch

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = {key: Distribution(kind, tuple(arguments)).to_ray() for key, (kind, arguments) in settings.space.items()}
    again = [sample_of(record, settings) for record in cut_off]
    seed = settings.config["seed"] + len(done)  # so that earlier samples are not drawn again
    sampler = (optuna.samplers.RandomSampler if settings.search == "random" else optuna.samplers.TPESampler)(seed=seed)
    searcher = OptunaSearch(
        OptunaSearch.convert_search_space(space),
        metric="score",
        mode="max",
        points_to_evaluate=again or None,
        sampler=sampler,
    )
    for record in done:
        if record.get("score") is not None:
            searcher.add_evaluated_point(sample_of(record, settings), record["score"])
    return searcher


def _scheduler(settings: SearchSettings) -> TrialScheduler:
    from ray.tune.schedulers import ASHAScheduler, FIFOScheduler

    epochs = settings.config["epochs"]
    if not settings.early_stopping:
        return FIFOScheduler()
    return ASHAScheduler(time_attr="epoch", max_t=epochs, grace_period=max(1, epochs // 10), reduction_factor=3)
