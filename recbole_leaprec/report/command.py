"""A page out of any run folders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recbole_leaprec.config import LAMBDAS, check_count, check_lambdas
from recbole_leaprec.curves import Comparison, Curve
from recbole_leaprec.measured import BASE, FILE, Measured, check_alike, measure
from recbole_leaprec.quick_start import trained_config
from recbole_leaprec.report.tables import TABLES
from recbole_leaprec.report.write import EXPLORED, write_report
from recbole_leaprec.reranking import get_reranker
from recbole_leaprec.run_folder import check_unused, distinct_names
from recbole_leaprec.study.run import SPEC, report_study

DEFAULT_RERANKERS = ("leaprec", "calirec", "calirec_plus", "setwise")
"""What a run is reranked with that has not been measured yet."""

DEFAULT_LAMBDAS = (*LAMBDAS[:-1], 0.95, 0.98, 0.99, 0.995, 1.0)
"""Finer near 1: there a weight that is the same at all places goes from little calibration to nothing else, and methods are
compared between neighbouring lambdas."""


def report(
    folders: Sequence[str | Path],
    out: str | Path,
    users: int = EXPLORED,
    rerankers: Sequence[str] | None = None,
    lambdas: Sequence[float] | None = None,
    config_dict: dict[str, Any] | None = None,
) -> Path:
    """Write the page, and beside it the tables and pictures that go with it.

    Args:
        folders: of runs, of trade-offs, or one of a study. A run that has not been measured is scored and reranked now.
        out: the page; its folder is made if need be.
        users: how many users the page lets one look at.
        rerankers, lambdas: what to measure a run with; None for `DEFAULT_RERANKERS` and `DEFAULT_LAMBDAS`.
        config_dict: keys to change when a run is measured, those in `MEASURED_KEYS`.

    Raises:
        ValueError: bad arguments, a folder that holds nothing to report, or runs of different datasets.
    """
    out, folders = Path(out), [Path(folder).resolve() for folder in folders]
    check_count("users", users)
    check_lambdas(DEFAULT_LAMBDAS if lambdas is None else lambdas)
    for name in rerankers or ():
        get_reranker(name)
    if not folders:
        raise ValueError("name at least one folder, of a run, a trade-off or a study: report output/run1 output/run2")
    if len({*folders}) < len(folders):
        raise ValueError("a folder is named twice")
    if out.suffix not in (".html", ".htm"):
        raise ValueError(f"out: the page's name must end in .html, got {out}; its tables and pictures go beside it")
    if out.exists():
        raise ValueError(f"out: {out} is there already; name another")
    check_unused(out.parent, [f"{name}.csv" for name in TABLES])
    studies = [folder for folder in folders if (folder / SPEC).is_file()]
    if studies and len(folders) > 1:
        raise ValueError(f"{studies[0]} is a study and makes a page of its own; leave the other folders out")
    to_measure = [folder for folder in folders if folder not in studies and not _there(folder)]
    if not to_measure and (rerankers is not None or lambdas is not None or config_dict):
        raise ValueError(
            f"{folders[0]} has been measured: {', '.join([*(config_dict or {}), *_given(rerankers=rerankers, lambdas=lambdas)])} "
            f"can change nothing about it"
        )
    if studies:
        report_study(studies[0], out, users)
        return out
    for folder in to_measure:
        if not folder.is_dir():
            raise ValueError(f"{folder} does not exist; name the folder of a run, a trade-off or a study")
        if not (folder / "model.pth").is_file():
            raise ValueError(
                f"{folder} holds neither a model.pth nor a {FILE}: it is no folder of a run, a trade-off or a study"
            )
    check_alike(
        {str(folder): trained_config(folder / "model.pth", config_dict)[1].plain() for folder in to_measure},
        "what is given here (--key=value) holds for all",
    )
    runs: list[tuple[str, Measured, float]] = []
    asked = dict.fromkeys(rerankers or DEFAULT_RERANKERS, DEFAULT_LAMBDAS if lambdas is None else lambdas)
    for label, folder in distinct_names(folders).items():
        runs += _measured(folder, label, out.parent, asked, config_dict or {})
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


def _given(**options: Any) -> list[str]:
    return [name for name, value in options.items() if value is not None]


def _there(folder: Path) -> list[Path]:
    """What has been measured of a folder."""
    return sorted({*folder.glob(FILE), *folder.glob(f"*/{FILE}")})


def _measured(
    folder: Path, label: str, beside: Path, asked: dict[str, Sequence[float]], changes: dict[str, Any]
) -> list[tuple[str, Measured, float]]:
    """`(label, measurement, seconds of training)` of everything in a folder."""
    if there := _there(folder):
        names = [label if len(there) == 1 else f"{label}/{path.parent.name}" for path in there]
        training = _training(folder / "model") if len(there) == 1 else float("nan")
        return [(name, Measured.load(path), training) for name, path in zip(names, there, strict=True)]
    own = beside / f"measured-{label.replace('/', '-')}"
    measured = measure(folder / "model.pth", asked, {**changes, "output_dir": str(own)})
    measured.save(own / FILE)
    return [(label, measured, _training(folder))]


def _training(folder: Path) -> float:
    """Seconds, or nan where a folder does not say."""
    result = folder / "result.json"
    timing = json.loads(result.read_text(encoding="utf-8"))["timing"] if result.is_file() else {}
    return timing.get("training", float("nan"))
