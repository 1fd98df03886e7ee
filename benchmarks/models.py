"""Train every sequential model of RecBole, plain and as `<Any>CD`, for an epoch on ml-100k: which run, and their metrics.

python benchmarks/models.py [--epochs=1] [--models=NARM,STAMP] [--threads=1] [--out=results/ml-100k-models.md]
"""

from __future__ import annotations

import argparse
import inspect
import tempfile
import time
from pathlib import Path

import recbole.model.sequential_recommender as recbole_models
import torch
from recbole.model.abstract_recommender import SequentialRecommender
from tqdm import tqdm

from recbole_leaprec import run_leaprec
from recbole_leaprec.model import get_model
from recbole_leaprec.settings.model_names import UNSUPPORTED

SETTINGS = {"MAX_ITEM_LIST_LENGTH": 20, "train_batch_size": 512}  # at length 50, many of them take minutes per epoch
ROOT = Path(__file__).resolve().parent.parent
METRICS = {"HR@10": "hit@10", "nDCG@10": "ndcg@10", "S_KL@10": "skl@10"}


def run(model: str, epochs: int) -> str:
    """Train a model; returns its row of the table."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        settings = {**SETTINGS, "epochs": epochs, "show_progress": False, "output_dir": f"{folder}/run"}
        try:
            result = run_leaprec(model=model, dataset="ml-100k", config_dict=settings)
        except Exception as error:  # the table shows the error
            return f"| {model} | **fails** | | | | {type(error).__name__}: {' '.join(str(error).split())[:120]} |"
    figures = " | ".join(f"{result['backbone']['test'][key]:.4f}" for key in METRICS.values())
    how = getattr(get_model(model), "train_positions", "last")
    return f"| {model} | {time.perf_counter() - started:.0f} s | {figures} | {'all positions in one pass' if how == 'all' else ''} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--models", help="RecBole's names, with commas; all of them by default")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "ml-100k-models.md")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    everything = inspect.getmembers(recbole_models, inspect.isclass)
    names = [name for name, model in everything if issubclass(model, SequentialRecommender)]
    names = arguments.models.split(",") if arguments.models else names
    lines = [
        "# Every sequential model of RecBole, plain and with the CD loss",
        "",
        f"`python benchmarks/models.py --epochs={arguments.epochs} --threads={arguments.threads}`: ml-100k, {SETTINGS}; test figures of the "
        "plain ranking. After so few epochs they say that a model learns, not how good it is.",
        "",
        f"| model | time | {' | '.join(METRICS)} | |",
        f"|---|---|{'---|' * len(METRICS)}---|",
    ]
    for name in tqdm(names, unit="model"):
        if name in UNSUPPORTED:
            lines.append(f"| {name}, {name}CD | not supported | | | | {UNSUPPORTED[name]} |")
        else:
            lines += [run(name, arguments.epochs), run(f"{name}CD", arguments.epochs)]
        arguments.out.write_text("\n".join(lines) + "\n")
    dacsr = run("DACSR", arguments.epochs)
    arguments.out.write_text("\n".join([*lines, dacsr]) + "\n")


if __name__ == "__main__":
    main()
