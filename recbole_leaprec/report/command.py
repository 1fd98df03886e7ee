"""A page out of any run folders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recbole_leaprec.config import LAMBDAS, check_count, check_lambdas
from recbole_leaprec.curves import Comparison, Curve
from recbole_leaprec.measured import BASE, FILE, Measured, measure
from recbole_leaprec.report.write import EXPLORED, write_report
from recbole_leaprec.reranking import get_reranker
from recbole_leaprec.study.run import SPEC, report_study

RERANKERS = ("leaprec", "calirec", "calirec_plus", "setwise")
"""What a run is reranked with that has not been measured yet."""


def report(
    folders: Sequence[str | Path],
    out: str | Path,
    users: int = EXPLORED,
    rerankers: Sequence[str] = RERANKERS,
    lambdas: Sequence[float] = LAMBDAS,
    config_dict: dict[str, Any] | None = None,
) -> Path:
    """Write the page, and beside it the tables and pictures that go with it.

    Args:
        folders: of runs, of trade-offs, or one of a study. A run that has not been measured is scored and reranked now.
        out: the page; its folder is made if need be.
        users: how many users the page lets one look at.
        rerankers, lambdas: what to measure a run with.
        config_dict: keys to change, as for `evaluate`, `data_path` for example.

    Raises:
        ValueError: bad arguments, a folder that holds nothing to report, or runs of different datasets.
    """
    out, folders = Path(out), [Path(folder) for folder in folders]
    check_count("users", users)
    check_lambdas(lambdas)
    for name in rerankers:
        get_reranker(name)
    if not folders:
        raise ValueError("name at least one folder, of a run, a trade-off or a study: report output/run1 output/run2")
    if out.exists():
        raise ValueError(f"out: {out} is there already; name another")
    studies = [folder for folder in folders if (folder / SPEC).is_file()]
    if studies and len(folders) > 1:
        raise ValueError(f"{studies[0]} is a study and makes a page of its own; leave the other folders out")
    if studies:
        report_study(studies[0], out, users)
        return out
    runs: list[tuple[str, Measured, float]] = []
    for folder in folders:
        runs += _measured(folder, out.parent, rerankers, lambdas, config_dict or {})
    several = len(runs) > 1
    curves = [
        Curve(f"{label}: {name}" if several else name, name, [run], training=training)
        for label, run, training in runs
        for name in dict.fromkeys(run.rerankers.tolist())
        if name != BASE
    ]
    if not curves:
        raise ValueError(f"{folders[0]} was measured without any reranker")
    write_report(
        out, f"Calibrated lists on {runs[0][1].info['dataset']}", curves, [Comparison(curves[0], curves)], users=users
    )
    return out


def _measured(
    folder: Path, beside: Path, rerankers: Sequence[str], lambdas: Sequence[float], changes: dict[str, Any]
) -> list[tuple[str, Measured, float]]:
    """`(label, measurement, seconds of training)` of everything in a folder."""
    there = sorted({*folder.glob(FILE), *folder.glob(f"*/{FILE}")})
    if there:
        label = folder.name
        return [
            (label if len(there) == 1 else f"{label}/{path.parent.name}", Measured.load(path), float("nan"))
            for path in there
        ]
    checkpoint = folder / "model.pth"
    if not checkpoint.is_file():
        raise ValueError(
            f"{folder} holds neither a model.pth nor a {FILE}: it is no folder of a run, a trade-off or a study"
        )
    own = beside / f"measured-{folder.name}"
    measured = measure(checkpoint, dict.fromkeys(rerankers, lambdas), {**changes, "output_dir": str(own)})
    measured.save(own / FILE)
    result = folder / "result.json"
    timing = json.loads(result.read_text(encoding="utf-8"))["timing"] if result.is_file() else {}
    return [(folder.name, measured, timing.get("training", float("nan")))]
