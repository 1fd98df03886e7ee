"""Every reranker at several lambdas on one trained model: accuracy, calibration and seconds.

    python benchmarks/rerankers.py --checkpoint=output/.../model.pth [--data_path=...] [--out=results/ml-1m-rerankers.md]

All lambdas of a method are reranked together, and each gets an equal share of the seconds. All methods use the same
scores.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch

from recbole_leaprec import evaluate
from recbole_leaprec.common.metric_titles import TITLES
from recbole_leaprec.reranking import RERANKERS, Reranking

LAMBDAS = (0.1, 0.3, 0.5, 0.7, 0.9)
METRICS = ("hit@10", "ndcg@10", "skl@10", "ckl@10")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--data_path")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    with tempfile.TemporaryDirectory() as folder:
        changes = {"output_dir": f"{folder}/run", "eval_batch_size": 1024}
        if arguments.data_path:
            changes["data_path"] = arguments.data_path
        methods = [name for name, reranker in RERANKERS.items() if reranker.preference]
        result = evaluate(arguments.checkpoint, changes, [Reranking(name, lam) for name in methods for lam in LAMBDAS])
    titles = [f"{TITLES[name]}@{k}" for name, _, k in (metric.partition("@") for metric in METRICS)]
    lines = [f"| method | lambda | {' | '.join(titles)} | seconds |", "|---|---|" + "---|" * (len(METRICS) + 1)]
    rows = [("plain ranking", "", result["backbone"]["test"], "")]
    rows += [(row["reranker"], f"{row['lambda']:g}", row["test"], f"{row['seconds']:.2f}") for row in result["rerank"]]
    for name, lam, metrics, seconds in rows:
        lines.append(f"| {name} | {lam} | {' | '.join(f'{metrics[metric]:.4f}' for metric in METRICS)} | {seconds} |")
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
