"""Writes the files of a report."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from recbole_leaprec.analysis.curves import Comparison, Curve
from recbole_leaprec.analysis.measurement import BASE, Measurement
from recbole_leaprec.analysis.plots import plot_density, plot_methods, plot_shift
from recbole_leaprec.common.defaults import EXPLORED_USERS, SHIFT_WINDOW
from recbole_leaprec.common.files import write_csv, written_whole
from recbole_leaprec.common.slow_step import slow_step
from recbole_leaprec.page.data import page_data
from recbole_leaprec.page.html import page
from recbole_leaprec.page.tables import all_tables
from recbole_leaprec.settings.keys import PROTOCOL_KEYS

UNFINISHED = ".report-unfinished"
"""A file that exists while a report is written. It stays if writing is interrupted; then the same command may overwrite
the report."""


def write_page(
    out: Path,
    title: str,
    curves: Sequence[Curve],
    comparisons: Sequence[Comparison],
    match: Sequence[float] = (),
    users: int = EXPLORED_USERS,
) -> None:
    """Write the page to `out`, and beside it the tables as CSV and the pictures as PNG and SVG."""
    folder, first = out.parent, curves[0].runs[0]
    for run in {id(run): run for curve in curves for run in curve.runs}.values():
        _check_same_users(run, first)
    with slow_step("working out intervals, comparisons and densities"):
        tables = all_tables(curves, comparisons, match)
    reference = comparisons[0].reference if comparisons else curves[0]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / UNFINISHED).touch()
    for name, table in tables.items():
        write_csv(folder / f"{name}.csv", table)
    with slow_step("drawing"):
        _draw(folder, tables, reference, {one.reference.name for one in comparisons})
    data = page_data(title, time.strftime("%Y-%m-%d %H:%M"), curves, comparisons, tables, reference.name, users)
    with written_whole(out) as scratch:
        scratch.write_text(page(data), encoding="utf-8")
    (folder / UNFINISHED).unlink()


def _check_same_users(one: Measurement, other: Measurement) -> None:
    """ValueError if two measurements have different users, items or protocols: they cannot be in one table."""
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


def _draw(folder: Path, tables: Mapping[str, pd.DataFrame], reference: Curve, references: set[str]) -> None:
    k, dataset = reference.runs[0].k, reference.runs[0].info["dataset"]
    tradeoff, density = tables["tradeoff"], tables["density"]
    ablation = tradeoff["group"] == "ablation"
    plot_methods(tradeoff[~ablation], k, folder / "tradeoff")
    if ablation.any():
        plot_methods(tradeoff[ablation | tradeoff["method"].isin(references)], k, folder / "ablation")
    if reference.reranker != BASE:
        plot_density(density[density["method"] == reference.name], f"{reference.name} on {dataset}", k, folder / "density")
    plot_shift(tables["shift"], SHIFT_WINDOW, dataset, folder / "shift")
