"""The trade-off between accuracy and calibration: many rerankers and lambdas, with users scored only once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from recbole_leaprec.analysis.measure import measure
from recbole_leaprec.analysis.measurement import FILE
from recbole_leaprec.analysis.plots import plot_tradeoff
from recbole_leaprec.common.defaults import LAMBDAS, RESAMPLES, TRADEOFF_RERANKERS
from recbole_leaprec.common.files import check_unused, taken, write_csv
from recbole_leaprec.common.interrupt import leaving
from recbole_leaprec.common.slow_step import slow_step
from recbole_leaprec.quick_start import run_leaprec
from recbole_leaprec.reranking.registry import get_reranker
from recbole_leaprec.run import trained_config
from recbole_leaprec.run_folder import left_of_training
from recbole_leaprec.settings.keys import MACHINE_KEYS, check_alike, check_count, check_lambdas

UNUSED = ("tradeoff.csv", "model")
"""A folder that holds one of these cannot take a new trade-off."""


def tradeoff(
    output_dir: str | Path,
    checkpoints: Sequence[str | Path] = (),
    rerankers: Sequence[str] = TRADEOFF_RERANKERS,
    lambdas: Sequence[float] = LAMBDAS,
    *,
    config_file_list: list[str] | None = None,
    config_dict: dict[str, Any] | None = None,
    samples: int = RESAMPLES,
    show_progress: bool | None = None,
) -> pd.DataFrame:
    """Measure every reranker at every lambda on test, and draw the curves.

    Writes `tradeoff.csv`, `tradeoff.png` and `.svg`, and a `measured.npz` per checkpoint, to `output_dir`.

    Args:
        checkpoints: the model.pth of one or several runs; if empty, a model is trained first, as `run_leaprec` does.
        config_dict: keys to change, those in `MEASUREMENT_KEYS`; without checkpoints, all keys of the run.
        samples: how often users are resampled for the 95 % intervals.
        show_progress: whether to show progress bars; None for what the keys and files say.

    Returns:
        One row per model, reranker and lambda: `model`, `checkpoint`, `reranker`, `lambda`; `hit@K`, `ndcg@K`, `skl@K`
        and `ckl@K` for the largest K, each with its interval in `<metric>_low` and `<metric>_high`; and the `seconds` of
        reranking. The backbone's own ranking is the reranker `none`.

    Raises:
        ValueError: bad arguments, as for `evaluate`; nothing is written then.
    """
    folder = Path(output_dir)
    check_unused(folder, UNUSED)
    for name in rerankers:
        get_reranker(name)
    check_lambdas(lambdas)
    check_count("samples", samples)
    _check_different(checkpoints)
    changes = {**(config_dict or {}), **({} if show_progress is None else {"show_progress": show_progress})}
    for key in ("reranker", "rerank_lambda", "target_skl"):
        if key in changes:
            raise ValueError(f"{key} has no part in a trade-off: rerankers and lambdas say what is measured")
    if checkpoints and config_file_list:
        raise ValueError("config_files: a trained run has its own; leave them out")
    check_alike(
        {str(checkpoint): trained_config(checkpoint, changes)[1].plain() for checkpoint in checkpoints},
        "what is given here (--key=value) holds for all",
    )
    with taken(folder), leaving(lambda: _left(folder)):
        check_unused(folder, UNUSED)
        if not checkpoints:
            given = {**changes, "output_dir": str(folder / "model")}
            run = run_leaprec(config_file_list=config_file_list, config_dict=given)
            checkpoints = [Path(run["folder"]) / "model.pth"]
            changes = {key: run["config"][key] for key in ("show_progress", *MACHINE_KEYS) if key in run["config"]}
        tables = []
        for number, checkpoint in enumerate(checkpoints):
            own = folder / f"evaluation-{number}"
            given = {"show_progress": True, **changes, "output_dir": str(own)}  # a search and Ray train without
            measured = measure(checkpoint, dict.fromkeys(rerankers, lambdas), given, "tradeoff.log")
            with slow_step("keeping every user's lists, and working out the 95 % intervals"):
                measured.save(own / FILE)
                tables.append(measured.table(samples))
        table = pd.concat(tables, ignore_index=True)
        with slow_step("drawing"):
            plot_tradeoff(table, folder / "tradeoff")
        write_csv(folder / "tradeoff.csv", table)
        return table


def _check_different(checkpoints: Sequence[str | Path]) -> None:
    """ValueError if a file is given twice, even under two names: its rows and curves would be there twice, too."""
    files = [Path(checkpoint).resolve() for checkpoint in checkpoints]
    for number, file in enumerate(files):
        if file in files[:number]:
            raise ValueError(f"checkpoint {checkpoints[number]} is given twice: name each model once")


def _left(folder: Path) -> str:
    """A sentence on what an interrupted trade-off leaves, and how to go on."""
    model = folder / "model"
    if not model.exists():
        return f"{folder} holds no curves yet; the same command begins again"
    measure_it = f"measure it with leaprec tradeoff --checkpoint={model / 'model.pth'}"
    if (model / "result.json").is_file():
        return f"the trained model is in {model}; {measure_it}"
    return f"{left_of_training(model)}, and then {measure_it}"
