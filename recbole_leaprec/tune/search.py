"""The search: trials over a Ray cluster, early stopping, and what is left in the folder at the end."""

from __future__ import annotations

import json
import shutil
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from recbole_leaprec.cluster import check_room, connected
from recbole_leaprec.config import MACHINE_KEYS, LeapRecConfig, check_count, check_number, known_keys, metric_names
from recbole_leaprec.data import create_dataset
from recbole_leaprec.quick_start import evaluate
from recbole_leaprec.run_folder import run_log, write_json, write_yaml, written_whole
from recbole_leaprec.suggest import unknown_name
from recbole_leaprec.tune.objective import OUT_OF_BOUND, parse_objective
from recbole_leaprec.tune.plot import parallel_coordinates
from recbole_leaprec.tune.space import Distribution, check_keys, read_space
from recbole_leaprec.tune.trial import run_trial, standing

SEARCHES = ("random", "tpe")
NAME = "ray"
"""Ray's own files are in folders of this name and the time."""


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
    show_progress: bool = True,
) -> dict[str, Any]:
    """Search for hyperparameters on validation; evaluate the winner on test, once.

    Args:
        space: a file of distributions, see `read_space`.
        output_dir: all nodes of a cluster must see it under this path.
        config_dict: keys that every trial has, model, dataset and epochs among them.
        objective: see `parse_objective`; None for the config's valid_metric.
        trials: how many to run; None for 20, or, with `resume`, for as many as before.
        search: `random` or `tpe` (Optuna).
        early_stopping: whether ASHA stops trials that fall behind.
        concurrent: trials at a time; None for as many as there are CPUs or GPUs for.
        resume: go on with the search that `output_dir` holds, with the settings it was started with; `trials` alone may be
            others, to go on for longer.

    Returns:
        What `search.json` holds: `best` (trial, score, lambda, sample, whether it meets the bound; None if the search was
        interrupted before any validation), `test` (the winner's result, unless interrupted), `done` of `trials`, `folder`.

    Raises:
        ValueError: a bad space, objective, configuration or cluster, before anything is started or written; or no trial
            finished.
    """
    folder = Path(output_dir).absolute()
    if resume:
        given = {"space": space, "config_files": config_file_list or None, "objective": objective}
        names = [*(name for name, value in given.items() if value is not None), *(config_dict or {})]
        settings = _read_settings(folder, trials, names)
    else:
        settings = _settings(
            space, folder, config_file_list, config_dict, objective, 20 if trials is None else trials, search, early_stopping,
            concurrent, cpus_per_trial, gpus_per_trial,
        )  # fmt: skip
    with connected(ray_address) as own:
        check_room({"CPU": settings["cpus"], "GPU": settings["gpus"]}, "a trial (cpus_per_trial, gpus_per_trial)", own)
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "settings.json", settings)
        interrupted = _run(settings, folder, show_progress)
    table = collect(folder, settings)
    finished = table[table["score"].notna() & (table["status"] != "failed")] if "score" in table else table.iloc[:0]
    done = int((table["status"] != "interrupted").sum()) if "status" in table else 0
    result = {"folder": str(folder), "interrupted": interrupted, "trials": settings["trials"], "done": done, "best": None}
    if not finished.empty:
        result["best"] = _settle(folder, finished, settings)
    elif not interrupted:
        raise ValueError(f"no trial of {folder} came to a validation; {folder / 'trials.csv'} says why")
    if not interrupted:
        result["test"] = _test(folder, result["best"], settings, show_progress)
    write_json(folder / "search.json", result)
    return result


def _test(folder: Path, best: dict[str, Any], settings: dict[str, Any], show_progress: bool) -> dict[str, Any]:
    """The winner on test; what an earlier search has measured of the same winner is not measured again."""
    before = folder / "search.json"
    if before.is_file():
        earlier = json.loads(before.read_text(encoding="utf-8"))
        if "test" in earlier and earlier["best"] == best:
            return earlier["test"]
    changes = {"output_dir": str(folder / "best" / "test"), "show_progress": show_progress}
    if not settings["gpus"]:
        changes["gpu_id"] = ""  # on a CPU, as the trials
    if best["lambda"] is not None:
        changes["rerank_lambda"] = best["lambda"]
    shutil.rmtree(folder / "best" / "test", ignore_errors=True)
    return evaluate(folder / "best" / "model.pth", changes)


