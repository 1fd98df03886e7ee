"""What each step of a run takes, in seconds and memory, as data grows: users and interactions, or categories.

    python benchmarks/scale.py [--cases=steam,steam-10,ml-1m,20-categories,1000-categories] [--data=FOLDER] [--data_path=../shared/data]
                               [--threads=2] [--out=benchmarks/scale.md]

`steam` and `steam-10` have the shape of the paper's Steam and ten times its users and interactions (`benchmarks/synthetic.py`);
`20-categories` and `1000-categories` are 300,000 interactions of 30,000 users with 20,000 items that have 2.6 categories each, one
of them none. Data is made in `--data`, where what is there already is taken as it is; ml-1m is the real one, in `--data_path`.
Each case runs in a process of its own; the memory of a step is the most that the process holds while it is done (Linux), all
that came before included.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import synthetic
from peak import clear_peak, peak_now

from recbole_leaprec.convert.paper import TABLE_1, Sizes

STEAM = TABLE_1["steam"]
SIZES = {
    "steam": STEAM,
    "steam-10": replace(STEAM, users=10 * STEAM.users, interactions=10 * STEAM.interactions),
    "20-categories": Sizes(30_000, 20_000, 20, 300_000, 10.0, 2.6),
    "1000-categories": Sizes(30_000, 20_000, 1_000, 300_000, 10.0, 2.6),
}
SETTINGS = {"ml-1m": {"MAX_ITEM_LIST_LENGTH": 200}}
STEPS = ("load", "epoch", "validation", "reranked lists")


def make(name: str, folder: Path) -> None:
    """The atomic files of a case, unless they are there."""
    if name in SIZES and not (folder / name).exists():
        synthetic.write(SIZES[name], folder / name)
        if name.endswith("-categories"):  # an item that belongs to all of them
            path = folder / name / f"{name}.item"
            lines = path.read_text(encoding="utf-8").splitlines()
            lines[1] = "\t".join([lines[1].split("\t")[0], *[""] * lines[0].count("\t")])
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def measure(name: str, data_path: Path, threads: int, settings: dict[str, Any]) -> None:
    """Print what each step takes, one line of json each."""
    import torch

    from recbole_leaprec.config import LeapRecConfig
    from recbole_leaprec.reranking.reranking import Reranking
    from recbole_leaprec.run import Run

    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as folder:
        changes = {
            **SETTINGS.get(name, {}),
            **settings,
            "data_path": str(data_path),
            "output_dir": f"{folder}/run",
            "show_progress": False,
        }
        config = LeapRecConfig("SASRecCD", name, config_dict=changes)
        _told("imports", 0.0)
        run = _step("load", lambda: Run.prepare(config))
        with run.scratch_trainer() as trainer:
            _step("epoch", lambda: trainer._train_epoch(run.train_data, 0))
            _step("validation", lambda: trainer.evaluate_rerankings(run.valid_data, [Reranking()])[0].metrics)
            lists = _step(
                "reranked lists", lambda: trainer.evaluate_rerankings(run.test_data, [Reranking.from_config(config)])[0]
            )
            print(json.dumps({"users": lists.users, "interactions": len(run.dataset.sequences.items)}), flush=True)


def _step(name: str, work: Any) -> Any:
    clear_peak()
    started = time.perf_counter()
    result = work()
    _told(name, time.perf_counter() - started)
    return result


def _told(name: str, seconds: float) -> None:
    print(json.dumps({"step": name, "seconds": seconds, "megabytes": peak_now() / 1e6}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default="steam,steam-10,ml-1m,20-categories,1000-categories")
    parser.add_argument("--data", type=Path, help="a folder for the data that is made; a temporary one by default")
    parser.add_argument("--data_path", type=Path, default=Path("../shared/data"), help="where ml-1m is")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--settings", type=json.loads, default={}, help="keys of the config, as json")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--measure", help="measure one case, and print it as json")
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure, arguments.data, arguments.threads, arguments.settings)
        return
    with tempfile.TemporaryDirectory() as scratch:
        for name in arguments.cases.split(","):
            folder = (arguments.data or Path(scratch)) if name in SIZES else arguments.data_path
            make(name, folder)
            command = [
                sys.executable,
                "-W",
                "ignore",
                __file__,
                f"--measure={name}",
                f"--data={folder}",
                f"--threads={arguments.threads}",
            ]
            output = subprocess.run(
                [*command, f"--settings={json.dumps(arguments.settings)}"], check=True, text=True, capture_output=True
            )
            print(name, output.stdout)


if __name__ == "__main__":
    main()
