"""Pictures of curves, shifts, densities and datasets, as PNG and SVG."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import colormaps, rc_context
from matplotlib.figure import Figure

from recbole_leaprec.analysis.measurement import BASE
from recbole_leaprec.common.files import distinct_names, written_whole
from recbole_leaprec.common.metric_titles import TITLES

_MARKERS = "osD^vPX<>"


def plot_tradeoff(table: pd.DataFrame, path: Path) -> None:
    """Draw nDCG and HR against S_KL: one curve per model and reranker, and stars for the models' own rankings.

    Args:
        table: the result of `tradeoff`.
        path: the file without its ending.
    """
    k = next(column for column in table if column.startswith("ndcg@")).partition("@")[2].partition("_")[0]
    names = _names(table)
    curves, stars = {}, {}
    for (checkpoint, reranker), rows in table.groupby(["checkpoint", "reranker"], sort=False):
        if reranker == BASE:
            stars[f"{names[checkpoint]} own ranking".strip()] = rows
        else:
            curves[f"{names[checkpoint]} {reranker}".strip()] = rows
    _draw_curves(curves, stars, k, path)


def plot_methods(table: pd.DataFrame, k: int, path: Path) -> None:
    """Draw nDCG and HR against S_KL for the methods of a study, with each star in the colour of its method.

    Args:
        table: the result of `curve_table`.
    """
    reranked = table["reranker"] != BASE
    curves, stars = (dict(iter(rows.groupby("method", sort=False))) for rows in (table[reranked], table[~reranked]))
    _draw_curves(curves, stars, k, path)


def _draw_curves(curves: dict[str, pd.DataFrame], stars: dict[str, pd.DataFrame], k: int | str, path: Path) -> None:
    """Draw curves and stars. A star with the name of a curve has its colour; any other has a line in the legend."""
    figure = Figure(figsize=(11, 4.3), layout="constrained")
    panels = figure.subplots(1, 2)
    names = list(dict.fromkeys([*curves, *stars]))
    colour = {name: f"C{number % 10}" for number, name in enumerate(names)}
    for panel, metric in zip(panels, ("ndcg", "hit"), strict=True):
        for number, (name, rows) in enumerate(curves.items()):
            rows = rows.sort_values("lambda")
            style = f"{_MARKERS[number % len(_MARKERS)]}-"
            panel.plot(rows[f"skl@{k}"], rows[f"{metric}@{k}"], style, color=colour[name], markersize=4, label=name)
        for name, rows in stars.items():
            label = None if name in curves else name
            panel.plot(rows[f"skl@{k}"], rows[f"{metric}@{k}"], "*", color=colour[name], markersize=12, markeredgecolor="black",
                       markeredgewidth=0.6, zorder=3, label=label)  # fmt: skip
        panel.set(
            xlabel=f"{TITLES['skl']}@{k} (less is more calibrated; stars: without reranking)",
            ylabel=f"{TITLES[metric]}@{k}",
        )
        panel.grid(alpha=0.3)
    panels[0].legend(fontsize=8)
    save(figure, path)


def plot_shift(table: pd.DataFrame, window: int, dataset: str, path: Path) -> None:
    """Draw the divergence between two windows against the number of items between their starts."""
    figure = Figure(figsize=(5.5, 4), layout="constrained")
    panel = figure.subplots()
    panel.plot(table["interval"], table["kl"], "o-", markersize=4)
    panel.set(
        xlabel="interval (items, from start to start)",
        ylabel=f"KL divergence, windows of {window} items",
        title=dataset,
        ylim=(0, None),
    )
    panel.grid(alpha=0.3)
    save(figure, path)


def plot_density(table: pd.DataFrame, dataset: str, k: int, path: Path) -> None:
    """Draw the spread of S_KL over users, one line per lambda, or per second lambda if there are more than seven.

    Args:
        table: the result of `density_table`.
    """
    figure = Figure(figsize=(6, 4.2), layout="constrained")
    panel = figure.subplots()
    lambdas = sorted(table["lambda"].unique())
    lambdas = lambdas if len(lambdas) <= 7 else lambdas[::2]
    for number, lam in enumerate(lambdas):
        rows = table[table["lambda"] == lam]
        label = f"lambda {lam:g}, nDCG@{k} {rows['ndcg'].iloc[0]:.4f}"
        panel.plot(rows["skl"], rows["density"], label=label, color=colormaps["viridis"](number / max(len(lambdas) - 1, 1)))
    panel.set(xlabel=f"{TITLES['skl']}@{k}", ylabel="density over users", title=dataset, ylim=(0, None), xlim=(0, None))
    panel.legend(fontsize=8)
    panel.grid(alpha=0.3)
    save(figure, path)


def plot_dataset(lengths: np.ndarray, categories: dict[str, int], shift: pd.Series, dataset: str, path: Path) -> None:
    """Draw side by side: lengths of histories, items per category, and the shift of the category mix by interval."""
    figure = Figure(figsize=(13, 4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    edges = np.geomspace(max(lengths.min(), 1), lengths.max() + 1, 30)
    left.hist(lengths, bins=edges)
    left.set(xscale="log", xlabel="interactions per user", ylabel="users", title=dataset)
    shown = dict(list(categories.items())[:20])
    middle.barh([_short(name) for name in reversed(shown)], list(reversed(shown.values())))
    rest = len(categories) - len(shown)
    middle.set(xlabel="items per category" + (f" (the {len(shown)} largest of {len(categories)})" if rest else ""))
    middle.tick_params(axis="y", labelsize=7)
    right.plot(shift.index, shift.to_numpy(), "o-", markersize=4)
    right.set(xlabel="interval (items, from start to start)", ylabel="KL divergence of two windows", ylim=(0, None))
    for panel in (left, right):
        panel.grid(alpha=0.3)
    save(figure, path)


def _short(name: str) -> str:
    return name if len(name) <= 28 else f"{name[:27]}…"


def _names(table: pd.DataFrame) -> dict[str, str]:
    """A label per checkpoint: empty if there is only one, else the model and enough of the path to tell them apart."""
    models = dict(zip(table["checkpoint"], table["model"], strict=True))
    if len(models) == 1:
        return dict.fromkeys(models, "")
    label = {folder: name for name, folder in distinct_names([Path(checkpoint).parent for checkpoint in models]).items()}
    return {checkpoint: f"{model} ({label[Path(checkpoint).parent]})" for checkpoint, model in models.items()}


def save(figure: Figure, path: Path) -> None:
    """Save a picture as `path.png` and `path.svg`."""
    with rc_context({"svg.fonttype": "none"}):  # text stays text
        for suffix in (".png", ".svg"):
            with written_whole(path.with_suffix(suffix)) as scratch:
                figure.savefig(scratch, format=suffix[1:], dpi=120)
