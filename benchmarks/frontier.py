"""Trade-off curves of trained runs against the authors', at equal S_KL.

python benchmarks/frontier.py output/seed1 output/seed2 ... --data_path=... [--protocol=ours|authors] [--out=FILE.md] [--plot=FILE.png]

For each S_KL@10 in the authors' table, and for each way of reranking, lambda is the smallest of a grid whose lists meet that
figure on validation; test is then measured at these lambdas, once. Several runs, of other seeds, are averaged; the spread is
from the least to the largest. The authors' figures are of their released SASRec checkpoint, reranked by leaprec.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import mean

import torch

from recbole_leaprec import evaluate
from recbole_leaprec.evaluator import Reranking

# lambda: (HR@10, nDCG@10, S_KL@10) on ML-1M; None is the plain ranking.
AUTHORS = {
    "authors": {
        None: (0.1975, 0.0895, 1.0361), 0.1: (0.1964, 0.0884, 0.5569), 0.2: (0.1939, 0.0875, 0.4643), 0.3: (0.1917, 0.0857, 0.3917),
        0.5: (0.1793, 0.0801, 0.2734), 0.7: (0.1607, 0.0712, 0.1726), 0.9: (0.1329, 0.0578, 0.0798),
    },
    "ours": {
        None: (0.2114, 0.1126, 0.8856), 0.1: (0.2091, 0.1112, 0.4838), 0.2: (0.2073, 0.1104, 0.4033), 0.3: (0.2051, 0.1085, 0.3406),
        0.5: (0.1990, 0.1031, 0.2394), 0.7: (0.1872, 0.0925, 0.1548), 0.9: (0.1544, 0.0684, 0.0769),
    },
}  # fmt: skip
PROTOCOLS = {"ours": {}, "authors": {"mask_history": "training", "preference_history": "training"}}
METHODS = {
    "setwise": Reranking("setwise"),
    "setwise raw": Reranking("setwise_raw"),
    "leaprec by relevance": Reranking("leaprec", order="relevance"),
    "leaprec": Reranking("leaprec"),
    "calirec_plus": Reranking("calirec_plus"),
}
# Even steps of log(lambda / (1 - lambda)): lambda says little where relevance is a probability.
GRID = [float(torch.sigmoid(torch.tensor(step / 4))) for step in range(-24, 25)]
PLAIN = "plain ranking"


def curves(run: Path, methods: list[str], changes: dict) -> dict[str, dict]:
    """Test metrics for each method at the lambda that meets each of the authors' S_KL on validation."""
    authors = AUTHORS["authors" if changes.get("mask_history") else "ours"]
    grid = [replace(METHODS[name], lam=lam) for name in methods for lam in GRID]
    valid = _evaluate(run, changes, grid, "valid")["rerank"]
    chosen: dict[tuple[str, float | None], Reranking] = {}
    for number, name in enumerate(methods):
        skl = [entry["valid"]["skl@10"] for entry in valid[number * len(GRID) : (number + 1) * len(GRID)]]
        for at, (_, _, target) in authors.items():
            met = [lam for lam, value in zip(GRID, skl, strict=True) if value <= target]
            if met:
                chosen[name, at] = replace(METHODS[name], lam=min(met))
    test = _evaluate(run, changes, list(dict.fromkeys(chosen.values())), "test")
    metrics = {_key(entry): entry["test"] for entry in test["rerank"]}
    result: dict[str, dict] = {PLAIN: {None: test["backbone"]["test"]}}
    for (name, at), reranking in chosen.items():
        result.setdefault(name, {})[at] = metrics[reranking] | {"lambda": reranking.lam}
    return result


def _key(entry: dict) -> Reranking:
    return Reranking(entry["reranker"], entry["lambda"], entry["candidates"], entry["order"], entry["temperature"])


def _evaluate(run: Path, changes: dict, rerankings: list[Reranking], split: str) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        return evaluate(run / "model.pth", {**changes, "output_dir": f"{folder}/run"}, rerankings, split)


def figure(values: list[float], shown: Callable[[float], str] = "{:.4f}".format) -> str:
    if len(values) == 1:
        return shown(values[0])
    return f"{shown(mean(values))} ({shown(min(values))} to {shown(max(values))})"


def table(runs: list[dict], methods: list[str], authors: dict) -> list[str]:
    plain = [run[PLAIN][None] for run in runs]
    lines = [
        f"Plain ranking: nDCG@10 {figure([m['ndcg@10'] for m in plain])}, HR@10 {figure([m['hit@10'] for m in plain])}, "
        f"S_KL@10 {figure([m['skl@10'] for m in plain])}.",
        "",
        "| authors' lambda: S_KL, nDCG, HR | list | lambda | S_KL@10 | nDCG@10 | of the authors' | HR@10 | of the authors' |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for at, (hr, ndcg, skl) in authors.items():
        first = f"{'plain' if at is None else f'{at:g}'}: {skl:.4f}, {ndcg:.4f}, {hr:.4f}"
        for name in methods:
            points = [run[name][at] for run in runs if at in run.get(name, {})]
            if len(points) < len(runs):
                lines.append(f"| {first} | {name} | not reached | | | | | |")
                continue
            columns = [
                figure([m["lambda"] for m in points], "{:.3f}".format),
                figure([m["skl@10"] for m in points]),
                figure([m["ndcg@10"] for m in points]),
                f"{mean(m['ndcg@10'] for m in points) / ndcg:.2f}x",
                figure([m["hit@10"] for m in points]),
                f"{mean(m['hit@10'] for m in points) / hr:.2f}x",
            ]
            lines.append(f"| {first} | {name} | {' | '.join(columns)} |")
            first = ""
    return lines


def plot(runs: list[dict], methods: list[str], authors: dict, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown, panels = pyplot.subplots(1, 2, figsize=(11, 4.2), constrained_layout=True)
    for panel, metric, title, column in ((panels[0], "ndcg@10", "nDCG@10", 1), (panels[1], "hit@10", "HR@10", 0)):
        panel.plot(
            [v[2] for v in authors.values()], [v[column] for v in authors.values()], "k--o", label="the authors' LeapRec"
        )
        for name in methods:
            at = [key for key in authors if all(key in run.get(name, {}) for run in runs)]
            panel.plot(
                [mean(run[name][key]["skl@10"] for run in runs) for key in at],
                [mean(run[name][key][metric] for run in runs) for key in at],
                "-o",
                label=name,
            )
        panel.set(xlabel="S_KL@10 (less is more calibrated)", ylabel=title)
        panel.grid(alpha=0.3)
    panels[0].legend()
    shown.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--data_path")
    parser.add_argument("--protocol", choices=PROTOCOLS, default="ours")
    parser.add_argument("--methods", default=",".join(METHODS), help="some of: " + ", ".join(METHODS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    methods = arguments.methods.split(",")
    changes = {**PROTOCOLS[arguments.protocol], **({"data_path": arguments.data_path} if arguments.data_path else {})}
    authors = AUTHORS[arguments.protocol]
    runs = [curves(run, methods, changes) for run in arguments.runs]
    lines = table(runs, methods, authors)
    print("\n".join(lines))
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n")
    if arguments.plot:
        plot(runs, methods, authors, arguments.plot)


if __name__ == "__main__":
    main()
