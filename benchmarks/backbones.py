"""Rerank trained runs of several backbones, with and without the CD loss, and write one table.

python benchmarks/backbones.py output/SASRecCD-... output/GRU4RecCD-... [--data_path=...] [--out=results/ml-1m-backbones.md]
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import torch

from recbole_leaprec import evaluate
from recbole_leaprec.checkpoint import load_checkpoint
from recbole_leaprec.reranking import Reranking

LAMBDAS = (0.3, 0.5, 0.7)
METRICS = {"HR@10": "hit@10", "nDCG@10": "ndcg@10", "S_KL@10": "skl@10"}
SHOWN = ("learning_rate", "train_batch_size", "MAX_ITEM_LIST_LENGTH", "hidden_size", "embedding_size", "inner_size", "n_layers", "n_heads",
         "num_layers", "caser_window", "nh", "nv", "reg_weight", "dropout_prob", "hidden_dropout_prob", "attn_dropout_prob", "mask_ratio",
         "ft_ratio", "alpha", "beta", "gamma", "bpr_weight", "epochs", "stopping_step", "seed")  # fmt: skip


def rows(run: Path, data_path: str | None) -> tuple[list[str], str]:
    """The lines of a run in the table, and its line of settings."""
    checkpoint = load_checkpoint(run / "model.pth")
    config = checkpoint["config"]
    with tempfile.TemporaryDirectory() as folder:
        changes = {"output_dir": f"{folder}/run", **({"data_path": data_path} if data_path else {})}
        result = evaluate(run / "model.pth", changes, [Reranking("leaprec", lam) for lam in LAMBDAS])
    name = config["model"].removesuffix("CD")
    loss = f"BPR + {config['gamma']:g} CD-BPR" if config["gamma"] else "BPR"
    finished = run / "result.json"  # missing if training was stopped
    trained = json.loads(finished.read_text(encoding="utf-8")) if finished.is_file() else {}
    epochs = f"{checkpoint['epoch'] + 1} of {trained.get('epochs', config['epochs'])}{'' if trained else ', stopped'}"
    spent = f"{trained['timing']['training'] / 60:.0f} min" if trained else ""
    lines = [
        f"| {name} | {loss} | {how} | {' | '.join(f'{metrics[key]:.4f}' for key in METRICS.values())} | {epochs} | {spent} |"
        for how, metrics in [
            ("plain ranking", result["backbone"]["test"]),
            *((f"leaprec {row['lambda']:g}", row["test"]) for row in result["rerank"]),
        ]
    ]
    settings = ", ".join(f"{key} {config[key]}" for key in SHOWN if config.get(key) is not None)
    return lines, f"- {name}, {loss}: {settings}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--data_path")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    table = [
        f"| backbone | loss | list | {' | '.join(METRICS)} | best epoch | training |",
        f"|---|---|---|{'---|' * len(METRICS)}---|---|",
    ]
    settings = []
    for run in arguments.runs:
        lines, line = rows(run, arguments.data_path)
        table += lines
        settings.append(line)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text("\n".join([*table, "", *settings]) + "\n")
    print("\n".join(table))


if __name__ == "__main__":
    main()
