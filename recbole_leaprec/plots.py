"""Pictures, as PNG and SVG."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib import colormaps, rc_context
from matplotlib.figure import Figure

_MARKERS = "osD^vPX<>"
_TITLES = {"ndcg": "nDCG", "hit": "HR", "skl": "S_KL"}


def plot_tradeoff(table: pd.DataFrame, path: Path) -> None:
    """nDCG and HR against S_KL, a curve for each model and reranker, stars for the models' own rankings.

    Args:
        table: what `tradeoff` returns.
        path: without its ending.
    """
    k = next(column for column in table if column.startswith("ndcg@")).partition("@")[2].partition("_")[0]
    names = _names(table)
    curves, stars = {}, {}
    for (checkpoint, reranker), rows in table.groupby(["checkpoint", "reranker"], sort=False):
        if reranker == "none":
            stars[names[checkpoint] or "backbone"] = rows
        else:
            curves[f"{names[checkpoint]} {reranker}".strip()] = rows
    _draw_curves(curves, stars, k, path)


def plot_methods(table: pd.DataFrame, k: int, path: Path) -> None:
    """The same for the methods of a study; `table` as `curve_table` makes it."""
    curves, stars = {}, {}
    for method, rows in table.groupby("method", sort=False):
        own, reranked = rows[rows["reranker"] == "none"], rows[rows["reranker"] != "none"]
        if reranked.empty:
            stars[method] = own
        else:
            curves[method] = reranked
            place = tuple(own[[f"skl@{k}", f"ndcg@{k}"]].iloc[0])
            if all(tuple(other[[f"skl@{k}", f"ndcg@{k}"]].iloc[0]) != place for other in stars.values()):
                stars[f"own ranking of {method}"] = own
    _draw_curves(curves, stars, k, path)


def _draw_curves(curves: dict[str, pd.DataFrame], stars: dict[str, pd.DataFrame], k: int | str, path: Path) -> None:
    figure = Figure(figsize=(11, 4.3), layout="constrained")
    panels = figure.subplots(1, 2)
    for panel, metric in zip(panels, ("ndcg", "hit"), strict=True):
        for number, (label, rows) in enumerate(curves.items()):
            rows = rows.sort_values("lambda")
            style = f"{_MARKERS[number % len(_MARKERS)]}-"
            panel.plot(rows[f"skl@{k}"], rows[f"{metric}@{k}"], style, markersize=4, label=label)
        for label, rows in stars.items():
            place = rows[f"skl@{k}"].iloc[0], rows[f"{metric}@{k}"].iloc[0]
            panel.plot(*place, "*", color="black", markersize=12, zorder=3)
            panel.annotate(label, place, textcoords="offset points", xytext=(-6, -14), ha="right", fontsize=8)
        panel.set(xlabel=f"{_TITLES['skl']}@{k} (less is more calibrated)", ylabel=f"{_TITLES[metric]}@{k}")
        panel.grid(alpha=0.3)
    if curves:
        panels[0].legend(fontsize=8)
    save(figure, path)


def plot_shift(table: pd.DataFrame, window: int, dataset: str, path: Path) -> None:
    """The divergence between windows against how far apart they are."""
    figure = Figure(figsize=(5.5, 4), layout="constrained")
    panel = figure.subplots()
    panel.plot(table["interval"], table["kl"], "o-", markersize=4)
    panel.set(xlabel="interval (items)", ylabel=f"KL divergence, windows of {window} items", title=dataset, ylim=(0, None))
    panel.grid(alpha=0.3)
    save(figure, path)


def plot_density(table: pd.DataFrame, dataset: str, k: int, path: Path) -> None:
    """The spread of S_KL over users, a line for each lambda; `table` as `density_table` makes it."""
    figure = Figure(figsize=(6, 4.2), layout="constrained")
    panel = figure.subplots()
    for number, (lam, rows) in enumerate(table.groupby("lambda")):
        label = f"lambda {lam:g}, nDCG@{k} {rows['ndcg'].iloc[0]:.4f}"
        panel.plot(
            rows["skl"],
            rows["density"],
            label=label,
            color=colormaps["viridis"](number / max(table["lambda"].nunique() - 1, 1)),
        )
    panel.set(xlabel=f"{_TITLES['skl']}@{k}", ylabel="density over users", title=dataset, ylim=(0, None), xlim=(0, None))
    panel.legend(fontsize=8)
    panel.grid(alpha=0.3)
    save(figure, path)


def _names(table: pd.DataFrame) -> dict[str, str]:
    """What to call each checkpoint: nothing if there is one, else the model and as much of the path as tells them apart."""
    models = dict(zip(table["checkpoint"], table["model"], strict=True))
    if len(models) == 1:
        return dict.fromkeys(models, "")
    folders = [Path(checkpoint).parent.parts for checkpoint in models]
    depth = 1
    while len({parts[-depth:] for parts in folders}) < len({*folders}):
        depth += 1
    return {
        checkpoint: f"{models[checkpoint]} ({'/'.join(parts[-depth:])})"
        for checkpoint, parts in zip(models, folders, strict=True)
    }


def save(figure: Figure, path: Path) -> None:
    """As `path.png` and `path.svg`."""
    with rc_context({"svg.fonttype": "none"}):  # text stays text
        for suffix in (".png", ".svg"):
            figure.savefig(path.with_suffix(suffix), dpi=120)
