"""The paper's formulas as written, in plain Python: slow, obvious, and independent of the package."""

from __future__ import annotations

import math

import torch


def distribution(categories: list[str], names: list[str]) -> list[float]:
    """p(c|i); an item without categories spreads over all."""
    categories = sorted(set(categories)) or names
    return [1 / len(categories) if name in categories else 0.0 for name in names]


def rows(categories) -> torch.Tensor:
    """`[I, C]` p(c|i) of all items of an `ItemCategories`, from its flat lists of members."""
    table = torch.zeros(categories.n_items, categories.n_categories, dtype=torch.float64)
    begin, members = categories.member_begin.tolist(), categories.members.tolist()
    for item, profile in enumerate(categories.profile_of_item.tolist()):
        own = members[begin[profile] : begin[profile + 1]]
        table[item, own] = 1 / max(len(own), 1)
    return table


def preference(history: list[list[float]], alpha: float) -> list[float]:
    """Eq. 2 from the category distributions of a history, oldest first."""
    last = len(history) - 1
    weights = [alpha ** (last - t) for t in range(len(history))]
    return [sum(w * p[c] for w, p in zip(weights, history, strict=True)) / sum(weights) for c in range(len(history[0]))]


def kl(p: list[float], q: list[float], beta: float) -> float:
    """Eq. 1 and 4: sum_c p log(p / ((1-beta) q + beta p))."""
    return sum(pc * math.log(pc / ((1 - beta) * qc + beta * pc)) for pc, qc in zip(p, q, strict=True) if pc > 0)


def mean(rows: list[list[float]], width: int) -> list[float]:
    return [sum(row[c] for row in rows) / max(len(rows), 1) for c in range(width)]


def greedy(scores: list[float], p: list[float], items: list[list[float]], k: int, weight, beta: float) -> list[int]:
    """Eq. 12, every item tried at every step; equal objectives go to the higher score, then to the lower id."""
    picked: list[int] = []
    for place in range(1, k + 1):
        w = weight(place)
        now = kl(p, mean([items[i] for i in picked], len(p)), beta)

        def objective(i, w=w, now=now):
            after = kl(p, mean([items[j] for j in [*picked, i]], len(p)), beta)
            return (1 - w) * scores[i] - w * (after - now)

        allowed = [i for i in range(1, len(scores)) if i not in picked and scores[i] > -math.inf]
        if not allowed:
            return [*picked, *[0] * (k - len(picked))]
        values = {i: objective(i) for i in allowed}
        best = max(values.values())
        picked.append(min((i for i in allowed if values[i] >= best - 1e-9), key=lambda i: (-scores[i], i)))
    return picked


def log_sigmoid(x: float) -> float:
    return -math.log1p(math.exp(-x)) if x > 0 else x - math.log1p(math.exp(x))


def log_softmax(scores: list[float]) -> float:
    """log of the first score's share."""
    largest = max(scores)
    return scores[0] - largest - math.log(sum(math.exp(score - largest) for score in scores))
