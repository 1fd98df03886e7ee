"""The trade-off between accuracy and calibration: many rerankers and lambdas on one pass of scoring."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from recbole_leaprec.config import LAMBDAS, MACHINE_KEYS, check_count, check_lambdas
from recbole_leaprec.measured import FILE, check_alike, measure
from recbole_leaprec.plots import plot_tradeoff
from recbole_leaprec.quick_start import run_leaprec, trained_config
from recbole_leaprec.reranking import get_reranker
from recbole_leaprec.run_folder import check_unused, write_csv

DEFAULT_RERANKERS = ("leaprec", "calirec", "calirec_plus")


def tradeoff(
    output_dir: str | Path,
    checkpoints: Sequence[str | Path] = (),
    rerankers: Sequence[str] = DEFAULT_RERANKERS,
    lambdas: Sequence[float] = LAMBDAS,
    *,
    config_file_list: list[str] | None = None,
    config_dict: dict[str, Any] | None = None,
    samples: int = 1000,
    show_progress: bool = True,
) -> pd.DataFrame:
    """Measure every reranker at every lambda on test, and draw the curves.

    Leaves `tradeoff.csv`, `tradeoff.png` and `.svg`, and a `measured.npz` for each checkpoint, in `output_dir`.

    Args:
        checkpoints: the model.pth of one or several runs; none to train a model first, as `run_leaprec` does.
        config_dict: keys to change, those in `MEASURED_KEYS`; or, without checkpoints, those of the run.
        samples: how often users are resampled for the 95 % intervals.

    Returns:
        A row for each model, reranker and lambda: `model`, `checkpoint`, `reranker`, `lambda`, `hit@K`, `ndcg@K`, `skl@K`, `ckl@K` for the
        largest K, each with its interval in `<metric>_low` and `<metric>_high`, and the `seconds` of reranking. The
        backbone's own ranking is the reranker `none`.

    Raises:
        ValueError: bad arguments, as for `evaluate`; nothing is written then.
    """
    folder = Path(output_dir)
    check_unused(folder, ("tradeoff.csv", "model"))
    for name in rerankers:
        get_reranker(name)
    check_lambdas(lambdas)
    check_count("samples", samples)
    changes = dict(config_dict or {})
    for key in ("reranker", "rerank_lambda", "target_skl"):
        if key in changes:
            raise ValueError(f"{key} has no part in a trade-off: rerankers and lambdas say what is measured")
    if checkpoints and config_file_list:
        raise ValueError("config_files: a trained run has its own; leave them out")
    check_alike(
        {str(checkpoint): trained_config(checkpoint, changes)[1].plain() for checkpoint in checkpoints},
        "what is given here (--key=value) holds for all",
    )
    if not checkpoints:
        given = {**changes, "show_progress": show_progress, "output_dir": str(folder / "model")}
        run = run_leaprec(config_file_list=config_file_list, config_dict=given)
        checkpoints = [Path(run["folder"]) / "model.pth"]
        changes = {key: run["config"][key] for key in MACHINE_KEYS if key in run["config"]}
    tables = []
    for number, checkpoint in enumerate(checkpoints):
        own = folder / f"evaluation-{number}"
        given = {**changes, "output_dir": str(own), "show_progress": show_progress}
        measured = measure(checkpoint, dict.fromkeys(rerankers, lambdas), given, "tradeoff.log")
        measured.save(own / FILE)
        tables.append(measured.table(samples))
    table = pd.concat(tables, ignore_index=True)
    plot_tradeoff(table, folder / "tradeoff")
    write_csv(folder / "tradeoff.csv", table)
    return table
