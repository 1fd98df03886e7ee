"""`leaprec data describe`."""

from __future__ import annotations

from typing import Any

import click

from recbole_leaprec.cli.arguments import take_config_files
from recbole_leaprec.cli.command import command, folder_for, loading
from recbole_leaprec.cli.options import output_dir


@command(
    "data describe",
    about_keys="Every key of RecBole and the plugin works, such as data_path, category_field and val_interval.",
)
@click.argument("dataset", required=False)
@output_dir("output/describe-<time>")
def describe(keys: dict[str, Any], dataset: str | None, output_dir: str | None) -> None:
    """Show the sizes of a dataset (the paper's Table 1), its categories, and how users' category mixes shift, as text, json and a picture.

    leaprec data describe ml-100k
    leaprec data describe shop --data_path=dataset
    """
    if dataset and keys.get("dataset", dataset) != dataset:
        raise ValueError(f"the dataset is {dataset!r}, and --dataset={keys['dataset']} is another: leave one of them out")
    with loading():
        from recbole_leaprec.analysis.describe import describe as run

    with folder_for("describe", output_dir) as folder:
        files = take_config_files(keys)
        found = run(folder, config_file_list=files, config_dict={**keys, **({"dataset": dataset} if dataset else {})})
    print(f"\n{found.told()}\n\neverything is in {folder}")
