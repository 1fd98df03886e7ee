"""How the category mix of a history shifts with time, the paper's Figure 1."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from recbole_leaprec.calibration import kl_divergence
from recbole_leaprec.categories import ItemCategories
from recbole_leaprec.run_folder import check_unused, write_csv


def shift(
    output_dir: str | Path,
    window: int = 20,
    longest: int = 200,
    step: int = 10,
    *,
    config_file_list: list[str] | None = None,
    config_dict: dict[str, Any] | None = None,
) -> pd.DataFrame:
    """`category_shift` of a dataset at intervals 0, step, .., longest; leaves `shift.csv`, `.png` and `.svg` in `output_dir`.

    Raises:
        ValueError: bad arguments or data; nothing is written then.
    """
    from recbole_leaprec.config import LeapRecConfig, check_count
    from recbole_leaprec.data import create_dataset
    from recbole_leaprec.plots import plot_shift

    for name, value in (("window", window), ("longest", longest), ("step", step)):
        check_count(name, value)
    folder = Path(output_dir)
    check_unused(folder, ["shift.csv"])
    config = LeapRecConfig(config_file_list=config_file_list, config_dict=config_dict)
    dataset = create_dataset(config)
    dataset.build()
    sequences, intervals = dataset.sequences, range(0, longest + 1, step)
    table = category_shift(sequences.items, sequences.offsets, dataset.categories, intervals, window, config["beta"])
    folder.mkdir(parents=True, exist_ok=True)
    write_csv(folder / "shift.csv", table)
    plot_shift(table, window, config["dataset"], folder / "shift")
    return table


def category_shift(
    items: Tensor,
    offsets: Tensor,
    categories: ItemCategories,
    intervals: Sequence[int],
    window: int = 20,
    beta: float = 0.01,
) -> pd.DataFrame:
    """For each interval d, the mean KL(p || q~) of the mix p of a window and the mix q of the window that starts d items earlier.

    Each user counts alike: the mean over the user's pairs of windows, then over the users who have such pairs.

    Args:
        items, offsets: all histories, oldest item first: user u's are `items[offsets[u]:offsets[u+1]]`.

    Returns:
        Columns `interval`, `kl`, `users`; kl is nan where nobody has a history that long.
    """
    sums = torch.zeros(len(items) + 1, categories.n_categories, dtype=torch.float64)
    sums[1:] = categories.shares(items).cumsum(0)
    user = torch.searchsorted(offsets, torch.arange(len(items)), right=True) - 1
    rows = []
    for interval in intervals:
        start = torch.arange(max(len(items) - window - interval + 1, 0))
        start = start[start + interval + window <= offsets[user[start] + 1]]  # both windows are the same user's
        p, q = ((sums[at + window] - sums[at]) / window for at in (start + interval, start))
        divergence = kl_divergence(p.clamp_min(0), q.clamp_min(0), beta)
        count = torch.bincount(user[start], minlength=len(offsets) - 1)
        total = torch.zeros(len(count), dtype=torch.float64).index_add_(0, user[start], divergence)
        some = count > 0
        rows.append((interval, (total[some] / count[some]).mean().item(), int(some.sum())))
    return pd.DataFrame(rows, columns=["interval", "kl", "users"])
