"""The trade-off between accuracy and calibration: many rerankers and lambdas on one pass of scoring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbole_leaprec.checkpoint import load_checkpoint
from recbole_leaprec.config import check_count
from recbole_leaprec.evaluator import Reranking
from recbole_leaprec.evaluator.per_user import per_user
from recbole_leaprec.plots import plot_tradeoff
from recbole_leaprec.quick_start import run_leaprec, trained_run
from recbole_leaprec.reranking import get_reranker
from recbole_leaprec.run_folder import written_whole
from recbole_leaprec.significance import bootstrap_interval

RERANKERS = ("leaprec", "calirec", "calirec_plus")
LAMBDAS = tuple(step / 10 for step in range(11))
METRICS = ["Hit", "NDCG", "SKL", "CKL"]
BASE = "none"
"""The reranker of a backbone's own ranking."""


def tradeoff(
    output_dir: str | Path,
    checkpoints: Sequence[str | Path] = (),
    rerankers: Sequence[str] = RERANKERS,
    lambdas: Sequence[float] = LAMBDAS,
    *,
    config_file_list: list[str] | None = None,
    config_dict: dict[str, Any] | None = None,
    samples: int = 1000,
    show_progress: bool = True,
) -> pd.DataFrame:
    """Measure every reranker at every lambda on test, and draw the curves.

    Leaves `tradeoff.csv`, and `tradeoff.png` and `.svg`, in `output_dir`.

    Args:
        checkpoints: the model.pth of one or several runs; none to train a model first, as `run_leaprec` does.
        config_dict: keys to change, as for `evaluate`; or, without checkpoints, those of the run.
        samples: how often users are resampled for the 95 % intervals.

    Returns:
        A row for each model, reranker and lambda: `model`, `checkpoint`, `reranker`, `lambda`, `hit@K`, `ndcg@K`, `skl@K`, `ckl@K` for the
        largest K, each with its interval in `<metric>_low` and `<metric>_high`, and the `seconds` of reranking. The
        backbone's own ranking is the reranker `none`.

    Raises:
        ValueError: bad arguments, as for `evaluate`; nothing is written then.
    """
    folder = Path(output_dir)
    for name in ("tradeoff.csv", "model"):
        if (folder / name).exists():
            raise ValueError(f"output_dir {folder} holds a {name} already; name another")
    for name in rerankers:
        get_reranker(name)
    for lam in lambdas:
        if isinstance(lam, bool) or not isinstance(lam, int | float) or not 0 <= lam <= 1:
            raise ValueError(f"lambdas must be numbers in [0, 1], got {lam!r}")
    check_count("samples", samples)
    changes = dict(config_dict or {})
    for key in ("reranker", "rerank_lambda", "target_skl"):
        if key in changes:
            raise ValueError(f"{key} has no part in a trade-off: rerankers and lambdas say what is measured")
    _check_alike([load_checkpoint(checkpoint)["config"] for checkpoint in checkpoints], config_file_list)
    if not checkpoints:
        given = {**changes, "show_progress": show_progress, "output_dir": str(folder / "model")}
        run = run_leaprec(config_file_list=config_file_list, config_dict=given)
        checkpoints, changes = [Path(run["folder"]) / "model.pth"], {}
    rows = []
    for number, checkpoint in enumerate(checkpoints):
        given = {
            **changes,
            "metrics": METRICS,
            "output_dir": str(folder / f"evaluation-{number}"),
            "show_progress": show_progress,
        }
        rows += _measure(checkpoint, rerankers, lambdas, given, samples)
    table = pd.DataFrame(rows)
    plot_tradeoff(table, folder / "tradeoff")
    with written_whole(folder / "tradeoff.csv") as scratch:
        table.to_csv(scratch, index=False)
    return table


def _check_alike(configs: list[dict[str, Any]], config_file_list: list[str] | None) -> None:
    """ValueError for runs that cannot be drawn into one picture."""
    if configs and config_file_list:
        raise ValueError("config_files: a trained run has its own; leave them out")
    for key in ("dataset", "topk"):
        values = {str(config[key]) for config in configs}
        if len(values) > 1:
            raise ValueError(f"checkpoints: {key} must be the same for all, got {' and '.join(sorted(values))}")


def _measure(checkpoint, rerankers, lambdas, changes: dict[str, Any], samples: int) -> list[dict[str, Any]]:
    with trained_run(checkpoint, changes, "tradeoff.log") as (run, trainer):
        config = run.config
        asked = [Reranking()]
        for name in rerankers:
            one = replace(Reranking.from_config(config, 0.0), method=name)
            asked += [replace(one, lam=float(lam)) for lam in lambdas] if name != BASE else []
        results = trainer.evaluate_rerankings(run.test_data, asked, show_progress=config["show_progress"])
        k = max(config["topk"])
        users = [per_user(result["struct"], k, config["beta"]) for result in results]
    metrics = list(users[0])
    values = np.concatenate([np.stack([one[metric].numpy() for metric in metrics], 1) for one in users], 1)
    low, high = bootstrap_interval(values, samples)
    means = values.mean(0)
    rows = []
    for number, (reranking, result) in enumerate(zip(asked, results, strict=True)):
        row = {
            "model": config["model"], "checkpoint": str(checkpoint), "reranker": reranking.method, "lambda": reranking.lam,
        }  # fmt: skip
        for place, metric in enumerate(metrics, number * len(metrics)):
            row |= {metric: means[place], f"{metric}_low": low[place], f"{metric}_high": high[place]}
        rows.append(row | {"seconds": result["seconds"]})
    return rows
