"""`leaprec recommend`."""

from __future__ import annotations

from typing import Any

from recbole_leaprec.cli.command import command, loading
from recbole_leaprec.cli.list_options import list_rules
from recbole_leaprec.cli.options import CHECKPOINT, Count, File, Flag, OneOf, Text, option
from recbole_leaprec.defaults import ENGINES, LIST_LENGTH
from recbole_leaprec.keys import RECOMMENDATION_KEYS, check_engine


@command(
    "recommend",
    keys=RECOMMENDATION_KEYS,
    about_keys=f"Keys that can be changed: {', '.join(sorted(RECOMMENDATION_KEYS))}",
)
@CHECKPOINT
@option(
    "out",
    File(),
    "a .parquet, .csv or .trec file to write, which is not there yet; or a folder, where histories are one",
    needed=True,
)
@option(
    "histories",
    File(),
    "a .parquet or .csv file with columns user and items, and leave_out if some must not be in a user's list; with --engine=ray also "
    "a folder of .parquet files, such as s3://bucket/folder: each becomes a file of lists",
    shown="all users of the dataset",
)
@list_rules
@option("k", Count(), "items per list", LIST_LENGTH)
@option("titles", Flag(), "the items' names in a column of their own, where the model was trained with a title_field", True)
@option("engine", OneOf(ENGINES), "local, or ray for Ray Data over a cluster", "local")
@option("workers", Count(), "processes of the Ray engine", shown="one per CPU")
@option("ray_address", Text(), "an existing cluster, host:port; or RAY_ADDRESS", shown="a local one")
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
    if result["unknown_items"] or result["empty_histories"]:
        print(
            f"{result['unknown_items']} items of the histories are unknown to the model and were skipped; "
            f"{result['empty_histories']} users have no known item and got the most popular ones"
        )
