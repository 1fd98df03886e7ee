"""Makes calibrated lists for all users, or for a file of histories."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from recbole_leaprec.common.defaults import LIST_LENGTH
from recbole_leaprec.data import SequenceDataset
from recbole_leaprec.recommend.recommender import Recommender
from recbole_leaprec.recommend.totals import Totals
from recbole_leaprec.run import read_dataset
from recbole_leaprec.run_log import run_log

__all__ = ["Recommender", "recommend"]


def recommend(
    checkpoint: str | Path,
    out: str | Path,
    histories: str | Path | None = None,
    *,
    k: int = LIST_LENGTH,
    config_dict: dict[str, Any] | None = None,
    allow: str | Path | None = None,
    deny: str | Path | None = None,
    items: str | Path | None = None,
    titles: bool = True,
    engine: str = "local",
    workers: int | None = None,
    ray_address: str | None = None,
    show_progress: bool = True,
) -> dict[str, Any]:
    """Make a list of k items for each user, and write the lists to a file batch by batch.

    Args:
        checkpoint: the model.pth of a run.
        out: a .parquet, .csv or .trec file. Parquet and CSV have the columns user, rank, item, score (the model's) and
            skl (of the whole list). A TREC run is in the order of the lists. If `histories` is a folder, `out` is a
            folder, too.
        histories: a .parquet or .csv file with the columns user and items; then the dataset is not read at all. None
            for all users of the dataset as it is now, each with all interactions. Users may be unknown to the model;
            unknown items are skipped and counted. With the Ray engine also a folder of .parquet files, or its address
            such as s3://bucket/folder. Then each file gives a file of lists with the same name in the folder `out`. If
            such a call is interrupted, the same call goes on.
        config_dict: keys to change, those in `RECOMMENDATION_KEYS`: reranker, rerank_lambda, mask_history, ...
        items: a table with `item` and `categories`; it replaces the categories that the model was trained with.
        allow, deny: text files, one item per line: the items that lists may hold, and the items that no list may hold.
        titles: whether to write a column `title` after `item`, if the model was trained with a `title_field`.
        engine: `local`, or `ray` for Ray Data over a cluster. With `ray`, all nodes must see the checkpoint, the data,
            the histories and the folder of `out`.
        workers: number of processes of the Ray engine, one CPU each; None for one per CPU.

    Returns:
        The number of lists (`users`), of users who have seen everything and got no list (`without_list`), of
        `unknown_items` and of `empty_histories`; the mean `skl`; `told`, sentences on rules without effect; and
        `seconds`.

    Raises:
        ValueError: bad arguments or files. Then nothing is written, except lists of a folder that were made before a
            bad row was found. A file is written completely or not at all.
    """
    from recbole_leaprec.common.parquet_folder import check_folders
    from recbole_leaprec.recommend import chunk_workers
    from recbole_leaprec.recommend.histories import check_file, of_dataset, of_file
    from recbole_leaprec.recommend.rules import read_rules
    from recbole_leaprec.recommend.writer import check_out
    from recbole_leaprec.settings.keys import check_count, check_engine

    started = time.perf_counter()
    check_engine(engine, workers, ray_address=ray_address)
    check_count("k", k)
    folders = check_folders(engine, out, histories=histories)
    if not folders:
        if histories is not None:
            check_file(histories)
        out = check_out(out)
    changes = dict(config_dict or {})
    if "topk" in changes:
        raise ValueError(f"topk: k says how long the lists are, got topk {changes['topk']!r}")
    if "preference_history" in changes or changes.get("mask_history") == "training":
        raise ValueError(
            "preference_history and mask_history: training are for evaluation; lists are made from the whole history"
        )
    rules = {"titles": titles, **read_rules(allow, deny, items, show_progress)}
    recommender = Recommender(checkpoint, changes, k, **rules)
    if engine == "ray":
        # A worker asks Ray for one CPU and no GPU, so it may not use a GPU.
        changes |= {"rerank_lambda": recommender.reranking.lam, "target_skl": None, "gpu_id": ""}
    arguments = {"checkpoint": str(Path(checkpoint).absolute()), "changes": changes, "k": k, **rules}
    if folders:
        from recbole_leaprec.recommend.recommend_folder import recommend_folder

        totals = recommend_folder(recommender, arguments, histories or "", out, workers, ray_address, show_progress)
    else:
        out, totals = Path(out), Totals()
        frames = (
            of_dataset(_built(recommender.config), chunk_workers.BATCH)
            if histories is None
            else of_file(histories, chunk_workers.BATCH)
        )
        batches = _counted(frames, totals)
        if engine == "local":
            _write(map(recommender, batches), out, recommender.has_titles, show_progress, totals)
        else:
            from recbole_leaprec.cluster import connected

            with connected(ray_address):
                lists = chunk_workers.ray_data(batches, arguments, workers, out)
                _write(lists, out, recommender.has_titles, show_progress, totals)
    examples = ", ".join(map(repr, recommender.dataset.items[1:4]))
    unknown = (
        f"no item of {histories} is known to the model, whose items are such as {examples}; are there spaces between them?"
    )
    summary = totals.summary(k, unknown)
    return {**summary, "told": recommender.told, "seconds": time.perf_counter() - started, "out": str(out)}


def _built(config: Any) -> SequenceDataset:
    """Read the dataset as it is now: it may have grown since the model was trained."""
    with run_log(config):
        return read_dataset(config)


def _counted(frames: Iterator[pd.DataFrame], totals: Totals) -> Iterator[pd.DataFrame]:
    for frame in frames:
        totals.histories += len(frame)
        yield frame


def _write(lists: Iterable[pd.DataFrame], out: Path, titles: bool, show_progress: bool, totals: Totals) -> None:
    from recbole_leaprec.recommend.writer import open_writer

    with open_writer(out, titles) as writer, tqdm(desc="lists", unit="user", disable=not show_progress) as bar:
        for rows in lists:
            writer.write(rows)
            bar.update(totals.add_lists(rows))
