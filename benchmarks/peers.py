"""Sequential recommenders of other libraries on our rows, measured with our metrics, plain and with our rerankers.

    python benchmarks/peers.py --dataset=ml-1m --data_path=... --minutes=25 --ours=output/best-2020,output/best-2021
    python benchmarks/peers.py --dataset=amazon-sports --data_path=... --category_field=department --minutes=15 \\
        --recipe=properties/recipes/ml-1m-best.yaml
    python benchmarks/peers.py --page                          # write the page again, from all measurements

Each peer is installed into an environment of its own, `.environments/<name>`, and trained by its script in `peers/` on one
thread: our training rows, the epoch by validation nDCG@10, at most `--minutes` of CPU time (training and validation). Its scores
for our validation and test users come back as files, and go through our evaluation. What was measured is kept in `results/peers`,
one small file per model, and every run renews the page with all of them: a comparison that takes a day can be made in parts. Remove
a file to have that model measured again, and its folder in `output/peers` as well to have it trained again.

These versions work with Python 3.11 and torch 2.13.0: RecTools 0.19.0 with numpy 1.26 and pytorch-lightning 2.5.2,
RePlay 0.22.0 with numpy 2.4 and lightning 2.6.6, RecBole 1.2.0 with numpy 1.26 and pandas 2.3.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch
from frontier import lambdas_for

from recbole_leaprec.common.files import write_json
from recbole_leaprec.config import LeapRecConfig
from recbole_leaprec.reranking import Reranking
from recbole_leaprec.run import Run, trained_run

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = Path(__file__).resolve().parent / "peers"
ENVIRONMENTS = ROOT / ".environments"
TORCH = "torch==2.13.0"
TARGETS = (0.34, 0.24, 0.077)
"""S_KL@10 levels for reranked lists: those of the authors' LeapRec on ML-1M at lambda 0.3, 0.5 and 0.9."""
METHODS = ("leaprec", "setwise")
FIGURES = ("ndcg@10", "hit@10", "skl@10")


@dataclass(frozen=True)
class Peer:
    """A model of another library: its name on the page, what to install, and the script that trains it."""

    title: str
    environment: str
    requirements: tuple[str, ...]
    script: str
    arguments: tuple[str, ...] = ()


RECTOOLS = ("rectools", ("rectools[torch]==0.19.0",), "train_rectools.py")
PEERS = {
    "replay": Peer("RePlay, SASRec", "replay", ("replay-rec[torch]==0.22.0",), "train_replay.py"),
    "rectools-ligr": Peer("RecTools, LiGR", *RECTOOLS, ("--variant=ligr",)),
    "rectools-sasrec": Peer("RecTools, SASRec", *RECTOOLS, ("--variant=sasrec",)),
    "recbole": Peer("RecBole, SASRec", "recbole", ("recbole==1.2.0", "numpy<2", "pandas<3"), "train_recbole.py"),
}


def installed(peer: Peer, python: str) -> Path:
    """The Python of a peer's environment. The environment is made if it is missing or has other versions."""
    folder = ENVIRONMENTS / peer.environment
    marker, asked = folder / "installed.txt", "\n".join((*peer.requirements, TORCH)) + "\n"
    if not marker.is_file() or marker.read_text() != asked:
        print(f"installing {' '.join(peer.requirements)} into {folder}; this takes a few minutes", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([python, "-m", "venv", folder], check=True)
        constraints = folder / "constraints.txt"
        constraints.write_text(f"{TORCH}\n")
        subprocess.run(
            [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "-c", constraints, *peer.requirements], check=True
        )
        marker.write_text(asked)
    return folder / "bin" / "python"


def one_thread() -> dict[str, str]:
    """Environment variables for a training process with one thread."""
    inherited = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return {**inherited, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}


def write_rows(run: Run, path: Path) -> None:
    """Write the rows that peers are trained on; SystemExit if existing rows are of other data."""
    sequences = run.dataset.sequences
    rows = {
        "items": sequences.items.numpy(),
        "offsets": sequences.offsets.numpy(),
        "n_items": np.array(run.dataset.item_num),
    }
    if path.is_file():
        with np.load(path) as before:
            if not all(np.array_equal(before[name], rows[name]) for name in rows):
                sys.exit(
                    f"{path.parent} was made of other rows of {run.config['dataset']}: move or remove it, or use another --work"
                )
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **rows)


