"""Reranking on five catalogues: `leaprec`, `setwise`, top-K alone, a dense greedy that tries every item, the solvers.

    python benchmarks/rerank.py [--users=1024] [--threads=1,2] [--repeats=7] [--catalogues=../shared/data/catalogues] [--out=benchmarks/rerank.md]

The catalogues are like those of the paper's datasets, and one is like Yelp, where profiles hardly repeat. They have the
right numbers of items, categories and profiles, and about the right number of categories per item. The profile of each
item is random, and few profiles have most items. If `--catalogues` has a real catalogue, it is used. Scores are
products of random vectors with 50 dimensions. Preferences are random, too; for Yelp they are those of random histories.
All methods in a row of the table run in turn on the same scores, and the best of several times counts. The dense greedy
runs on as many users as memory allows, and its time is scaled up to all; so is the time of mip and mcf, which are slow,
from eight users. No GPU is timed: on a pretended device, operations are counted.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from peak import peak_of
from torch import Tensor

from recbole_leaprec import ItemCategories, rerank, sequential_preference
from recbole_leaprec.reranking import rerank_sweep

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
from tests.pretend import DEVICE, PretendDevice, put  # noqa: E402

SHAPES = {  # items, categories, profiles, categories per item
    "ML-1M": (3_883, 18, 301, 1.65),
    "Goodreads": (25_474, 10, 305, 3.63),
    "Grocery": (39_853, 26, 25, 1.0),
    "Steam": (14_419, 22, 765, 2.62),
    "Yelp": (20_033, 1_001, 9_993, 4.0),
}
LAMBDAS = [step / 10 for step in range(11)]
K = 10
DENSE_ELEMENTS = 2**26  # elements of one tensor [B, I, C], 256 MB; the dense greedy holds several
SOLVER_USERS = 8
HISTORY = 30


def catalogue(
    items: int, n_categories: int, n_profiles: int, mean_size: float, generator: torch.Generator
) -> ItemCategories:
    """A catalogue with random profiles: their number is right, and their mean size over items is about right."""
    profiles: dict[tuple[int, ...], None] = {}
    while len(profiles) < n_profiles:
        extra = int(torch.poisson(torch.tensor(mean_size - 1), generator=generator)) if mean_size > 1 else 0
        size = min(1 + extra, n_categories)
        profiles[tuple(sorted(torch.randperm(n_categories, generator=generator)[:size].tolist()))] = None
    # Profiles of about the mean size get most items. The many others make the number of profiles large.
    ranked = sorted(profiles, key=lambda profile: abs(len(profile) - mean_size))
    share = 1 / torch.arange(1, n_profiles + 1).double()
    chosen = torch.multinomial(share, items - n_profiles, replacement=True, generator=generator).tolist()
    members = [*range(n_profiles), *chosen]
    order = torch.randperm(items, generator=generator).tolist()
    return ItemCategories([f"c{c}" for c in range(n_categories)], [(), *(ranked[members[i]] for i in order)])


def dense_greedy(scores: Tensor, p: Tensor, distribution: Tensor, k: int, lam: float, beta: float = 0.01) -> Tensor:
    """Eq. 12 over every item at every position, with a tensor [B, I, C], as in the authors' code."""
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


