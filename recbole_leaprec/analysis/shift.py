"""The shift of a dataset's category mixes, as a table and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from recbole_leaprec.analysis.category_shift import category_shift
from recbole_leaprec.analysis.plots import plot_shift
from recbole_leaprec.common.defaults import SHIFT_LONGEST, SHIFT_STEP, SHIFT_WINDOW
from recbole_leaprec.common.files import check_unused, taken, write_csv
from recbole_leaprec.config import LeapRecConfig
from recbole_leaprec.run import read_dataset
from recbole_leaprec.run_log import run_log
from recbole_leaprec.settings.keys import check_count


def shift(
    output_dir: str | Path,
    window: int = SHIFT_WINDOW,
    longest: int = SHIFT_LONGEST,
    step: int = SHIFT_STEP,
    *,
    config_file_list: list[str] | None = None,
    config_dict: dict[str, Any] | None = None,
) -> pd.DataFrame:
    """`category_shift` of a dataset at the intervals 0, step, .., longest, up to the longest that any history allows.

    Writes `shift.csv`, `.png` and `.svg` to `output_dir`.

    Raises:
        ValueError: bad arguments or data; nothing is written then.
    """
    for name, value in (("window", window), ("longest", longest), ("step", step)):
        check_count(name, value)
    folder = Path(output_dir)
    check_unused(folder, ["shift.csv"])
    config = LeapRecConfig(config_file_list=config_file_list, config_dict=config_dict)
    with run_log(config):
        dataset = read_dataset(config)
    sequences = dataset.sequences
    farthest = int((sequences.offsets[1:] - sequences.offsets[:-1]).max()) - window  # no history has a later window
    if farthest < 0:
        raise ValueError(f"window must not exceed the longest history, {farthest + window} items, got {window}")
    intervals = range(0, min(longest, farthest) + 1, step)
    table = category_shift(sequences.items, sequences.offsets, dataset.categories, intervals, window, config["beta"])
    with taken(folder):
        check_unused(folder, ["shift.csv"])
        write_csv(folder / "shift.csv", table)
        plot_shift(table, window, config["dataset"], folder / "shift")
    return table
