"""`leaprec rerank`."""

from __future__ import annotations

from typing import Any

from recbole_leaprec.cli.command import command, loading
from recbole_leaprec.cli.options import Count, File, Text, Whole, option
from recbole_leaprec.cli.ray_options import ray_options
from recbole_leaprec.common.defaults import LIST_LENGTH, MAX_BAD_LINES
from recbole_leaprec.settings.keys import RERANK_KEYS, check_engine, check_target, default_settings


@command(
    "rerank",
    keys=RERANK_KEYS,
    about_keys="Keys that it takes: " + ", ".join(sorted(RERANK_KEYS)),
    listed=RERANK_KEYS,
)
@option(
    "candidates",
    File(),
    "a .csv, .tsv or .parquet file with the columns user, item and score; with --engine=ray also a folder of .parquet files: all "
    "rows of a user must be in one file, and the user's history or preference in the file of the same name in the other folder",
    needed=True,
)
@option("items", File(), "a table with the columns item and categories", needed=True)
@option(
    "histories",
    File(),
    "a table with the columns user and items, or user, item and timestamp",
    shown="none; give --preferences then",
)
@option(
    "preferences",
    File(),
    "a table with the columns user, category and share, instead of histories; the shares of a user are scaled to sum to 1",
    shown="none; give --histories then",
)
@option(
    "out",
    File(),
    "a new .parquet, .csv or .trec file to write; a folder if --candidates is a folder",
    needed=True,
)
@option("k", Count(), "items per list", LIST_LENGTH)
@option(
    "category_separator",
    Text(),
    "the sign between categories; list for lists, none for one category per item",
    shown="guessed",
)
@option("max_bad", Whole(), "how many unreadable lines a file may have", MAX_BAD_LINES)
@ray_options
def rerank(keys: dict[str, Any], **options: Any) -> None:
    """Make calibrated lists from the candidates of any recommender: a table of users, items and scores.

    leaprec rerank --candidates=scores.parquet --items=items.parquet --histories=events.parquet --out=lists.parquet
    leaprec rerank --candidates=scores.csv --items=items.csv --histories=h.csv --out=lists.csv --reranker=setwise --target_skl=0.1
    leaprec rerank --candidates=scores.parquet --items=items.parquet --preferences=shares.csv --out=lists.parquet --engine=ray
    """
    check_target(keys)
    check_engine(options["engine"], options["workers"], ray_address=options["ray_address"])
    if options["preferences"] is not None and "alpha" in keys:
        raise ValueError("alpha makes a preference out of a history, and --preferences has preferences: leave it out")
    with loading():
        from recbole_leaprec.recommend.rerank_file import rerank_file
        from recbole_leaprec.reranking.reranking import Reranking

    show_progress, target = keys.pop("show_progress", True), keys.pop("target_skl", None)
    settings = {**default_settings(), **keys}
    result = rerank_file(
        reranking=Reranking.from_config(settings), target_skl=target, alpha=settings["alpha"], beta=settings["beta"],
        show_progress=show_progress, **options,
    )  # fmt: skip
    skl = "" if result["skl"] is None else f", mean S_KL {result['skl']:.4f}"
    lines = [
        *result["told"],
        f"{result['users']:,} lists at lambda {result['lambda']:g} in {result['seconds']:.1f} s{skl}: {result['out']}",
    ]
    print("\n".join(lines))