def train_peer(peer: Peer, folder: Path, rows: Path, length: int, asked: argparse.Namespace) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    told = [f"--minutes={asked.minutes:g}", f"--length={length}", f"--seed={asked.seed}", *peer.arguments]
    command = [installed(peer, asked.python), SCRIPTS / peer.script, rows, folder, *told]
    subprocess.run(command, check=True, env=one_thread())


class StoredScores(torch.nn.Module):
    """A model that returns scores from a file, `[users, items]` by our ids."""

    def __init__(self, path: Path):
        super().__init__()
        self._scores = np.load(path, mmap_mode="r")

    def full_sort_predict(self, interaction: Any) -> torch.Tensor:
        return torch.from_numpy(self._scores[interaction["user_id"].numpy()])  # a copy: histories are masked in it


def measure(trainer: Any, run: Run, before: Callable[[str], None] = lambda split: None) -> dict[str, Any]:
    """Test metrics of the plain ranking, and of each method at the lambda that meets each target on validation.

    Args:
        before: called with "valid" and with "test", each before the users of that split are scored.
    """
    before("valid")
    (plain,) = trainer.evaluate_rerankings(run.valid_data, [Reranking()])
    result: dict[str, Any] = {"targets": list(TARGETS), "valid": plain.metrics}
    chosen: dict[tuple[str, float], Reranking] = {}
    for method in METHODS:
        (least,) = trainer.evaluate_rerankings(run.valid_data, [Reranking(method, 1.0)])
        possible = [target for target in TARGETS if least.metrics["skl@10"] <= target]
        for target, lam in zip(possible, lambdas_for(possible, Reranking(method), trainer, run.valid_data), strict=True):
            chosen[method, target] = Reranking(method, lam)
    before("test")
    plain, *reranked = trainer.evaluate_rerankings(run.test_data, [Reranking(), *chosen.values()])
    result["test"] = plain.metrics
    result["reranked"] = [
        {"method": method, "target": target, "lambda": one.reranking.lam, **one.metrics}
        for (method, target), one in zip(chosen, reranked, strict=True)
    ]
    return result


def measure_peer(folder: Path, run: Run) -> dict[str, Any]:
    with run.scratch_trainer() as trainer:

        def use(split: str) -> None:
            trainer.model = StoredScores(folder / f"scores-{split}.npy")

        return measure(trainer, run, use)


