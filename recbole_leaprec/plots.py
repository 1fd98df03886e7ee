"""Pictures, as PNG and SVG."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib import rc_context
from matplotlib.figure import Figure

_TITLES = {"ndcg": "nDCG", "hit": "HR", "skl": "S_KL"}


def plot_tradeoff(table: pd.DataFrame, path: Path) -> None:
    """nDCG and HR against S_KL, a curve for each model and reranker, stars for the backbones' own rankings.

    Args:
        table: what `tradeoff` returns.
        path: without its ending.
    """
    k = next(column for column in table if column.startswith("ndcg@")).partition("@")[2].partition("_")[0]
    names = _names(table)
    figure = Figure(figsize=(11, 4.3), layout="constrained")
    panels = figure.subplots(1, 2)
    for panel, metric in zip(panels, ("ndcg", "hit"), strict=True):
        for (checkpoint, reranker), rows in table.groupby(["checkpoint", "reranker"], sort=False):
            rows = rows.sort_values("lambda")
            label = f"{names[checkpoint]} {reranker}".strip()
            if reranker == "none":
                panel.plot(rows[f"skl@{k}"], rows[f"{metric}@{k}"], "*", color="black", markersize=12, zorder=3)
                panel.annotate(names[checkpoint] or "backbone", (rows[f"skl@{k}"].iloc[0], rows[f"{metric}@{k}"].iloc[0]),
                               textcoords="offset points", xytext=(-6, -14), ha="right", fontsize=8)  # fmt: skip
            else:
                panel.plot(rows[f"skl@{k}"], rows[f"{metric}@{k}"], "o-", markersize=4, label=label)
        panel.set(xlabel=f"{_TITLES['skl']}@{k} (less is more calibrated)", ylabel=f"{_TITLES[metric]}@{k}")
        panel.grid(alpha=0.3)
    if panels[0].get_legend_handles_labels()[0]:
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
