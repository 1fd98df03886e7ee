"""`leaprec train`; `leaprec` without a command is the same."""

from __future__ import annotations

from typing import Any

import click

from recbole_leaprec.cli.arguments import take_config_files
from recbole_leaprec.cli.command import command, is_given, loading
from recbole_leaprec.cli.options import Count, Folder, Number, OneOf, option
from recbole_leaprec.cli.ray_options import RAY_ADDRESS
from recbole_leaprec.cli.result_table import show_result
from recbole_leaprec.commands import command_names
from recbole_leaprec.common.defaults import ENGINES
from recbole_leaprec.settings.keys import PLUGIN_KEYS, RESUME_KEYS, check_changes, check_engine
from recbole_leaprec.settings.model_names import own_models, recbole_models

_OWN = ", ".join(sorted(name for name in own_models() if name not in recbole_models()))


@command(
    "train",
    about_keys=f"""models: {_OWN}; <Any>CD for RecBole's other sequential models, such as NARMCD; and RecBole's models without the CD loss, such as NARM
commands: {", ".join(command_names())}; `leaprec <command> --help` says more

Every key of RecBole and the plugin works as --key=value, and in yaml files: --config_files="a.yaml b.yaml".""",
    listed=PLUGIN_KEYS,
)
@option(
    "resume", Folder(), "the folder of a training that was killed; it goes on after its last epoch", shown="a new training"
)
@option(
    "engine", OneOf(ENGINES), "local: this process trains; ray: several processes train together, with Ray Train", "local"
)
@option(
    "workers",
    Count(),
    "how many processes --engine=ray starts; train_batch_size is for all of them together",
    shown="one per CPU",
)
@option("cpus_per_worker", Number(above=0), "CPUs per worker of --engine=ray", 1.0)
@option("gpus_per_worker", Number(), "GPUs per worker of --engine=ray", 0.0)
@RAY_ADDRESS
@click.pass_context
def train(
    context: click.Context,
    keys: dict[str, Any],
    resume: str | None,
    engine: str,
    workers: int | None,
    cpus_per_worker: float,
    gpus_per_worker: float,
    ray_address: str | None,
) -> None:
    """Train a model, rerank its test lists, and leave a run folder.
    Without arguments: SASRecCD on ml-100k, which comes with RecBole and needs no download.

      leaprec --model=SASRecCD --dataset=ml-1m
      leaprec --recipe=best --dataset=ml-1m
      leaprec --dataset=my-data --data_path=dataset --category_field=genre
      leaprec --reranker=leaprec --rerank_lambda=0.5 --epochs=20
      leaprec --resume=output/SASRecCD-ml-100k-20240101-120000
      leaprec --dataset=ml-1m --engine=ray --workers=4
    """
    given = {"cpus_per_worker": cpus_per_worker, "gpus_per_worker": gpus_per_worker, "ray_address": ray_address}
    check_engine(engine, workers, **{name: value for name, value in given.items() if is_given(context, name)})
    if resume:
        check_changes(keys, RESUME_KEYS)
    with loading():
        from recbole_leaprec.quick_start import resume as go_on
        from recbole_leaprec.quick_start import run_leaprec

    files = [] if resume else take_config_files(keys)
    if engine == "ray":
        from recbole_leaprec.parallel.run import run_in_parallel

        asked: dict[str, Any] = {"workers": workers, "cpus_per_worker": cpus_per_worker, "gpus_per_worker": gpus_per_worker}
        show_result(run_in_parallel(files, keys, **asked, ray_address=ray_address, resume=resume))
    elif resume:
        show_result(go_on(resume, keys))
    else:
        show_result(run_leaprec(config_file_list=files, config_dict=keys))
