"""A recipe of ours, in our own environment, with what its training took beside its run folder's files: see peers.py."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import torch

from recbole_leaprec.common.files import write_json
from recbole_leaprec.config import LeapRecConfig
from recbole_leaprec.quick_start import train_and_measure
from recbole_leaprec.run import Run
from recbole_leaprec.run_folder import versions
from recbole_leaprec.run_log import run_log

sys.path.append(str(Path(__file__).resolve().parent.parent))
from peak import peak_now


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipe")
    parser.add_argument("folder")
    parser.add_argument("keys", nargs="*", help="key=value")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    keys = dict(key.split("=", 1) for key in asked.keys)
    seed = int(keys.pop("seed"))
    config = LeapRecConfig(None, None, [asked.recipe], {**keys, "seed": seed, "output_dir": asked.folder})
    told: dict[str, Any] = {}

    def fit(run: Run, trainer: Any) -> None:
        started, started_wall = time.process_time(), time.perf_counter()
        run.fit(trainer)
        told.update(seconds=time.process_time() - started, wall_seconds=time.perf_counter() - started_wall, peak=peak_now())

    with run_log(config) as log:
        run = Run.prepare(config)
        result = train_and_measure(run, run.open(log, "train.log"), fit)
    told |= {
        "settings": f"`{asked.recipe}`",
        "versions": versions(),
        "parameters": sum(parameter.numel() for parameter in run.model.parameters() if parameter.requires_grad),
        "epochs": result["epochs"],
        "best_epoch": result["best_epoch"] + 1,
        "seed": seed,
    }
    write_json(Path(asked.folder) / "training.json", told)


if __name__ == "__main__":
    main()
