"""`leaprec shift`."""

from __future__ import annotations

from typing import Any

from recbole_leaprec.cli.arguments import take_config_files
from recbole_leaprec.cli.command import command, folder_for, loading
from recbole_leaprec.cli.options import Count, option, output_dir
from recbole_leaprec.defaults import SHIFT_LONGEST, SHIFT_STEP, SHIFT_WINDOW


@command("shift", about_keys="Every key of RecBole and the plugin works, such as dataset, data_path and category_field.")
@option("window", Count(), "items that a category mix is made of", SHIFT_WINDOW)
@option("longest", Count(), "longest interval: items from the start of a window to that of the later one", SHIFT_LONGEST)
@option("step", Count(), "from one interval to the next", SHIFT_STEP)
@output_dir("output/shift-<time>")
def shift(keys: dict[str, Any], window: int, longest: int, step: int, output_dir: str | None) -> None:
    """Show how far the category mix of users' histories shifts: KL divergence of windows that start some items apart, for any dataset.

    leaprec shift --dataset=ml-1m
    leaprec shift --dataset=my-data --data_path=dataset --category_field=genre --longest=100
    """
    with loading():
        from recbole_leaprec.analysis.shift import shift as run

    with folder_for("shift", output_dir) as folder:
        files = take_config_files(keys)
        table = run(folder, window, longest, step, config_file_list=files, config_dict=keys)
    print(f"\n{table.to_string(index=False, float_format='{:.4f}'.format)}\n\neverything is in {folder}")
