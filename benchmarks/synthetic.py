"""Make datasets with the sizes of the paper's datasets, or multiples of them, to measure scale. The users' tastes drift.

    python benchmarks/synthetic.py --like=steam --scale=10 --out=dataset/steam-10 [--seed=0]

Users and interactions are `--scale` times those of the paper's Table 1. Items and categories are those of Table 1, or
`--items` and `--categories`. A user's taste is a score per category, which makes a random walk, one step per item. The
category of an item is drawn from the softmax of the taste, and the item within the category by popularity. So the
category mixes of two windows of a history differ more if the windows are further apart.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from recbole_leaprec.convert.atomic import Written, check_new, write_dataset
from recbole_leaprec.convert.catalogue import Catalogue
from recbole_leaprec.convert.filters import Filters
from recbole_leaprec.convert.interactions import Interactions
from recbole_leaprec.convert.paper import TABLE_1, Sizes

DRIFT = 0.35
"""Standard deviation of a step of the walk."""
PULL = 0.97
"""How much of a taste is kept at every step. At 1, tastes would grow without bound."""
SHORTEST = 3


def make(sizes: Sizes, seed: int = 0) -> tuple[Interactions, Catalogue]:
    """Interactions and items of these sizes."""
    random = np.random.default_rng(seed)
    members = _members(sizes, random)
    lengths = _lengths(sizes, random)
    user, item, time = _walk(lengths, members, sizes.categories, random)
    names = [f"c{c}" for c in range(sizes.categories)]
    catalogue = Catalogue()
    for number, own in enumerate(members):
        catalogue.add(str(number), [names[c] for c in own])
    users = [f"u{number}" for number in range(sizes.users)]
    return Interactions(user, item, time, users, [str(number) for number in range(sizes.items)]), catalogue


def _members(sizes: Sizes, random: np.random.Generator) -> list[np.ndarray]:
    """The categories of each item. Some categories are larger, the mean per item is `sizes.categories_per_item`, and no
    category is empty."""
    weight = 1 / np.arange(1, sizes.categories + 1) ** 0.7
    count = np.minimum(1 + random.poisson(sizes.categories_per_item - 1, sizes.items), sizes.categories)
    missing = round(sizes.categories_per_item * sizes.items) - count.sum()
    free = np.flatnonzero(count < sizes.categories) if missing > 0 else np.flatnonzero(count > 1)
    count[random.permutation(free)[: abs(missing)]] += np.sign(missing)
    key = random.random((sizes.items, sizes.categories)) ** (
        1 / weight
    )  # the largest n are a weighted draw without replacement
    order = np.argsort(-key, axis=1)
    members = [order[i, : count[i]] for i in range(sizes.items)]
    for c in range(min(sizes.categories, sizes.items)):
        if c not in members[c]:
            members[c] = np.append(members[c][1:], c)
    return members


def _lengths(sizes: Sizes, random: np.random.Generator) -> np.ndarray:
    """The number of interactions of each user, with the right sum. Most users have few, and some have many."""
    raw = random.lognormal(0, 0.9, sizes.users)
    spare = sizes.interactions - SHORTEST * sizes.users
    share = np.floor(raw / raw.sum() * spare).astype(np.int64)
    share[random.choice(sizes.users, spare - share.sum())] += 1
    missing = spare - share.sum()  # some users were drawn twice above
    share[np.argsort(-share)[:missing]] += 1
    return share + SHORTEST


def _walk(
    lengths: np.ndarray, members: list[np.ndarray], categories: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`(user, item, time)` of all interactions. At each time, every user who has interactions left makes one step."""
    own = [np.flatnonzero([c in m for m in members]) for c in range(categories)]
    popularity = [np.cumsum(1 / np.arange(1, len(items) + 1) ** 0.8) for items in own]
    order = np.argsort(-lengths)
    lengths = lengths[order]
    taste = random.normal(0, 1.5, (len(lengths), categories)).astype(np.float32)
    users, items, times = [], [], []
    for step in range(lengths.max()):
        alive = int(np.searchsorted(-lengths, -step, side="left"))
        taste = taste[:alive]
        taste *= PULL
        taste += random.normal(0, DRIFT, taste.shape).astype(np.float32)
        noise = random.gumbel(size=taste.shape).astype(np.float32)
        chosen = (taste + noise).argmax(1)  # a draw from the softmax
        taken = np.empty(alive, dtype=np.int64)
        for c in np.unique(chosen):
            who = chosen == c
            at = np.searchsorted(popularity[c], random.random(int(who.sum())) * popularity[c][-1])
            taken[who] = own[c][at]
        users.append(order[:alive])
        items.append(taken)
        times.append(np.full(alive, 1_500_000_000.0 + 3600 * step))
    return np.concatenate(users), np.concatenate(items), np.concatenate(times)


def write(sizes: Sizes, out: str | Path, seed: int = 0) -> Written:
    """Write a dataset of these sizes to a new folder."""
    return write_dataset(check_new(out), *make(sizes, seed), Filters())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--like", choices=TABLE_1, default="steam")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--items", type=int)
    parser.add_argument("--categories", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    like = TABLE_1[arguments.like]
    sizes = replace(
        like, users=round(like.users * arguments.scale), interactions=round(like.interactions * arguments.scale),
        items=arguments.items or like.items, categories=arguments.categories or like.categories,
    )  # fmt: skip
    print(write(sizes, arguments.out, arguments.seed))


if __name__ == "__main__":
    main()
