"""A report's files."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from recbole_leaprec.curves import Comparison, Curve
from recbole_leaprec.measured import BASE, PROTOCOL_KEYS, WINDOW, Measured
from recbole_leaprec.plots import plot_density, plot_methods, plot_shift
from recbole_leaprec.report.data import report_data
from recbole_leaprec.report.page import page
from recbole_leaprec.report.tables import all_tables
from recbole_leaprec.run_folder import write_csv, written_whole

EXPLORED = 50
"""Users that a page lets one look at."""


def write_report(
    out: Path,
    title: str,
    curves: Sequence[Curve],
    comparisons: Sequence[Comparison],
    match: Sequence[float] = (),
    users: int = EXPLORED,
) -> None:
    """The page at `out`, and beside it its tables as csv and its pictures as PNG and SVG."""
    folder, first = out.parent, curves[0].runs[0]
    for run in {id(run): run for curve in curves for run in curve.runs}.values():
        _check_same_users(run, first)
    tables = all_tables(curves, comparisons, match)
    reference = comparisons[0].reference if comparisons else curves[0]
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        write_csv(folder / f"{name}.csv", table)
    _draw(folder, tables, reference, {one.reference.name for one in comparisons})
    data = report_data(title, time.strftime("%Y-%m-%d %H:%M"), curves, comparisons, tables, reference.name, users)
    with written_whole(out) as scratch:
        scratch.write_text(page(data), encoding="utf-8")


def _check_same_users(one: Measured, other: Measured) -> None:
    """ValueError for measurements of other users or items, or in another way: they cannot stand in one table."""
    differ = [key for key in PROTOCOL_KEYS if one.info["config"][key] != other.info["config"][key]]
    differ += ["K"] if one.k != other.k else []
    differ += [
        key
        for key in ("users", "targets", "items", "categories")
        if not np.array_equal(getattr(one, key), getattr(other, key))
    ]
    if differ:
        raise ValueError(
            f"{one.info['checkpoint']} and {other.info['checkpoint']} cannot be compared: other {', '.join(differ)} "
            f"({one.info['dataset']} and {other.info['dataset']})"
        )


def _draw(folder: Path, tables, reference: Curve, references: set[str]) -> None:
    k, dataset = reference.runs[0].k, reference.runs[0].info["dataset"]
    tradeoff, density = tables["tradeoff"], tables["density"]
    ablation = tradeoff["group"] == "ablation"
    plot_methods(tradeoff[~ablation], k, folder / "tradeoff")
    if ablation.any():
        plot_methods(tradeoff[ablation | tradeoff["method"].isin(references)], k, folder / "ablation")
    if reference.reranker != BASE:
        plot_density(density[density["method"] == reference.name], f"{reference.name} on {dataset}", k, folder / "density")
    plot_shift(tables["shift"], WINDOW, dataset, folder / "shift")
