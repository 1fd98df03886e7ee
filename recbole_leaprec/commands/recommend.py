"""`leaprec recommend`."""

from __future__ import annotations

from typing import Any

from recbole_leaprec.cli.command import command, loading
from recbole_leaprec.cli.list_options import list_rules
from recbole_leaprec.cli.options import CHECKPOINT, Count, File, Flag, option
from recbole_leaprec.cli.ray_options import ray_options
from recbole_leaprec.common.defaults import LIST_LENGTH
from recbole_leaprec.settings.keys import RECOMMENDATION_KEYS, check_engine


@command(
    "recommend",
    keys=RECOMMENDATION_KEYS,
    about_keys=f"Keys that can be changed: {', '.join(sorted(RECOMMENDATION_KEYS))}",
)
@CHECKPOINT
@option(
    "out",
    File(),
    "a new .parquet, .csv or .trec file to write; a folder if --histories is a folder",
    needed=True,
)
@option(
    "histories",
    File(),
    "a .parquet or .csv file with the columns user and items and, optionally, leave_out (items that this user's list must not hold); with --engine=ray also "
    "a folder of .parquet files, such as s3://bucket/folder: each of them gives a file of lists",
    shown="all users of the dataset",
)
@list_rules
@option("k", Count(), "items per list", LIST_LENGTH)
@option("titles", Flag(), "whether to write the items' titles, if the model was trained with a title_field", True)
@ray_options
def recommend(keys: dict[str, Any], **options: Any) -> None:
    """Write calibrated lists for all users, or for a file of histories.

    leaprec recommend --checkpoint=output/SASRecCD-ml-100k-20240101-120000/model.pth --out=lists.csv
    leaprec recommend --checkpoint=... --out=lists.parquet --histories=new_users.parquet --rerank_lambda=0.5
    leaprec recommend --checkpoint=... --out=run.trec --engine=ray --workers=4
    leaprec recommend --checkpoint=... --out=s3://bucket/lists --histories=s3://bucket/histories --engine=ray
    """
    check_engine(options["engine"], options["workers"], ray_address=options["ray_address"])
    with loading():
        from recbole_leaprec.recommend import recommend as run

    result = run(config_dict=keys, show_progress=keys.get("show_progress", True), **options)
    skl = "" if result["skl"] is None else f", mean S_KL {result['skl']:.4f}"
    print(f"\n{result['users']} lists in {result['seconds']:.1f} s{skl}: {result['out']}")
    for sentence in result["told"]:
        print(sentence)
    if result["unknown_items"] or result["empty_histories"]:
        print(
            f"{result['unknown_items']} items of the histories are unknown to the model and were skipped; "
            f"{result['empty_histories']} users have no known item and got the most popular ones"
        )
