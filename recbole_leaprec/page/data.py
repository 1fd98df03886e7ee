"""The content of the page as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from recbole_leaprec.analysis.curves import Comparison, Curve
from recbole_leaprec.analysis.measurement import BASE, Measurement
from recbole_leaprec.common.defaults import SHIFT_WINDOW
from recbole_leaprec.evaluator.per_user import METRICS
from recbole_leaprec.run_folder import versions


def page_data(
    title: str,
    made: str,
    curves: Sequence[Curve],
    comparisons: Sequence[Comparison],
    tables: dict[str, pd.DataFrame],
    reference: str,
    users: int,
) -> dict[str, Any]:
    """The dict that `html.page` makes the page from. Every number is taken from `tables` unchanged.

    Args:
        comparisons: the comparisons in the tables. They give each method's reference, even if it has no row in the
            tables because it reaches no S_KL level.
        reference: the curve that the page begins with.
    """
    first = curves[0].runs[0]
    explored = explored_users(first, users)
    explorer = [curve for curve in curves if curve.reranker != BASE]
    shown = sorted(
        {int(item) for curve in explorer for item in _items(curve, explored)} | {int(i) for i in _seen(first, explored)}
    )
    return {
        "title": title,
        "made": made,
        "versions": versions(),
        "k": first.k,
        "dataset": {
            "name": first.info["dataset"], "users": len(first.users), "items": len(first.items) - 1,
            "interactions": first.info["interactions"], "categories": first.categories.tolist(),
        },
        "methods": [_method(curve, tables["tradeoff"]) for curve in curves],
        "reference": reference,
        "references": [
            {"name": one.reference.name, "methods": [curve.name for curve in one.curves if curve is not one.reference]}
            for one in comparisons
        ],
        "comparisons": tables["comparison"].to_dict("records"),
        "times": tables["times"].to_dict("records"),
        "density": _density(tables["density"]),
        "shift": {"window": SHIFT_WINDOW, "points": tables["shift"].dropna().to_dict("records")},
        "items": {
            str(item): {"name": str(first.items[item]), "categories": np.flatnonzero(first.item_categories[item]).tolist()}
            for item in shown
        },
        "explorer": {
            "methods": [{"name": curve.name, "lambdas": curve.lambdas} for curve in explorer],
            "users": [_user(first, explorer, number) for number in explored],
        },
    }  # fmt: skip


def explored_users(measured: Measurement, count: int) -> list[int]:
    """Users for the user explorer, spread evenly over the S_KL of the model's own ranking, lowest S_KL first."""
    order = np.argsort(measured.metric("skl")[0], kind="stable")
    return order[np.unique(np.linspace(0, len(order) - 1, min(count, len(order))).round().astype(int))].tolist()


def _method(curve: Curve, table: pd.DataFrame) -> dict[str, Any]:
    rows = table[table["method"] == curve.name].rename(columns=lambda column: column.replace(f"@{curve.runs[0].k}", ""))
    own, points = rows[rows["reranker"] == BASE], rows[rows["reranker"] != BASE]
    columns = [f"{metric}{end}" for metric in METRICS for end in ("", "_low", "_high")]
    return {
        "name": curve.name,
        "group": curve.group,
        "model": curve.model,
        "reranker": curve.reranker,
        "seeds": len(curve.runs),
        "base": own[columns].to_dict("records")[0],
        "points": (own if points.empty else points)[["lambda", *columns, "seconds"]].to_dict("records"),
    }


def _density(table: pd.DataFrame) -> dict[str, Any] | None:
    if table.empty:
        return None
    by_method = {name: [own for _, own in rows.groupby("lambda")] for name, rows in table.groupby("method", sort=False)}
    first, *_ = by_method.values()
    methods = [
        {
            "name": name,
            "lambdas": [own["lambda"].iloc[0] for own in by_lambda],
            "ndcg": [own["ndcg"].iloc[0] for own in by_lambda],
            "skl": [own["mean_skl"].iloc[0] for own in by_lambda],
            "curves": [own["density"].tolist() for own in by_lambda],
        }
        for name, by_lambda in by_method.items()
    ]
    return {"grid": first[0]["skl"].tolist(), "methods": methods}


def _user(first: Measurement, curves: Sequence[Curve], number: int) -> dict[str, Any]:
    lists, skl, rank = {}, {}, {}
    for curve in curves:
        run = curve.runs[0]
        places = [run.place[curve.reranker, lam] for lam in curve.lambdas]
        lists[curve.name] = [[int(item) for item in run.lists[place, number] if item] for place in places]
        skl[curve.name] = run.metric("skl")[places, number].tolist()
        rank[curve.name] = {
            str(item): int(own)
            for place in (0, *places)
            for item, own in zip(run.lists[place, number], run.ranks[place, number], strict=True)
            if item
        }
    return {
        "user": str(first.users[number]),
        "history": [int(item) for item in first.history[number] if item],
        "history_length": int(first.history_length[number]),
        "preference": [round(float(share), 6) for share in first.preference(number)],
        "target": int(first.targets[number]),
        "lists": lists,
        "skl": skl,
        "rank": rank,
    }


def _items(curve: Curve, users: Sequence[int]) -> np.ndarray:
    run = curve.runs[0]
    places = [0, *(run.place[curve.reranker, lam] for lam in curve.lambdas)]
    items = np.unique(run.lists[places][:, list(users)])
    return items[items > 0]


def _seen(measured: Measurement, users: Sequence[int]) -> np.ndarray:
    items = np.unique(np.concatenate([measured.history[list(users)].ravel(), measured.targets[list(users)]]))
    return items[items > 0]
