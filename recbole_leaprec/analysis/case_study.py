"""The lists of one user at several lambdas (the paper's Figure 8), as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recbole_leaprec.analysis.measurement import Measurement


def case_study(measured: Measurement, user: str, reranker: str, lambdas: Sequence[float]) -> str:
    """One test user's history and lists at several lambdas, as Markdown. The true next item is marked."""
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
        "Recent mix: " + _mix(measured, measured.preference(number)),
    ]
    for lam in lambdas:
        place = measured.place[reranker, lam]
        items = [item for item in measured.lists[place, number] if item]
        members = measured.item_categories[items]
        members |= ~members.any(1, keepdims=True)  # an item without a category belongs to all
        mix = (members / members.sum(1, keepdims=True)).sum(0) / max(len(items), 1)
        skl = measured.metric("skl")[place, number]
        lines += ["", f"## {reranker}, lambda {lam:g}: S_KL@{measured.k} {skl:.4f}", ""]
        lines += [
            f"{row}. {_name(measured, item)} (own place {rank}){' **<- the next item**' if item == target else ''}"
            for row, (item, rank) in enumerate(zip(items, measured.ranks[place, number], strict=False), 1)
        ]
        lines += ["", "Mix: " + _mix(measured, mix)]
    return "\n".join(lines) + "\n"


def _name(measured: Measurement, item: int) -> str:
    own = measured.item_categories[item]
    return f"{measured.items[item]} [{', '.join(measured.categories[own]) or 'no category'}]"


def _mix(measured: Measurement, shares: np.ndarray) -> str:
    return ", ".join(
        f"{measured.categories[c]} {shares[c]:.0%}" for c in np.argsort(-shares, kind="stable") if shares[c] >= 0.005
    )