def measure_ours(run_folder: Path, keys: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        changes = {key: keys[key] for key in ("data_path",) if key in keys} | {"output_dir": f"{scratch}/run"}
        with trained_run(run_folder / "model.pth", changes) as (run, trainer):
            parameters = sum(parameter.numel() for parameter in run.model.parameters() if parameter.requires_grad)
            return {"parameters": parameters, **measure(trainer, run)}


def is_measured(record: Path, trained: Path) -> bool:
    """Whether a record for these targets exists, and no newer model."""
    if not record.is_file() or (trained.is_file() and trained.stat().st_mtime > record.stat().st_mtime):
        return False
    return json.loads(record.read_text())["measured"]["targets"] == list(TARGETS)


def write_record(record: Path, training: dict[str, Any], found: dict[str, Any]) -> None:
    record.parent.mkdir(parents=True, exist_ok=True)
    write_json(record, {"training": training, "measured": found})


def took(run_folder: Path) -> dict[str, Any]:
    """Time and epochs of the training of one of our runs: from `train_ours.py`, or from any run folder."""
    told = run_folder / "training.json"
    if told.is_file():
        return json.loads(told.read_text())
    result = json.loads((run_folder / "result.json").read_text())
    return {
        "settings": f"{result['model']}, settings in its run folder",
        "epochs": result["epochs"],
        "best_epoch": result["best_epoch"] + 1,
        "wall_seconds": result["timing"]["training"],
        "seed": result["seed"],
    }


# --- The page


@dataclass(frozen=True)
class Row:
    """A measured model: its training and its metrics."""

    training: dict[str, Any]
    measured: dict[str, Any]

    @property
    def title(self) -> str:
        return self.measured["title"]

    @property
    def ours(self) -> bool:
        return self.measured["ours"]

    def at(self, target: float | None, method: str = "") -> dict[str, float] | None:
        """Test metrics of the plain ranking, or of a method's lists for a target; None if the method cannot meet it."""
        if target is None:
            return self.measured["test"]
        found = [one for one in self.measured["reranked"] if (one["method"], one["target"]) == (method, target)]
        return found[0] if found else None


def rows_of(dataset: Path) -> list[Row]:
    """All measured models of a dataset: peers before ours, the best first."""
    rows = [Row(**json.loads(record.read_text())) for record in dataset.glob("*.json")]
    return sorted(rows, key=lambda row: (row.ours, -row.measured["test"]["ndcg@10"]))


def figure(value: float | None, shown: str) -> str:
    return "-" if value is None else format(value, shown)


def plain_table(rows: Sequence[Row]) -> list[str]:
    lines = [
        "| plain ranking | nDCG@10 | HR@10 | S_KL@10 | validation nDCG@10 | parameters | epochs, the best | CPU s per epoch | CPU s in all | peak, GB |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        training, test = row.training, row.measured["test"]
        seconds, epochs = training.get("seconds"), training["epochs"]
        peak = training.get("peak")
        columns = [
            row.title,
            *(f"{test[name]:.4f}" for name in FIGURES),
            f"{row.measured['valid']['ndcg@10']:.4f}",
            f"{training.get('parameters') or row.measured['parameters']:,}",
            f"{epochs:.3g}, {training['best_epoch']:.3g}",
            figure(seconds and seconds / epochs, ".1f"),
            figure(seconds, ",.0f") if seconds else f"({training['wall_seconds']:,.0f} s by the clock)",
            figure(peak and peak / 1e9, ".2f"),
        ]
        lines.append(f"| {' | '.join(columns)} |")
    return lines


def reranked_table(rows: Sequence[Row], target: float) -> list[str]:
    lines = [
        f"| lists for S_KL {target:g} | "
        + " | ".join(f"{method}: lambda | S_KL@10 | nDCG@10 | HR@10" for method in METHODS)
        + " |",
        "|---" * (1 + 4 * len(METHODS)) + "|",
    ]
    for row in rows:
        columns = [row.title]
        for method in METHODS:
            at = row.at(target, method)
            columns += (
                [f"{at['lambda']:.3f}", *(f"{at[name]:.4f}" for name in ("skl@10", "ndcg@10", "hit@10"))]
                if at
                else ["not met", "", "", ""]
            )
        lines.append(f"| {' | '.join(columns)} |")
    return lines


def verdict(rows: Sequence[Row]) -> list[str]:
    """Compare the mean of our runs with the best peer on each metric, plain and at each target."""
    peers, ours = [row for row in rows if not row.ours], [row for row in rows if row.ours]
    if not peers or not ours:
        return []
    lines = [
        f"Ours is the mean of {len(ours)} {'run' if len(ours) == 1 else 'runs'}. Each side has the better of the two rerankers, each metric its best peer. Below zero, we lose.",
        "",
        "| | metric | best peer | | ours | ahead by |",
        "|---|---|---|---|---|---|",
    ]
    for target in (None, *TARGETS):
        for name, title in (("ndcg@10", "nDCG@10"), ("hit@10", "HR@10")):
            methods = ("",) if target is None else METHODS
            theirs = {row.title: [at[name] for method in methods if (at := row.at(target, method))] for row in peers}
            best = max(((max(values), peer) for peer, values in theirs.items() if values), default=None)
            means = []
            for method in methods:
                points = [row.at(target, method) for row in ours]
                if all(points):
                    means.append(mean(point[name] for point in points if point))
            if best is None or not means:
                continue
            ahead = 100 * (max(means) / best[0] - 1)
            where = "plain ranking" if target is None else f"S_KL {target:g}"
            lines.append(f"| {where} | {title} | {best[1]} | {best[0]:.4f} | {max(means):.4f} | {ahead:+.1f} % |")
    return lines


ABOUT = """\
# Peers on our rows

Made by `benchmarks/peers.py`. Other libraries' sequential recommenders, trained on exactly our training rows and measured by our
metrics on our test users: leave-one-out, full ranking, history masked, the epoch chosen by validation nDCG@10. All on one thread, until the CPU time
that is said below is over or ten epochs brought nothing better on validation; validation counts as training time. Their scores go through
`leaprec` and `setwise` as ours do: lambda is the least found that meets the S_KL on validation, by no more than 1 %, and test is measured once.

How the peers were treated:

- Width 128, two blocks, and the same history length as ours; all else as their libraries have it, one seed, nothing searched.
- RecTools and RePlay: softmax over all items, and batches of 32 sequences, as our recipe for ML-1M has them: their own 128 make a quarter of the steps in the same
  time, and learn far less in it. Their loaders get batches of sequences of like length, and columns that would be padding in all rows are left out. Neither changes what the
  model makes of a sequence (RecTools has `use_key_padding_mask` on for this); without, their epochs on ML-1M took 174 to 393 s, which was measured before and not by this script. Histories that
  are longer than the model's length are cut into several training sequences, so that every target is trained; RecTools by itself, and RePlay by default, train on the last ones alone.
- RecBole: its own loader, one padded row per prefix, with its cross-entropy; batches of 256 rows rather than 2,048, and its anomaly detection off, both of which help it. Where the time is
  too short for an epoch, it is measured after the part that there was time for.
- Items that come in no training row are not known to RecTools, which never lists them.

To know: a peer is a floor and not its best. Two of them were measured once before, not by this script, on a faster machine and with settings that were not
written down. There RePlay's SASRec had nDCG@10 .1416 and HR@10 .2565 (validation .1490 after 17 epochs, 21 minutes), and RecTools' LiGR .1381 and .2504 (36 minutes). Why they learned
more there was not found.

How our recipe was found, on ML-1M by validation nDCG@10, seed 2020: width 128 without a mean of the weights had .1543 after 22 epochs of float32 (test .1468 and .2676, 1,688 s, 0.74 GB). With bfloat16 and a
mean of the weights it had .1553 after 18 epochs, and fell after that. Width 192 had .1578 after 10 and .1584 after 12 epochs, and fell after that, too. Replacing 15 % of the inputs by random items was worse at
equal epochs (.1358 and not .1433 after 6). More dropout, more layers and other datasets have not been tried with this width yet.

CPU seconds are of training and validation. On a busy machine they are more than on an idle one; the time by the clock, with the settings at the end of each part, tells how busy it was. The
peak is of the resident memory of the training process, until training has ended."""


def page(records: Path) -> str:
    parts = [ABOUT]
    for dataset in sorted(filter(Path.is_dir, records.iterdir()), key=lambda folder: folder.name, reverse=True):
        rows = rows_of(dataset)
        if not rows:
            continue
        peers = [row for row in rows if not row.ours]
        minutes = sorted({row.measured["minutes"] for row in peers})
        lines = [f"## {dataset.name}", "", *plain_table(rows), "", *verdict(rows)]
        if minutes:
            lines.insert(2, f"Peers had {' or '.join(f'{one:g}' for one in minutes)} minutes of CPU time.\n")
        for target in TARGETS:
            lines += ["", *reranked_table(rows, target)]
        lines.append("")
        for row in rows:
            versions = ", ".join(f"{name} {number}" for name, number in row.training.get("versions", {}).items())
            told = [
                row.training["settings"],
                versions,
                f"seed {row.training['seed']}",
                f"{row.training['wall_seconds']:,.0f} s by the clock",
            ]
            lines.append(f"- {row.title}: {'; '.join(filter(None, told))}")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="ml-100k")
    parser.add_argument("--data_path")
    parser.add_argument("--category_field")
    parser.add_argument("--minutes", type=float, default=25, help="of CPU time for each peer")
    parser.add_argument("--seed", type=int, default=2020)
    parser.add_argument("--peers", default=",".join(PEERS), help="some of: " + ", ".join(PEERS) + "; empty for none")
    parser.add_argument("--ours", default="", help="run folders of ours, with commas")
    parser.add_argument("--recipe", help="a yaml file of ours to train and measure, too; its time is its own")
    parser.add_argument("--python", default=sys.executable, help="makes the peers' environments")
    parser.add_argument("--page", action="store_true", help="train and measure nothing")
    parser.add_argument("--work", type=Path, default=ROOT / "output" / "peers")
    parser.add_argument("--records", type=Path, default=ROOT / "results" / "peers", help="where what was measured is kept")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "peers.md")
    asked = parser.parse_args()
    unknown = set(filter(None, asked.peers.split(","))) - set(PEERS)
    if unknown:
        parser.error(f"--peers: {', '.join(sorted(unknown))} is unknown; there are {', '.join(PEERS)}")
    for folder in filter(None, asked.ours.split(",")):
        for name in ("model.pth", "result.json"):
            if not (Path(folder) / name).is_file():
                parser.error(f"--ours: {folder} has no {name}; give folders of finished runs")
    if asked.page and not asked.records.is_dir():
        parser.error(f"--records: there is no folder {asked.records}, so nothing has been measured yet")
    return asked