def real_catalogue(path: Path) -> ItemCategories:
    """The catalogue in a table of `item_id,genre_id`, with | between genres."""
    rows = [line.split(",") for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    members = [sorted(map(int, genres.split("|"))) if genres else [] for _, genres in rows]
    names = [f"c{c}" for c in range(1 + max(c for own in members for c in own))]
    return ItemCategories(names, [(), *members])


def task(name: str, users: int, catalogues: Path | None = None):
    """`(user vectors, item vectors, scores, p, categories)` of a catalogue."""
    generator = torch.Generator().manual_seed(0)
    path = catalogues and catalogues / f"{name.lower()}.item_genres.txt"
    categories = real_catalogue(path) if path and path.exists() else catalogue(*SHAPES[name], generator)
    user_vectors = torch.randn(users, 50, generator=generator)
    item_vectors = torch.randn(categories.n_items, 50, generator=generator) / 5
    if categories.n_categories > HISTORY:  # no real user has a preference for all of a thousand categories
        items = torch.randint(1, categories.n_items, (users, HISTORY), generator=generator)
        p = sequential_preference(items.tolist(), categories)
    else:
        p = torch._sample_dirichlet(torch.full((users, categories.n_categories), 0.3), generator)
    return user_vectors, item_vectors, user_vectors @ item_vectors.T, p, categories


def measure(name: str, users: int, repeats: int, threads: Sequence[int], catalogues: Path) -> dict[str, Any]:
    user_vectors, item_vectors, scores, p, categories = task(name, users, catalogues)
    few = slice(0, max(1, min(users, DENSE_ELEMENTS // (categories.n_items * categories.n_categories))))
    rows = reference_rows(categories)
    started = time.perf_counter()
    dense = dense_greedy(scores[few], p[few], rows, K, 0.3)
    row: dict[str, Any] = {"dense": (time.perf_counter() - started) * users / few.stop}
    row["same"] = float((rerank(scores[few], p[few], categories, K) == dense).all(1).float().mean())
    row["items"], row["profiles"] = categories.n_items - 1, categories.n_profiles
    work = {
        "top-K": lambda: (user_vectors @ item_vectors.T).topk(K, dim=1),
        "leaprec": lambda: rerank(scores, p, categories, K),
        "setwise": lambda: rerank(scores, p, categories, K, "setwise"),
        "eleven": lambda: rerank_sweep(scores, p, categories, K, lambdas=LAMBDAS),
    }
    row["by threads"] = {}
    for count in threads:
        torch.set_num_threads(count)
        seconds = {what: [] for what in work}
        for _ in range(repeats):  # in turn, so that a busy moment does not hit one of them alone
            for what, do in work.items():
                time.sleep(0.02)  # torch's threads keep running for a while after their work, and would slow the next
                seconds[what].append(timed(do))
        row["by threads"][count] = {what: min(values) for what, values in seconds.items()}
    torch.set_num_threads(1)
    for method in ("leaprec", "setwise"):
        one = [
            timed(lambda n=n, method=method: rerank(scores[n : n + 1], p[n : n + 1], categories, K, method))
            for n in range(users)
        ]
        row[f"one {method}"] = [sorted(one)[int(share * (users - 1))] for share in (0.5, 0.99)]
    some = slice(0, SOLVER_USERS)
    for method in ("mip", "mcf"):
        if name != "Yelp":  # its programs have a thousand categories each
            row[method] = (
                timed(lambda method=method: rerank(scores[some], p[some], categories, K, method)) * users / SOLVER_USERS
            )
    command = [sys.executable, __file__, f"--memory={name}", f"--users={users}", f"--catalogues={catalogues}"]
    row["memory"] = float(subprocess.check_output(command))
    row["device"] = {method: on_device(method, scores, p, categories) for method in ("leaprec", "setwise")}
    return row


def reference_rows(categories: ItemCategories) -> Tensor:
    return categories.shares(torch.arange(categories.n_items)).float()


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def memory(name: str, users: int, catalogues: Path) -> float:
    """How far reranking raises the peak of this process's resident memory, in multiples of the scores' size (Linux)."""
    _, _, scores, p, categories = task(name, users, catalogues)
    rerank(scores[:2], p[:2], categories, K)  # load first what is loaded only once
    _, peak = peak_of(lambda: rerank(scores, p, categories, K))
    return peak / (scores.numel() * scores.element_size())


def on_device(method: str, scores: Tensor, p: Tensor, categories: ItemCategories) -> tuple[int, int, float]:
    """A reranker for all users on a device: launches, waits, and memory in multiples of the scores' size."""
    with PretendDevice() as device:
        given = put(scores), put(p), categories.to(DEVICE)
        device.start()
        rerank_sweep(*given, K, method)
    return device.launches, device.waits, device.peak / (scores.numel() * scores.element_size())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=1024)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--catalogues", type=Path, default=ROOT.parent / "shared" / "data" / "catalogues")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    parser.add_argument("--memory", choices=SHAPES, help="print the memory that one catalogue takes, and no more")
    arguments = parser.parse_args()
    threads = [int(count) for count in arguments.threads.split(",")]
    if arguments.memory:
        torch.set_num_threads(1)
        print(memory(arguments.memory, arguments.users, arguments.catalogues))
        return
    rows = {}
    for name in SHAPES:
        print(name, flush=True, file=sys.stderr)
        row = rows[name] = measure(name, arguments.users, arguments.repeats, threads, arguments.catalogues)
        if row["same"] < 1:
            print(f"{row['same']:.1%} of the lists are those of the dense greedy, which rounds in float32", file=sys.stderr)
    lines = [
        f"`python benchmarks/rerank.py --users={arguments.users} --threads={arguments.threads} --repeats={arguments.repeats}`, "
        f"K = {K}, lambda 0.3, torch {torch.__version__}; milliseconds for all users",
        "",
        "| catalogue | items / profiles | threads | scoring + top-K | leaprec | of that | eleven lambdas | of one | setwise | of scoring + top-K |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        for count, seconds in row["by threads"].items():
            ms = {what: f"{1000 * value:,.0f}" for what, value in seconds.items()}
            lines.append(
                f"| {name} | {row['items']:,} / {row['profiles']:,} | {count} | {ms['top-K']} | {ms['leaprec']} | "
                f"{seconds['leaprec'] / seconds['top-K']:.2f}x | {ms['eleven']} | {seconds['eleven'] / seconds['leaprec']:.1f}x | "
                f"{ms['setwise']} | {seconds['setwise'] / seconds['top-K']:.1f}x |"
            )
    lines += [
        "",
        "One user at a time, one thread, milliseconds, the median and the 99th percentile; the greedy that tries every item, and the "
        "solvers, for all users; memory of `leaprec` beside the scores, of their size; and on a GPU, for all users: operations that are "
        "started, times that the host waits for one, and memory beside the scores (`setwise` copies the scores to the CPU and works there).",
        "",
        "| catalogue | one user, leaprec | one user, setwise | dense greedy | of leaprec | mip | mcf | memory "
        "| GPU, leaprec: launches, waits, memory | GPU, setwise |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        leaprec, set_wise = ([f"{1000 * value:.2f}" for value in row[f"one {method}"]] for method in ("leaprec", "setwise"))
        solvers = [f"{1000 * row[method]:,.0f}" if method in row else "-" for method in ("mip", "mcf")]
        device = [f"{launches}, {waits}, {taken:.1f}x" for launches, waits, taken in row["device"].values()]
        lines.append(
            f"| {name} | {leaprec[0]}, {leaprec[1]} | {set_wise[0]}, {set_wise[1]} | {1000 * row['dense']:,.0f} | "
            f"{row['dense'] / row['by threads'][threads[0]]['leaprec']:,.0f}x | {solvers[0]} | {solvers[1]} | {row['memory']:.2f}x | "
            f"{device[0]} | {device[1]} |"
        )
    print("\n".join(lines))
    arguments.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
