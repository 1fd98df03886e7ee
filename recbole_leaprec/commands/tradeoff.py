"""`leaprec tradeoff`."""

from __future__ import annotations

from typing import Any

from recbole_leaprec.cli.arguments import take_config_files
from recbole_leaprec.cli.command import command, folder_for, loading
from recbole_leaprec.cli.options import Count, Lambdas, Names, Text, option, output_dir
from recbole_leaprec.common.defaults import LAMBDAS, RESAMPLES, TRADEOFF_RERANKERS
from recbole_leaprec.settings.keys import MEASUREMENT_KEYS, check_changes

_TOLD_BY_TRADEOFF = {"reranker", "rerank_lambda", "target_skl", "config_files"}
"""Keys that `analysis.tradeoff` refuses itself, with an error that says more than that they cannot be changed."""


@command(
    "tradeoff",
    about_keys=f"With a checkpoint these keys can be changed: {', '.join(sorted(MEASUREMENT_KEYS))}.\n"
    "Without one, every key of RecBole and the plugin works.",
)
@option(
    "checkpoint",
    Text(),
    "the model.pth of a run, or those of several runs with commas between them",
    shown="train a model first",
)
@option("rerankers", Names(), "rerankers with commas between them", TRADEOFF_RERANKERS)
@option("lambdas", Lambdas(), "start:stop:step, or numbers with commas", LAMBDAS)
@option("samples", Count(), "how often the users are resampled for the 95 % intervals", RESAMPLES)
@output_dir("output/tradeoff-<time>")
def tradeoff(
    keys: dict[str, Any],
    checkpoint: str | None,
    rerankers: list[str],
    lambdas: list[float],
    samples: int,
    output_dir: str | None,
) -> None:
    """Measure many rerankers and lambdas on test, and draw nDCG and HR against S_KL. Users are scored once.

    leaprec tradeoff --model=SASRecCD --dataset=ml-1m --rerankers=leaprec,calirec,calirec_plus --lambdas=0:1:0.1
    leaprec tradeoff --checkpoint=output/a/model.pth,output/b/model.pth --rerankers=leaprec,setwise
    """
    if checkpoint:
        check_changes([key for key in keys if key not in _TOLD_BY_TRADEOFF], MEASUREMENT_KEYS)
    with loading():
        from recbole_leaprec.analysis.tradeoff import tradeoff as run

    with folder_for("tradeoff", output_dir) as folder:
        files = take_config_files(keys)
        table = run(
            folder, checkpoint.split(",") if checkpoint else (), rerankers, lambdas, config_file_list=files, config_dict=keys,
            samples=samples,
        )  # fmt: skip
    shown = table[[c for c in table if not c.endswith(("_low", "_high")) and (c != "checkpoint" or table[c].nunique() > 1)]]
    print(f"\n{shown.to_string(index=False, float_format='{:.4f}'.format)}\n\neverything is in {folder}")
