"""Reranking on the paper's four catalogues: this engine, top-K alone, setwise, the greedy that tries every item, the solvers.

    python benchmarks/rerank.py [--users=1024] [--threads=1] [--repeats=7] [--out=benchmarks/rerank.md]

Catalogues have the paper's numbers of items, categories, profiles and, about, of categories an item; which item has which
profile is drawn at random, few profiles having most items. Scores are products of random vectors of 50 dimensions. All that is
in a row of the table runs on the same scores, in turn, and the best of several counts. The dense greedy runs on
as many users as have room in memory and is scaled up to all; so are mip and mcf, which take long, from eight users.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from peak import peak_of
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
DENSE_ELEMENTS = 2**26  # of one tensor [B, I, C]: 256 MB, and the dense greedy holds several
SOLVER_USERS = 8


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


def task(name: str, users: int):
    """`(user vectors, item vectors, scores, p, categories)` of a catalogue."""
    generator = torch.Generator().manual_seed(0)
    categories = catalogue(*SHAPES[name], generator)
    assert (categories.n_items - 1, categories.n_categories, categories.n_profiles) == SHAPES[name][:3]
    user_vectors = torch.randn(users, 50, generator=generator)
    item_vectors = torch.randn(categories.n_items, 50, generator=generator) / 5
    p = torch._sample_dirichlet(torch.full((users, categories.n_categories), 0.3), generator)
    return user_vectors, item_vectors, user_vectors @ item_vectors.T, p, categories


def measure(name: str, users: int, repeats: int) -> dict[str, float]:
    user_vectors, item_vectors, scores, p, categories = task(name, users)
    few = slice(0, min(users, DENSE_ELEMENTS // (categories.n_items * categories.n_categories)))
    distribution = categories.distribution.float()
    started = time.perf_counter()
    dense = dense_greedy(scores[few], p[few], distribution, K, 0.3)
    row = {"dense": (time.perf_counter() - started) * users / few.stop}
    row["same"] = float((rerank(scores[few], p[few], categories, K) == dense).all(1).float().mean())
    seconds = {"top-K": [], "leaprec": [], "setwise": [], "eleven": []}
    for _ in range(repeats):  # in turn, so that a busy moment does not hit one of them alone
        seconds["top-K"].append(timed(lambda: (user_vectors @ item_vectors.T).topk(K, dim=1)))
        seconds["leaprec"].append(timed(lambda: rerank(scores, p, categories, K)))
        seconds["setwise"].append(timed(lambda: rerank(scores, p, categories, K, "setwise")))
        seconds["eleven"].append(timed(lambda: rerank_sweep(scores, p, categories, K, lambdas=LAMBDAS)))
    row |= {what: min(values) for what, values in seconds.items()}
    some = slice(0, SOLVER_USERS)
    for method in ("mip", "mcf"):
        row[method] = (
            timed(lambda method=method: rerank(scores[some], p[some], categories, K, method)) * users / SOLVER_USERS
        )
    row["memory"] = float(subprocess.check_output([sys.executable, __file__, f"--memory={name}", f"--users={users}"]))
    return row


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def memory(name: str, users: int) -> float:
    """How far reranking raises the resident memory of this process at its peak, in multiples of the scores' size (Linux)."""
    _, _, scores, p, categories = task(name, users)
    rerank(scores[:2], p[:2], categories, K)  # what is loaded once
    _, peak = peak_of(lambda: rerank(scores, p, categories, K))
    return peak / (scores.numel() * scores.element_size())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    parser.add_argument("--memory", choices=SHAPES, help="print the memory that one catalogue takes, and no more")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.memory:
        print(memory(arguments.memory, arguments.users))
        return
    lines = [
        f"`python benchmarks/rerank.py --users={arguments.users} --threads={arguments.threads} --repeats={arguments.repeats}`, "
        f"K = {K}, lambda 0.3, torch {torch.__version__}; milliseconds for all users",
        "",
        "| catalogue | items / profiles | scoring + top-K | leaprec | of that | eleven lambdas | of one | setwise | of leaprec | "
        "dense greedy | of leaprec | mip | mcf | memory, of the scores' |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, (items, _, profiles, _) in SHAPES.items():
        row = measure(name, arguments.users, arguments.repeats)
        if row["same"] < 1:
            print(
                f"{name}: {row['same']:.1%} of the lists are those of the dense greedy, which rounds in float32",
                file=sys.stderr,
            )
        ms = {what: f"{1000 * value:,.0f}" for what, value in row.items()}
        lines.append(
            f"| {name} | {items:,} / {profiles} | {ms['top-K']} | {ms['leaprec']} | {row['leaprec'] / row['top-K']:.1f}x | {ms['eleven']} | "
            f"{row['eleven'] / row['leaprec']:.1f}x | {ms['setwise']} | {row['setwise'] / row['leaprec']:.1f}x | {ms['dense']} | {row['dense'] / row['leaprec']:,.0f}x | {ms['mip']} | {ms['mcf']} | "
            f"{row['memory']:.1f}x |"
        )
        print(lines[-1], flush=True)
    arguments.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