def _settings(
    space, folder, config_file_list, config_dict, objective, trials, search, early_stopping, concurrent, cpus, gpus
) -> dict[str, Any]:  # fmt: skip
    """Everything that a search is, as plain values; ValueError for anything that would only be found in a trial."""
    if space is None:
        raise ValueError("--space=FILE is needed, the distributions to draw from, such as properties/tune/SASRecCD.yaml")
    if search not in SEARCHES:
        raise ValueError(unknown_name("search", str(search), SEARCHES))
    check_count("trials", trials)
    if concurrent is not None:
        check_count("concurrent", concurrent)
    check_number("cpus_per_trial", cpus, above=0)
    check_number("gpus_per_trial", gpus)
    if not isinstance(early_stopping, bool):
        raise ValueError(f"early_stopping must be True or False, got {early_stopping!r}")
    if (folder / "settings.json").exists():
        raise ValueError(f"output_dir {folder} already holds a search; --resume=True goes on with it, or name another")
    distributions = read_space(space)
    check_keys(distributions, known_keys(), space)
    base = LeapRecConfig(config_file_list=config_file_list, config_dict=config_dict)
    shared = base.plain()
    for key in MACHINE_KEYS & shared.keys():
        raise ValueError(f"{key}: Ray gives GPUs to trials; say how many with gpus_per_trial (0: trials run on CPUs)")
    shared["data_path"] = str(Path(shared["data_path"]).absolute())  # workers may run elsewhere
    for key, distribution in distributions.items():
        for value in distribution.extremes():
            try:
                LeapRecConfig(config_dict={**shared, key: value})
            except ValueError as error:
                raise ValueError(f"{space}: {error}") from error
    metrics = [name.lower() for name in metric_names(base["metrics"], base["topk"])]
    text = objective or base["valid_metric"]
    parse_objective(text, metrics)
    with run_log(base):
        # What is wrong with it would fail every trial, and if it has to be downloaded, all would at once.
        create_dataset(base)
    return {
        "config": shared, "objective": text, "metrics": metrics, "trials": trials, "search": search,
        "early_stopping": early_stopping, "concurrent": concurrent, "cpus": cpus, "gpus": gpus, "folder": str(folder),
        "space": {key: [d.kind, list(d.arguments)] for key, d in distributions.items()},
    }  # fmt: skip


def check_resumed_with(names: Sequence[str]) -> None:
    """ValueError if there are any: settings that a search to be resumed cannot take."""
    if names:
        raise ValueError(
            f"a search is resumed with the settings it was started with, and trials alone may be others; leave out {', '.join(names)}"
        )


def _read_settings(folder: Path, trials: int | None, given: list[str]) -> dict[str, Any]:
    path = folder / "settings.json"
    if not path.is_file():
        raise ValueError(f"there is no search to resume in {folder}: {path.name} is not there (--output_dir)")
    check_resumed_with(given)
    settings = json.loads(path.read_text(encoding="utf-8"))
    if trials is not None:
        check_count("trials", trials)
        done = sum(record["status"] != "running" for record in read_trials(folder))
        if trials < done:
            raise ValueError(f"trials must be at least the {done} that are done, got {trials}")
        settings["trials"] = trials
    return settings


def _run(settings: dict[str, Any], folder: Path, show_progress: bool) -> bool:
    """Run what is left of the search; whether it was interrupted.

    Resuming is a new experiment of Ray for what is left, told of what has been tried; trials that were cut off come first.
    """
    from ray.tune import RunConfig, TuneConfig, Tuner, with_resources

    from recbole_leaprec.tune.progress import LiveTable

    done, cut_off = [], []
    for record in read_trials(folder):
        (cut_off if record["status"] == "running" else done).append(record)
    for record in cut_off:
        shutil.rmtree(folder / "trials" / record["trial"])
    left = settings["trials"] - len(done)
    if left < 1:
        return False
    trainable = with_resources(partial(run_trial, settings=settings), {"cpu": settings["cpus"], "gpu": settings["gpus"]})
    table = LiveTable(settings, folder, done, show_progress)
    tuner = Tuner(
        trainable,
        tune_config=TuneConfig(
            metric="score",
            mode="max",
            num_samples=left,
            max_concurrent_trials=settings["concurrent"],
            search_alg=_searcher(settings, done, cut_off),
            scheduler=_scheduler(settings),
        ),
        run_config=RunConfig(
            name=f"{NAME}-{time.strftime('%Y%m%d-%H%M%S')}", storage_path=str(folder), verbose=0, callbacks=[table]
        ),
    )
    with table, _interrupts_as_before():
        tuner.fit()
    return table.unfinished()


