"""Users one by one: how S_KL spreads over them (the paper's Figure 7), and what one of them gets (Figure 8)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import gaussian_kde

from recbole_leaprec.config import check_lambdas
from recbole_leaprec.measured import FILE, METRICS, Measured, measure
from recbole_leaprec.plots import plot_density
from recbole_leaprec.reranking import get_reranker
from recbole_leaprec.run_folder import check_unused, write_csv, written_whole

DEFAULT_LAMBDAS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9)
GRID = 241
"""Places at which a density is worked out."""


def users(
    output_dir: str | Path,
    checkpoint: str | Path,
    user: str | None = None,
    reranker: str = "leaprec",
    lambdas: Sequence[float] = DEFAULT_LAMBDAS,
    *,
    config_dict: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The spread of S_KL over test users at several lambdas; and for one user the lists at each.

    Leaves `users.csv`, a row for each user and lambda, `density.csv`, `density.png` and `.svg`, and `case-<user>.md` in `output_dir`.

    Args:
        checkpoint: the model.pth of a run.
        user: a token of the dataset; None for no case study.
        config_dict: keys to change, those in `MEASURED_KEYS`.

    Returns:
        `density`, the table; `case`, the text, or None.

    Raises:
        ValueError: bad arguments, as for `evaluate`; a user that the dataset does not have.
    """
    folder = Path(output_dir)
    check_unused(folder, ["users.csv"])
    if get_reranker(reranker).target is None:
        raise ValueError(f"reranker: {reranker} has no lambda")
    check_lambdas(lambdas)
    lambdas = list(dict.fromkeys(lambdas))
    changes = {**(config_dict or {}), "output_dir": str(folder / "measured")}
    measured = measure(checkpoint, {reranker: lambdas}, changes, "users.log", user)
    measured.save(folder / "measured" / FILE)
    case = None if user is None else case_study(measured, user, reranker, lambdas)
    write_csv(folder / "users.csv", user_table(measured, reranker, lambdas))
    table = density_table(measured, reranker, lambdas, density_grid(measured))
    plot_density(table, measured.info["dataset"], measured.k, folder / "density")
    write_csv(folder / "density.csv", table)
    if case is not None:
        with written_whole(folder / f"case-{re.sub(r'[^A-Za-z0-9._-]', '_', user)}.md") as scratch:
            scratch.write_text(case, encoding="utf-8")
    return {"density": table, "case": case}


def user_table(measured: Measured, reranker: str, lambdas: Sequence[float]) -> pd.DataFrame:
    """`user`, `lambda` and the metrics, a row for each user and lambda."""
    tables = []
    for lam in lambdas:
        figures = measured.figures[measured.place[reranker, lam]]
        columns = {f"{metric}@{measured.k}": values for metric, values in zip(METRICS, figures, strict=True)}
        tables.append(pd.DataFrame({"user": measured.users, "lambda": lam, **columns}))
    return pd.concat(tables, ignore_index=True)


def density_table(measured: Measured, reranker: str, lambdas: Sequence[float], grid: np.ndarray) -> pd.DataFrame:
    """`lambda`, `skl`, `density`, and the means `ndcg` and `mean_skl` at that lambda, a row for each place of the grid and lambda."""
    places = [measured.place[reranker, lam] for lam in lambdas]
    columns = zip(lambdas, measured.figure("skl")[places], measured.figure("ndcg")[places], strict=True)
    return pd.concat(
        [
            pd.DataFrame(
                {"lambda": lam, "skl": grid, "density": density(skl, grid), "ndcg": ndcg.mean(), "mean_skl": skl.mean()}
            )
            for lam, skl, ndcg in columns
        ],
        ignore_index=True,
    )


def density_grid(measured: Measured) -> np.ndarray:
    """S_KL figures from 0 to where all but a few users of the model's own ranking are."""
    return np.linspace(0, max(float(np.quantile(measured.figure("skl")[0], 0.99)), 1e-3), GRID)


def density(values: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """The kernel density estimate of the users' S_KL: Gaussian kernels, Scott's bandwidth; nan where all have the same S_KL.

    What the kernels would put below 0, where no S_KL is, is put back at the same distance above.
    """
    if len(values) < 2 or np.ptp(values) == 0:
        return np.full(len(grid), np.nan)
    kernels = gaussian_kde(values)
    return kernels(grid) + kernels(-grid)


def case_study(measured: Measured, user: str, reranker: str, lambdas: Sequence[float]) -> str:
    """One test user's history, and the lists at several lambdas with the true next item marked, as Markdown."""
    number = measured.users.tolist().index(user)
    target = measured.targets[number]
    history = [item for item in measured.history[number] if item]
    lines = [
        f"# User {user}",
        "",
        f"{measured.info['model']} on {measured.info['dataset']}. The next item is **{_name(measured, target)}**.",
        "",
        f"History: {measured.history_length[number]} items, the last {len(history)}, oldest first:",
        "",
        *(f"- {_name(measured, item)}" for item in history),
        "",
        "Recent mix: " + _mix(measured, measured.preference[number]),
    ]
    for lam in lambdas:
        place = measured.place[reranker, lam]
        items = [item for item in measured.lists[place, number] if item]
        members = measured.item_categories[items]
        members |= ~members.any(1, keepdims=True)  # an item without any counts as a little of each
        mix = (members / members.sum(1, keepdims=True)).sum(0) / max(len(items), 1)
        skl = measured.figure("skl")[place, number]
        lines += ["", f"## {reranker}, lambda {lam:g}: S_KL@{measured.k} {skl:.4f}", ""]
        lines += [
            f"{row}. {_name(measured, item)} (own place {rank}){' **<- the next item**' if item == target else ''}"
            for row, (item, rank) in enumerate(zip(items, measured.ranks[place, number], strict=False), 1)
        ]
        lines += ["", "Mix: " + _mix(measured, mix)]
    return "\n".join(lines) + "\n"


def _name(measured: Measured, item: int) -> str:
    own = measured.item_categories[item]
    return f"{measured.items[item]} [{', '.join(measured.categories[own]) or 'no category'}]"


def _mix(measured: Measured, shares: np.ndarray) -> str:
    return ", ".join(
        f"{measured.categories[c]} {shares[c]:.0%}" for c in np.argsort(-shares, kind="stable") if shares[c] >= 0.005
    )
