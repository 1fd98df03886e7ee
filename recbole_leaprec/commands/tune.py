"""`leaprec tune`."""

from __future__ import annotations

from typing import Any

import click

from recbole_leaprec.cli.arguments import take_config_files
from recbole_leaprec.cli.command import INTERRUPTED, command, folder_for, is_given, loading, program
from recbole_leaprec.cli.options import Count, File, Flag, Number, OneOf, Text, option, output_dir
from recbole_leaprec.cli.ray_options import RAY_ADDRESS
from recbole_leaprec.cli.result_table import show_result
from recbole_leaprec.common.defaults import SEARCHES, TRIALS

_WITH_RESUME = {"resume", "output_dir", "trials", "ray_address"}
"""Options that may be given together with `--resume`."""


@command("tune", about_keys="Keys of RecBole and the plugin on the command line hold for all trials.")
@option(
    "space",
    File(),
    "a file of the values to try, in yaml or in RecBole's hyper.test form",
    shown="none; needed for a new search",
)
@option(
    "objective",
    Text(),
    "what to look for on validation: a metric, 'ndcg@10 subject to skl@10 <= 0.3', or hypervolume@10",
    shown="valid_metric",
)
@option("trials", Count(), "how many trials", shown=str(TRIALS))
@option("search", OneOf(SEARCHES), "tpe (Optuna) or random", "tpe")
@option("early_stopping", Flag(), "whether ASHA stops trials that fall behind", True)
@option("concurrent", Count(), "how many trials run at the same time", shown="as many as fit")
@option("cpus_per_trial", Number(above=0), "CPUs per trial; torch uses as many threads", 1)
@option("gpus_per_trial", Number(), "GPUs per trial, also fractions; with 0, trials run on CPUs", 0)
@RAY_ADDRESS
@option(
    "resume",
    Flag(),
    "go on with the search in output_dir, with the same settings; --trials may change, but not below the trials that are done",
    False,
)
@output_dir("output/tune-<time>")
@click.pass_context
def tune(context: click.Context, keys: dict[str, Any], resume: bool, output_dir: str | None, **options: Any) -> int | None:
    """Search for hyperparameters with Ray Tune. Trials are compared on validation; only the winner is measured on test.

    leaprec tune --space=properties/tune/SASRecCD.yaml --dataset=ml-1m --trials=20 --epochs=50
    leaprec tune --space=my.yaml --objective="ndcg@10 subject to skl@10 <= 0.3"
    leaprec tune --resume=True --output_dir=output/tune-20240101-120000
    """
    with loading("torch, RecBole and Ray"):
        from recbole_leaprec.tune import tune as run
        from recbole_leaprec.tune.settings import check_resumed_with

    if resume:
        given = {name for name in context.params if is_given(context, name)}
        check_resumed_with(sorted(given - _WITH_RESUME))
        if output_dir is None:
            raise ValueError("--resume=True needs --output_dir, the folder of the search to go on with")
    files = take_config_files(keys)
    show_progress = keys.pop("show_progress", None)  # may be given with --resume, where no other key may
    with folder_for("tune", output_dir) as folder:
        result = run(
            output_dir=folder,
            config_file_list=files,
            config_dict=keys,
            resume=resume,
            show_progress=show_progress,
            **options,
        )
    if result["best"]:
        print(_winner(result["best"]))
    if result["interrupted"]:
        print(
            f"\ninterrupted, {result['done']} of {result['trials']} trials are done and test was not looked at; go on with\n"
            f"  {program()} tune --resume=True --output_dir={result['folder']}"
        )
        return INTERRUPTED
    show_result({**result["test"], "folder": result["folder"]})
    print(f"train the winner again with\n  {program()} --config_files={result['folder']}/best.yaml")
    return None


def _winner(best: dict[str, Any]) -> str:
    from recbole_leaprec.tune.objective import OUT_OF_BOUND

    at = "" if best["lambda"] is None else f" at lambda {best['lambda']:g}"
    if best["within_bound"]:
        told = f"best trial {best['trial']}: {best['objective']} on validation, {best['score']:.4f}{at}"
    else:
        missed = OUT_OF_BOUND - best["score"]
        told = f"no trial meets {best['objective']!r}; {best['trial']} misses it by the least, {missed:.4f}{at}"
    return "\n".join([f"\n{told}", *(f"  {key}: {value}" for key, value in best["sample"].items())])
