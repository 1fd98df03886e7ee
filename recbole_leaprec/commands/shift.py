"""`leaprec shift`."""

from __future__ import annotations

from typing import Any

from recbole_leaprec.cli.arguments import take_config_files
from recbole_leaprec.cli.command import command, folder_for, loading
from recbole_leaprec.cli.options import Count, option, output_dir
from recbole_leaprec.common.defaults import SHIFT_LONGEST, SHIFT_STEP, SHIFT_WINDOW


@command("shift", about_keys="Every key of RecBole and the plugin works, such as dataset, data_path and category_field.")
@option("window", Count(), "items per window", SHIFT_WINDOW)
@option("longest", Count(), "longest interval: items between the starts of two windows", SHIFT_LONGEST)
@option("step", Count(), "items from one interval to the next", SHIFT_STEP)
@output_dir("output/shift-<time>")
def shift(keys: dict[str, Any], window: int, longest: int, step: int, output_dir: str | None) -> None:
    """Show how far users' category mixes shift with time: the KL divergence between two windows of a history, by their distance.

    leaprec shift --dataset=ml-1m
    leaprec shift --dataset=my-data --data_path=dataset --category_field=genre --longest=100
    """
    with loading():
        from recbole_leaprec.analysis.shift import shift as run

    with folder_for("shift", output_dir) as folder:
        files = take_config_files(keys)
        table = run(folder, window, longest, step, config_file_list=files, config_dict=keys)
    print(f"\n{table.to_string(index=False, float_format='{:.4f}'.format)}\n\neverything is in {folder}")