@contextmanager
def _interrupts_as_before() -> Iterator[None]:
    """Ray Tune takes Ctrl-C for itself, and after a search that nobody interrupted it does not give it back."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def read_trials(folder: Path) -> list[dict[str, Any]]:
    """What the trials wrote of themselves, oldest first."""
    paths = sorted(folder.glob("trials/*/trial.json"))
    return sorted((json.loads(path.read_text(encoding="utf-8")) for path in paths), key=lambda record: record["started"])


def _searcher(settings: dict[str, Any], done: list[dict[str, Any]], cut_off: list[dict[str, Any]]):
    """Draws samples: first those of trials that were cut off, then new ones."""
    import optuna
    from ray.tune.search.optuna import OptunaSearch

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = {key: Distribution(kind, tuple(arguments)).to_ray() for key, (kind, arguments) in settings["space"].items()}
    again = [_sample(record, settings) for record in cut_off]
    seed = settings["config"]["seed"] + len(done)  # what was drawn before must not be drawn again
    sampler = (optuna.samplers.RandomSampler if settings["search"] == "random" else optuna.samplers.TPESampler)(seed=seed)
    searcher = OptunaSearch(
        OptunaSearch.convert_search_space(space),
        metric="score",
        mode="max",
        points_to_evaluate=again or None,
        sampler=sampler,
    )
    for record in done:
        if record.get("score") is not None:
            searcher.add_evaluated_point(_sample(record, settings), record["score"])
    return searcher


def _sample(record: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    return {key: record[f"config/{key}"] for key in settings["space"]}


def _scheduler(settings: dict[str, Any]):
    from ray.tune.schedulers import ASHAScheduler, FIFOScheduler

    epochs = settings["config"]["epochs"]
    if not settings["early_stopping"]:
        return FIFOScheduler()
    return ASHAScheduler(time_attr="epoch", max_t=epochs, grace_period=max(1, epochs // 10), reduction_factor=3)


def collect(folder: Path, settings: dict[str, Any]) -> pd.DataFrame:
    """All trials as a table, best first; written to trials.csv and trials.html."""
    records = read_trials(folder)
    for record in records:
        if record["status"] == "running":
            record["status"] = "interrupted"
    scored = [record for record in records if record.get("score") is not None]
    rest = [record for record in records if record.get("score") is None]
    table = pd.DataFrame([*sorted(scored, key=standing, reverse=True), *rest])
    if table.empty:
        return table
    with written_whole(folder / "trials.csv") as scratch:
        table.to_csv(scratch, index=False)
    with written_whole(folder / "trials.html") as scratch:
        scratch.write_text(parallel_coordinates(table, list(settings["space"]), settings["objective"]), encoding="utf-8")
    return table


def _settle(folder: Path, finished: pd.DataFrame, settings: dict[str, Any]) -> dict[str, Any]:
    """Keep the winner's checkpoint and settings, and no other checkpoint."""
    winner = json.loads((folder / "trials" / finished.iloc[0]["trial"] / "trial.json").read_text(encoding="utf-8"))
    source = folder / "trials" / winner["trial"]
    config = yaml.safe_load((source / "config.yaml").read_text(encoding="utf-8"))
    if winner.get("lambda") is not None:
        config |= {"rerank_lambda": winner["lambda"], "target_skl": None}
    config.pop("gpu_id")  # the one that Ray gave the trial, which showed no progress either
    config |= {key: settings["config"][key] for key in ("show_progress", *MACHINE_KEYS) if key in settings["config"]}
    (folder / "best").mkdir(exist_ok=True)
    with written_whole(folder / "best" / "model.pth") as scratch:
        shutil.copyfile(source / "model.pth", scratch)
    write_yaml(folder / "best.yaml", config)
    return {
        "trial": winner["trial"],
        "objective": settings["objective"],
        "score": winner["score"],
        "within_bound": winner["score"] > OUT_OF_BOUND,
        "lambda": winner.get("lambda"),
        "sample": _sample(winner, settings),
        "valid": {name.removeprefix("valid/"): value for name, value in winner.items() if name.startswith("valid/")},
    }
