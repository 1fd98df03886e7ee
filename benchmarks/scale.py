"""Seconds and memory of each step of a run as data grows: users and interactions, or categories.

    python benchmarks/scale.py [--cases=ml-1m,20-categories,1000-categories,steam,steam-10] [--data=FOLDER] [--data_path=../shared/data]
                               [--threads=2] [--out=benchmarks/scale.md]

`steam` has the shape of the paper's Steam, and `steam-10` ten times its users and interactions
(`benchmarks/synthetic.py`). `20-categories` and `1000-categories` have 300,000 interactions of 30,000 users with 20,000
items; an item has 2.6 categories on average, and one item has none. Data is made in `--data`, and used again if it
exists; ml-1m is the real dataset, in `--data_path`. Each case runs in two processes. The first only loads the data. The
second loads the prepared data of the first (if its folder can be written), and does all other steps. The memory of a
step is the peak of the process during the step (Linux), including everything that was loaded before.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import synthetic
from peak import clear_peak, peak_now

from recbole_leaprec.convert.paper import TABLE_1, Sizes
from recbole_leaprec.data.cache import FOLDER

STEAM = TABLE_1["steam"]
SIZES = {
    "steam": STEAM,
    "steam-10": replace(STEAM, users=10 * STEAM.users, interactions=10 * STEAM.interactions),
    "20-categories": Sizes(30_000, 20_000, 20, 300_000, 10.0, 2.6),
    "1000-categories": Sizes(30_000, 20_000, 1_000, 300_000, 10.0, 2.6),
}
CASES = "ml-1m,20-categories,1000-categories,steam,steam-10"
FIRST, SECOND, EPOCH, VALIDATION, LISTS = "load", "load again", "epoch", "validation", "reranked lists"
STEPS = (FIRST, SECOND, EPOCH, VALIDATION, LISTS)


def make(name: str, folder: Path) -> None:
    """Write the atomic files of a case, unless they exist."""
    if name in SIZES and not (folder / name).exists():
        synthetic.write(SIZES[name], folder / name)
        if name.endswith("-categories"):  # an item without a category, which belongs to all of them
            path = folder / name / f"{name}.item"
            lines = path.read_text(encoding="utf-8").splitlines()
            lines[1] = "\t".join([lines[1].split("\t")[0], *[""] * lines[0].count("\t")])
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def measure(name: str, first: bool, arguments: argparse.Namespace) -> None:
    """Print seconds and memory of each step, one line of JSON per step; for the first start only loading."""
    import torch

    from recbole_leaprec.config import LeapRecConfig
    from recbole_leaprec.reranking.reranking import Reranking
    from recbole_leaprec.run import Run

    torch.set_num_threads(arguments.threads)
    with tempfile.TemporaryDirectory() as folder:
        given = {"data_path": str(arguments.data), "output_dir": f"{folder}/run", "show_progress": False}
        config = LeapRecConfig("SASRecCD", name, config_dict={**arguments.settings, **given})
        run = _step(FIRST if first else SECOND, lambda: Run.prepare(config))
        if first:
            return
        with run.scratch_trainer() as trainer:
            _step(EPOCH, lambda: trainer._train_epoch(run.train_data, 0))
            _step(VALIDATION, lambda: trainer.evaluate_rerankings(run.valid_data, [Reranking()])[0].metrics)
            _step(LISTS, lambda: trainer.evaluate_rerankings(run.test_data, [Reranking.from_config(config)])[0].metrics)


def _step(name: str, work: Callable[[], Any]) -> Any:
    clear_peak()
    started = time.perf_counter()
    result = work()
    print(json.dumps({name: [time.perf_counter() - started, peak_now() / 1e6]}), flush=True)
    return result


def report(name: str, arguments: argparse.Namespace, scratch: Path) -> str:
    """A row of the table: seconds and memory of each step."""
    folder = (arguments.data or scratch) if name in SIZES else arguments.data_path
    make(name, folder)
    shutil.rmtree(folder / name / FOLDER, ignore_errors=True)
    found: dict[str, list[float]] = {}
    for start in ("first", "second"):
        command = [sys.executable, "-W", "ignore", __file__, f"--measure={name}", f"--start={start}", f"--data={folder}"]
        command += [f"--threads={arguments.threads}", f"--settings={json.dumps(arguments.settings)}"]
        for line in subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout.splitlines():
            if line.startswith("{"):
                found |= json.loads(line)
    return (
        f"| {name} | {' | '.join(f'{seconds:.1f} s, {megabytes:,.0f} MB' for seconds, megabytes in map(found.get, STEPS))} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default=CASES)
    parser.add_argument("--data", type=Path, help="a folder for the data that is made; a temporary one by default")
    parser.add_argument("--data_path", type=Path, default=Path("../shared/data"), help="where ml-1m is")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--settings", type=json.loads, default={}, help="keys of the config, as json")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--measure", help="measure one case, and print it as json")
    parser.add_argument("--start", choices=["first", "second"], default="second", help="with --measure: which start of it")
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure, arguments.start == "first", arguments)
        return
    lines = [
        f"`python benchmarks/scale.py --cases={arguments.cases} --threads={arguments.threads}`, SASRecCD, `leaprec` at 0.3; seconds and the most memory that "
        "the process holds during each step, some 390 MB for the imports included.",
        "",
        f"| | {' | '.join(STEPS)} |",
        "|---" * (len(STEPS) + 1) + "|",
    ]
    with tempfile.TemporaryDirectory() as scratch:
        for name in arguments.cases.split(","):
            lines.append(report(name, arguments, Path(scratch)))
            print(lines[-1], flush=True)
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
