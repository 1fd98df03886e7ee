"""`leaprec study`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recbole_leaprec.cli.command import command, loading
from recbole_leaprec.cli.options import File, option, output_dir
from recbole_leaprec.common.files import check_spec
from recbole_leaprec.common.interrupt import leaving


@command("study", about_keys="Keys of RecBole and the plugin on the command line win over the settings in the file.")
@option("spec", File(), "the file that describes the study, such as properties/study/ml-100k.yaml", needed=True)
@output_dir("output/study-<name of the file>")
def study(keys: dict[str, Any], spec: str, output_dir: str | None) -> None:
    """Run a whole experiment from a file: train, rerank in every way, compare, and leave a report.
    After an interruption, the same command goes on.

      leaprec study --spec=properties/study/ml-100k.yaml
      leaprec study --spec=properties/study/paper.yaml --data_path=/my/data
    """
    check_spec(spec)
    with loading():
        from recbole_leaprec.study import study as run

    folder = output_dir or f"output/study-{Path(spec).stem}"
    with leaving(lambda: f"what is done is in {folder}, and the same command goes on from there"):
        page = run(spec, folder, keys)
    print(f"\neverything is in {folder}; open {page}")
