"""`leaprec train`, which is also `leaprec` alone."""

from __future__ import annotations

from typing import Any

from recbole_leaprec.cli.arguments import take_config_files
from recbole_leaprec.cli.command import command, loading
from recbole_leaprec.cli.options import Folder, option
from recbole_leaprec.cli.result_table import show_result
from recbole_leaprec.commands import command_names
from recbole_leaprec.keys import PLUGIN_KEYS
from recbole_leaprec.model_names import own_models, recbole_models

_OWN = ", ".join(sorted(name for name in own_models() if name not in recbole_models()))


@command(
    "train",
    about_keys=f"""models: {_OWN}; <Any>CD for RecBole's other sequential models, such as NARMCD; and these as they are, such as NARM
commands: {", ".join(command_names())}; `leaprec <command> --help` says more

Every key of RecBole and the plugin works as --key=value, and in yaml files: --config_files="a.yaml b.yaml".""",
    listed=PLUGIN_KEYS,
)
@option("resume", Folder(), "the folder of a training that was killed, to go on with", shown="a new training")
def train(keys: dict[str, Any], resume: str | None) -> None:
    """Train a model, rerank its test lists, and leave a run folder.
    Without arguments: SASRecCD on ml-100k, which comes with RecBole and needs no download.

      leaprec --model=SASRecCD --dataset=ml-1m
      leaprec --dataset=my-data --data_path=dataset --category_field=genre
      leaprec --reranker=leaprec --rerank_lambda=0.5 --epochs=20
      leaprec --resume=output/SASRecCD-ml-100k-20240101-120000
    """
    with loading():
        from recbole_leaprec.quick_start import resume as go_on
        from recbole_leaprec.quick_start import run_leaprec

    if resume is not None:
        show_result(go_on(resume, keys))
        return
    files = take_config_files(keys)
    show_result(run_leaprec(config_file_list=files, config_dict=keys))
