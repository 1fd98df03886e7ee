"""The description of a dataset: its sizes (the paper's Table 1), its categories, and how users' category mixes shift."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbole_leaprec.analysis.category_shift import shift_of
from recbole_leaprec.analysis.plots import plot_dataset
from recbole_leaprec.common.files import check_unused, taken, write_json
from recbole_leaprec.config import LeapRecConfig
from recbole_leaprec.data import SequenceDataset
from recbole_leaprec.run import read_dataset
from recbole_leaprec.run_log import run_log


@dataclass(frozen=True)
class Description:
    """The sizes of a dataset after its filters.

    Attributes:
        users, interactions: counts of the users who have the three interactions that leave-one-out needs.
        short_users, short_interactions: counts of the users who have fewer.
        lengths: the smallest, the median and the largest number of interactions per user.
        density: the share of all user-item pairs that occur.
        categories_per_item: the mean over items that have a category.
        category_sizes: the number of items per category, the largest first.
        shift: the mean KL divergence of two windows of a user's history, by the interval between their starts.
    """

    dataset: str
    users: int
    items: int
    items_taken: int
    categories: int
    profiles: int
    interactions: int
    short_users: int
    short_interactions: int
    mean_length: float
    lengths: tuple[int, float, int]
    density: float
    categories_per_item: float
    items_without_category: int
    category_sizes: dict[str, int]
    shift: dict[int, float]

    def told(self) -> str:
        """The description as text."""
        least, median, largest = self.lengths
        short = f" ({self.short_users:,} more have fewer than three interactions)" if self.short_users else ""
        sizes = list(self.category_sizes.items())
        once = [name for name, count in sizes if count == 1]
        rows = [
            ("users", f"{self.users:,}{short}"),
            ("items", f"{self.items:,} ({self.items_taken:,} of them taken by anybody)"),
            (
                "interactions",
                f"{self.interactions:,}" + (f" ({self.short_interactions:,} more of these users)" if short else ""),
            ),
            ("length", f"mean {self.mean_length:.2f}, median {median:g}, from {least:,} to {largest:,}"),
            ("density", f"{self.density:.4%}"),
            ("categories", f"{self.categories:,} in {self.profiles:,} profiles"),
            ("categories per item", f"{self.categories_per_item:.4f}; {self.items_without_category:,} items have none"),
            ("largest categories", ", ".join(f"{name} ({count:,} items)" for name, count in sizes[:5])),
            ("categories of one item", f"{len(once):,}" + (f": {', '.join(once[:5])}" if once else "")),
            ("shift of the mix", _shift_told(self.shift)),
        ]
        return "\n".join(f"{name:<23} {text}" for name, text in rows)


def _shift_told(shift: dict[int, float]) -> str:
    known = {interval: kl for interval, kl in shift.items() if kl == kl}
    if len(known) < 2:
        return "no history is long enough to tell"
    return "KL " + ", ".join(f"{known[i]:.3f} after {i} items" for i in sorted(known)[1:] if i in (10, 50, 100, 200))


def describe(
    output_dir: str | Path, *, config_file_list: list[str] | None = None, config_dict: dict[str, Any] | None = None
) -> Description:
    """Describe a dataset, and write `description.json`, `description.png` and `.svg` to `output_dir`.

    Raises:
        ValueError: bad arguments or data; nothing is written then.
    """
    folder = Path(output_dir)
    check_unused(folder, ["description.json"])
    config = LeapRecConfig(config_file_list=config_file_list, config_dict=config_dict)
    with run_log(config):
        dataset = read_dataset(config)
    found = description(dataset, config["beta"])
    with taken(folder):
        check_unused(folder, ["description.json"])
        write_json(folder / "description.json", asdict(found))
        lengths = _lengths(dataset)
        plot_dataset(lengths, found.category_sizes, pd.Series(found.shift), found.dataset, folder / "description")
    return found


def _lengths(dataset: SequenceDataset) -> np.ndarray:
    lengths = np.diff(dataset.sequences.offsets.numpy())
    return lengths[lengths > 0]  # user 0 is padding


def description(dataset: SequenceDataset, beta: float) -> Description:
    """The description of a dataset that has been built."""
    lengths, categories = _lengths(dataset), dataset.categories
    members = dataset.item_members[1:]
    counts = np.array([len(own) for own in members])
    sizes = np.bincount(np.array([c for own in members for c in own], dtype=int), minlength=categories.n_categories)
    order = np.argsort(-sizes, kind="stable")
    taken = len(np.unique(dataset.sequences.items.numpy()))
    shift = shift_of(dataset, beta)
    return Description(
        dataset=dataset.dataset_name, users=len(lengths), items=dataset.item_num - 1, items_taken=taken,
        categories=categories.n_categories, profiles=categories.n_profiles, interactions=int(lengths.sum()),
        short_users=dataset.short_users, short_interactions=dataset.short_interactions, mean_length=float(lengths.mean()),
        lengths=(int(lengths.min()), float(np.median(lengths)), int(lengths.max())),
        density=float(lengths.sum() / (len(lengths) * (dataset.item_num - 1))),
        categories_per_item=float(counts[counts > 0].mean()), items_without_category=int((counts == 0).sum()),
        category_sizes={categories.names[c]: int(sizes[c]) for c in order},
        shift={int(i): float(kl) for i, kl in zip(shift["interval"], shift["kl"], strict=True) if kl == kl},
    )  # fmt: skip
