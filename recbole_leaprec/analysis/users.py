"""Results per user: a table of their metrics, how S_KL spreads over them, and the lists of one user."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from recbole_leaprec.analysis.case_study import case_study
from recbole_leaprec.analysis.density import density_grid, density_table
from recbole_leaprec.analysis.measure import measure
from recbole_leaprec.analysis.measurement import FILE, Measurement
from recbole_leaprec.analysis.plots import plot_density
from recbole_leaprec.common.defaults import USERS_LAMBDAS
from recbole_leaprec.common.files import check_unused, taken, write_csv, written_whole
from recbole_leaprec.evaluator.per_user import METRICS
from recbole_leaprec.reranking.registry import get_reranker
from recbole_leaprec.settings.keys import check_lambdas


def users(
    output_dir: str | Path,
    checkpoint: str | Path,
    user: str | None = None,
    reranker: str = "leaprec",
    lambdas: Sequence[float] = USERS_LAMBDAS,
    *,
    config_dict: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The spread of S_KL over test users at several lambdas, and for one user the list at each lambda.

    Writes `users.csv` (one row per user and lambda), `density.csv`, `density.png` and `.svg`, and `case-<user>.md` to
    `output_dir`.

    Args:
        checkpoint: the model.pth of a run.
        user: the token of a test user; None for no case study.
        config_dict: keys to change, those in `MEASUREMENT_KEYS`.

    Returns:
        `density`: the table; `case`: the case study as text, or None.

    Raises:
        ValueError: bad arguments, as for `evaluate`; a user that the dataset does not have.
    """
    folder = Path(output_dir)
    check_unused(folder, ["users.csv"])
    if get_reranker(reranker).preference is None:
        raise ValueError(f"reranker: {reranker} has no lambda")
    check_lambdas(lambdas)
    lambdas = list(dict.fromkeys(lambdas))
    changes = {**(config_dict or {}), "output_dir": str(folder / "measured")}
    with taken(folder):
        check_unused(folder, ["users.csv"])
        return _users(folder, measure(checkpoint, {reranker: lambdas}, changes, "users.log", user), user, reranker, lambdas)


def _users(folder: Path, measured: Measurement, user: str | None, reranker: str, lambdas: Sequence[float]) -> dict[str, Any]:
    measured.save(folder / "measured" / FILE)
    case = None if user is None else case_study(measured, user, reranker, lambdas)
    write_csv(folder / "users.csv", user_table(measured, reranker, lambdas))
    table = density_table(measured, reranker, lambdas, density_grid(measured))
    plot_density(table, measured.info["dataset"], measured.k, folder / "density")
    write_csv(folder / "density.csv", table)
    if user is not None and case is not None:
        with written_whole(folder / f"case-{re.sub(r'[^A-Za-z0-9._-]', '_', user)}.md") as scratch:
            scratch.write_text(case, encoding="utf-8")
    return {"density": table, "case": case}


def user_table(measured: Measurement, reranker: str, lambdas: Sequence[float]) -> pd.DataFrame:
    """One row per user and lambda: `user`, `lambda` and the metrics."""
    tables = []
    for lam in lambdas:
        figures = measured.figures[measured.place[reranker, lam]]
        columns = {f"{metric}@{measured.k}": values for metric, values in zip(METRICS, figures, strict=True)}
        tables.append(pd.DataFrame({"user": measured.users, "lambda": lam, **columns}))
    return pd.concat(tables, ignore_index=True)
