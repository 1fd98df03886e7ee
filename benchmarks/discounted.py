"""Does `setwise` reach a higher nDCG if its objective discounts items by rank, as nDCG does? Measured on validation.

    python benchmarks/discounted.py RUN --data_path=... [--out=results/discounted.md]

`setwise` maximises `(1 - lambda) sum_r p(r) - lambda S_KL`, where p(r) is the probability of the item at rank r. Here
its set is then improved for `(1 - lambda) sum_r p(r) / log2(r + 1) - lambda S_KL`: single items are swapped until no
swap helps. Only the most relevant items of each profile may enter. Both are measured at each lambda, and compared at
equal S_KL by linear interpolation.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numba
import numpy as np
import torch

from recbole_leaprec.reranking.setwise import setwise
from recbole_leaprec.run import trained_run

K = 10
PER_PROFILE = 2
"""How many items of each profile, the most relevant ones, may enter a set."""
LAMBDAS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
TARGETS = (0.34, 0.24, 0.15, 0.077)
DISCOUNT = 1 / np.log2(np.arange(2, K + 2))


@numba.njit(cache=True)
def value(ids, probability, shares, p, lam, beta, discount):
    """The objective of a list. Its items must be in order of falling score."""
    k = len(ids)
    gain = 0.0
    for rank in range(k):
        gain += probability[ids[rank]] * discount[rank]
    divergence = 0.0
    for category in range(len(p)):
        if p[category] > 0:
            q = 0.0
            for rank in range(k):
                q += shares[ids[rank], category]
            divergence += p[category] * np.log(p[category] / ((1 - beta) * q / k + beta * p[category]))
    return (1 - lam) * gain - lam * divergence


@numba.njit(cache=True)
def improve(lists, candidates, probability, shares, p, lam, beta, discount):
    """Improve lists by swaps: in each list, make the best swap of an item for a candidate, until no swap helps."""
    for user in range(len(lists)):
        ids, own = lists[user], probability[user]
        now = value(ids, own, shares, p[user], lam, beta, discount)
        while True:
            best, best_list = now + 1e-12, ids.copy()
            for out in range(len(ids)):
                for entering in candidates[user]:
                    if own[entering] <= 0 or (ids == entering).any():
                        continue
                    trial = ids.copy()
                    trial[out] = entering
                    trial = trial[np.argsort(-own[trial])]
                    reached = value(trial, own, shares, p[user], lam, beta, discount)
                    if reached > best:
                        best, best_list = reached, trial
            if best <= now + 1e-12:
                break
            ids[:], now = best_list, best


def candidates_of(probability: torch.Tensor, profile_of_item: torch.Tensor) -> np.ndarray:
    """The most relevant items of each profile, `[B, n]`; 0 if there are fewer."""
    order = probability.argsort(1, descending=True)
    profiles = profile_of_item[order]
    by_profile = profiles.argsort(dim=1, stable=True)  # the items of a profile together, the most relevant first
    sorted_profiles = profiles.gather(1, by_profile)
    first = torch.ones_like(sorted_profiles, dtype=torch.bool)
    first[:, PER_PROFILE:] = sorted_profiles[:, PER_PROFILE:] != sorted_profiles[:, :-PER_PROFILE]
    return (order.gather(1, by_profile) * first).sort(1, descending=True).values[:, : int(first.sum(1).max())].numpy()


def metrics(lists: np.ndarray, target: np.ndarray, shares: np.ndarray, p: np.ndarray, beta: float) -> np.ndarray:
    """Sums over users of nDCG@K, HR@K and S_KL@K."""
    hits = lists == target[:, None]
    q = (1 - beta) * shares[lists].mean(1) + beta * p
    skl = np.where(p > 0, p * np.log(np.where(p > 0, p, 1) / np.where(q > 0, q, 1)), 0).sum(1)
    return np.array([(hits * DISCOUNT).sum(), hits.sum(), skl.sum()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--data_path")
    parser.add_argument("--users", type=int, default=3000, help="at least so many of the validation users")
    parser.add_argument("--out", type=Path, default=Path("results/discounted.md"))
    asked = parser.parse_args()
    sums = np.zeros((2, len(LAMBDAS), 3))
    users = 0
    with tempfile.TemporaryDirectory() as folder:
        changes = {"output_dir": f"{folder}/run"} | ({"data_path": asked.data_path} if asked.data_path else {})
        with trained_run(asked.run / "model.pth", changes) as (run, trainer), torch.no_grad():
            trainer.evaluate(run.valid_data, load_best_model=False)  # prepares the trainer for batches
            categories = trainer.categories
            shares = categories.shares(torch.arange(categories.n_items)).double().numpy()
            beta, alpha = run.config["beta"], run.config["alpha"]
            for batch in run.valid_data:
                interaction, scores, positive_u, positive_i = trainer._full_sort_batch_eval(batch)
                p = trainer.preference(interaction["history_end"], alpha).double()
                probability = scores.double().softmax(1)
                before = setwise(scores, p, categories, K, LAMBDAS, beta).numpy()
                candidates = candidates_of(probability, categories.profile_of_item)
                target = positive_i[positive_u.argsort()].numpy()
                for number, lam in enumerate(LAMBDAS):
                    after = before[number].copy()
                    improve(after, candidates, probability.numpy(), shares, p.numpy(), lam, beta, DISCOUNT)
                    for way, lists in enumerate((before[number], after)):
                        sums[way, number] += metrics(lists, target, shares, p.numpy(), beta)
                users += len(scores)
                print(f"{users:,} users", flush=True)
                if users >= asked.users:
                    break
            name = f"{run.config['model']} on {run.config['dataset']}"
    means = sums / users
    lines = [
        "# Gains discounted by rank",
        "",
        f"`python benchmarks/discounted.py RUN`, {name}, {users:,} validation users. The rows are of equal S_KL@10.",
        "",
        "| S_KL@10 | nDCG@10, setwise | discounted | by | HR@10, setwise | discounted | by |",
        "|---|---|---|---|---|---|---|",
    ]
    for target_skl in TARGETS:
        columns = [f"{target_skl:g}"]
        for metric in (0, 1):
            pair = [
                float(np.interp(target_skl, means[way, ::-1, 2], means[way, ::-1, metric])) for way in (0, 1)
            ]  # S_KL falls with lambda
            columns += [f"{pair[0]:.4f}", f"{pair[1]:.4f}", f"{100 * (pair[1] / pair[0] - 1):+.1f} %"]
        lines.append(f"| {' | '.join(columns)} |")
    asked.out.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    print(np.round(means, 4))


if __name__ == "__main__":
    main()
