"""Compare the trade-off curves of trained runs with the authors' curve, at equal S_KL.

python benchmarks/frontier.py output/seed1 output/seed2 ... --data_path=... [--protocol=ours|authors] [--out=FILE.md] [--plot=FILE.png]

For each S_KL@10 in the authors' table and each reranker, lambda is chosen on validation: the smallest lambda found that
meets this S_KL, by no more than 1 %. Test is then measured once at these lambdas. Several runs with different seeds are
averaged; the spread is from the smallest to the largest value. The authors' metrics are of their released SASRec
checkpoint, reranked by leaprec.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean

import torch

from recbole_leaprec.reranking import Reranking
from recbole_leaprec.run import trained_run

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
PLAIN = "plain ranking"


def curves(run: Path, methods: list[str], protocol: str, data_path: str | None) -> dict[str, dict]:
    """Test metrics of each method, for each of the authors' S_KL, at the lambda that meets it on validation."""
    chosen: dict[tuple[str, float | None], Reranking] = {}
    authors = AUTHORS[protocol]
    with tempfile.TemporaryDirectory() as folder:
        changes = {**PROTOCOLS[protocol], **({"data_path": data_path} if data_path else {}), "output_dir": f"{folder}/run"}
        with trained_run(run / "model.pth", changes) as (prepared, trainer):
            found: dict[Reranking, list[float]] = {}
            for name in methods:
                items = replace(METHODS[name], order="greedy")  # the order changes no S_KL
                if items not in found:
                    found[items] = lambdas_for([skl for _, _, skl in authors.values()], items, trainer, prepared.valid_data)
                for at, lam in zip(authors, found[items], strict=True):
                    chosen[name, at] = replace(METHODS[name], lam=lam)
            asked = list(dict.fromkeys(chosen.values()))
            plain, *reranked = trainer.evaluate_rerankings(prepared.test_data, [Reranking(), *asked])
    metrics = dict(zip(asked, (entry.metrics for entry in reranked), strict=True))
    result: dict[str, dict] = {PLAIN: {None: plain.metrics}}
    for (name, at), reranking in chosen.items():
        result.setdefault(name, {})[at] = metrics[reranking] | {"lambda": reranking.lam}
    return result


FIRST = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0)
CLOSE, STEPS = 0.99, 8


def lambdas_for(targets: Sequence[float], reranking: Reranking, trainer, valid_data) -> list[float]:
    """For each target S_KL, a lambda that meets it on validation by at most 1 %, or the smallest found that meets it.

    Each step measures one new lambda per target, all targets at once. It is the linear interpolation between the last
    lambda that misses the target and the first that meets it.
    """
    known: dict[float, float] = {}
    asked = list(FIRST)
    for _ in range(STEPS):
        results = trainer.evaluate_rerankings(valid_data, [replace(reranking, lam=lam) for lam in asked])
        known |= {lam: result.metrics["skl@10"] for lam, result in zip(asked, results, strict=True)}
        lambdas, asked = sorted(known), []
        for target in targets:
            meets = next(n for n, lam in enumerate(lambdas) if known[lam] <= target)
            above, below = lambdas[max(meets - 1, 0)], lambdas[meets]
            if meets and known[below] < CLOSE * target:
                share = (known[above] - target * (1 + CLOSE) / 2) / (known[above] - known[below])
                asked.append(round(above + min(max(share, 0.02), 0.98) * (below - above), 5))
        if not asked:
            break
    return [min(lam for lam, skl in known.items() if skl <= target) for target in targets]


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
            points = [run[name][at] for run in runs]
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
            panel.plot(
                [mean(run[name][at]["skl@10"] for run in runs) for at in authors],
                [mean(run[name][at][metric] for run in runs) for at in authors],
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
    authors = AUTHORS[arguments.protocol]
    runs = [curves(run, methods, arguments.protocol, arguments.data_path) for run in arguments.runs]
    lines = table(runs, methods, authors)
    print("\n".join(lines))
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n")
    if arguments.plot:
        plot(runs, methods, authors, arguments.plot)


if __name__ == "__main__":
    main()
