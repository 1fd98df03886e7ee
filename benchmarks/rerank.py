"""Reranking on the paper's four catalogues: this engine, top-K alone, and the greedy that tries every item.

    python benchmarks/rerank.py [--users=1024] [--threads=2] [--repeats=5] [--out=benchmarks/rerank.md]

Catalogues have the paper's numbers of items, categories, profiles and categories an item; which item has which profile is drawn
at random, few profiles having most items. Scores are products of random vectors of 50 dimensions. Everything in a row of the
table runs on the same scores, in turn, and the best of several counts. The dense greedy needs gigabytes for all users, so it
runs on a few and is scaled up.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from recbole_leaprec import ItemCategories, rerank
from recbole_leaprec.reranking import rerank_sweep

SHAPES = {  # items, categories, profiles, categories an item
    "ML-1M": (3_883, 18, 301, 1.65),
    "Goodreads": (25_474, 10, 305, 3.63),
    "Grocery": (39_853, 26, 25, 1.0),
    "Steam": (14_419, 22, 765, 2.62),
}
LAMBDAS = [step / 10 for step in range(11)]
K = 10
DENSE_USERS = 16


def catalogue(
    items: int, n_categories: int, n_profiles: int, mean_size: float, generator: torch.Generator
) -> ItemCategories:
    """Random profiles of the right number and, weighted by their items, about the right size."""
    profiles: dict[tuple[int, ...], None] = {}
    while len(profiles) < n_profiles:
        extra = int(torch.poisson(torch.tensor(mean_size - 1), generator=generator)) if mean_size > 1 else 0
        size = min(1 + extra, n_categories)
        profiles[tuple(sorted(torch.randperm(n_categories, generator=generator)[:size].tolist()))] = None
    # Small profiles are the common ones; the tail is what makes the number of profiles large.
    ranked = sorted(profiles, key=lambda profile: abs(len(profile) - mean_size))
    share = 1 / torch.arange(1, n_profiles + 1).double()
    chosen = torch.multinomial(share, items - n_profiles, replacement=True, generator=generator).tolist()
    members = [*range(n_profiles), *chosen]
    order = torch.randperm(items, generator=generator).tolist()
    return ItemCategories([f"c{c}" for c in range(n_categories)], [(), *(ranked[members[i]] for i in order)])


def dense_greedy(scores: Tensor, p: Tensor, distribution: Tensor, k: int, lam: float, beta: float = 0.01) -> Tensor:
    """Eq. 12 over every item at every position, through a tensor [B, I, C]; what the authors' code does."""
    scores = scores.clone()
    scores[:, 0] = -torch.inf
    picked = torch.zeros_like(p)
    lists = []
    for position in range(1, k + 1):
        w = lam ** (1 / position)
        q = (picked[:, None] + distribution[None]) / position
        divergence = (p[:, None] * (p[:, None] / ((1 - beta) * q + beta * p[:, None])).log()).nan_to_num(0).sum(-1)
        item = ((1 - w) * scores - w * divergence).argmax(1)
        scores[torch.arange(len(scores)), item] = -torch.inf
        picked += distribution[item]
        lists.append(item)
    return torch.stack(lists, 1)


def best_seconds(work: Callable[[], object], repeats: int) -> float:
    best = float("inf")
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - started)
    return best


def measure(name: str, users: int, repeats: int) -> dict[str, float]:
    generator = torch.Generator().manual_seed(0)
    categories = catalogue(*SHAPES[name], generator)
    assert categories.n_profiles == SHAPES[name][2]
    user_vectors = torch.randn(users, 50, generator=generator)
    item_vectors = torch.randn(categories.n_items, 50, generator=generator) / 5
    p = torch.distributions.Dirichlet(torch.full((categories.n_categories,), 0.3)).sample((users,))
    scores = user_vectors @ item_vectors.T
    few, some = slice(0, DENSE_USERS), categories.distribution.float()
    same = (rerank(scores[few], p[few], categories, K) == dense_greedy(scores[few], p[few], some, K, 0.3)).float().mean()
    row = {"same": float(same)}
    row["top-K"] = best_seconds(lambda: (user_vectors @ item_vectors.T).topk(K, dim=1), repeats)
    row["leaprec"] = best_seconds(lambda: rerank(scores, p, categories, K), repeats)
    row["eleven"] = best_seconds(lambda: rerank_sweep(scores, p, categories, K, lambdas=LAMBDAS), repeats)
    row["dense"] = best_seconds(lambda: dense_greedy(scores[few], p[few], some, K, 0.3), 2) * users / DENSE_USERS
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    for name in SHAPES:
        row = measure(name, arguments.users, arguments.repeats)
        print(
            name,
            {key: round(value, 4) for key, value in row.items()},
            f"vs topk {row['leaprec'] / row['top-K']:.2f}  eleven/one {row['eleven'] / row['leaprec']:.2f}  dense/one {row['dense'] / row['leaprec']:.0f}",
        )


if __name__ == "__main__":
    main()