def main() -> None:
    asked = arguments()
    torch.set_num_threads(1)
    if not asked.page:
        compare(asked)
    renew(asked)


def renew(asked: argparse.Namespace) -> None:
    asked.out.write_text(page(asked.records))
    print(f"wrote {asked.out}", flush=True)


def compare(asked: argparse.Namespace) -> None:
    """Train and measure the models that are missing, and renew the page after each."""
    keys = {name: value for name in ("data_path", "category_field") if (value := getattr(asked, name))}
    run = Run.prepare(LeapRecConfig("SASRecCD", asked.dataset, config_dict={**keys, "eval_batch_size": 1024}))
    work, records = asked.work / asked.dataset, asked.records / asked.dataset
    write_rows(run, work / "rows.npz")
    for name in filter(None, asked.peers.split(",")):
        folder = work / f"{name}-{asked.minutes:g}min-{asked.seed}"
        training, record = folder / "training.json", records / f"{folder.name}.json"
        if is_measured(record, training):
            continue
        if not training.is_file():
            print(f"training {name} on {asked.dataset}, {asked.minutes:g} minutes of CPU time", flush=True)
            train_peer(PEERS[name], folder, work / "rows.npz", run.config["MAX_ITEM_LIST_LENGTH"], asked)
        print(f"measuring {name}", flush=True)
        about = {"title": PEERS[name].title, "ours": False, "minutes": asked.minutes}
        write_record(record, json.loads(training.read_text()), about | measure_peer(folder, run))
        renew(asked)
    runs = [Path(name) for name in filter(None, asked.ours.split(","))]
    if asked.recipe:
        runs.append(work / "runs" / f"{Path(asked.recipe).stem}-{asked.seed}")
    for run_folder in runs:
        record = records / f"ours-{run_folder.name}.json"
        if not is_measured(record, run_folder / "model.pth"):
            if not (run_folder / "result.json").is_file():
                train_recipe(run_folder, asked, keys)
            print(f"measuring {run_folder}", flush=True)
            about = {"title": f"ours, {run_folder.name}", "ours": True}
            write_record(record, took(run_folder), about | measure_ours(run_folder, keys))


def train_recipe(folder: Path, asked: argparse.Namespace, keys: dict[str, str]) -> None:
    print(f"training {asked.recipe} on {asked.dataset}", flush=True)
    told = [f"{key}={value}" for key, value in {"dataset": asked.dataset, "seed": asked.seed, **keys}.items()]
    command = [sys.executable, SCRIPTS / "train_ours.py", asked.recipe, folder, *told]
    subprocess.run(command, check=True, env={**one_thread(), "PYTHONPATH": str(ROOT)})


if __name__ == "__main__":
    main()
