"""Training with one process and with several over Ray Train: seconds per epoch.

    python benchmarks/parallel.py [--dataset=ml-1m] [--data_path=dataset] [--workers=1,2] [--epochs=4] [--out=benchmarks/parallel.md]
        [--key=value ...]

The process that writes the log times an epoch from its first batch to its last. The fastest epoch of a run counts,
since the machine may be busy with other things. Each process has one thread.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def seconds(given: argparse.Namespace, keys: list[str], workers: int, folder: Path) -> list[float]:
    """Seconds of each epoch, from train.log."""
    words = [
        f"--dataset={given.dataset}",
        f"--epochs={given.epochs}",
        f"--output_dir={folder}",
        "--show_progress=False",
        *keys,
    ]
    words += [f"--data_path={given.data_path}"] if given.data_path else []
    words += ["--engine=ray", f"--workers={workers}"] if workers > 1 else []
    command = [sys.executable, str(ROOT / "run_leaprec.py"), *words]
    subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.DEVNULL)
    return [float(found) for found in re.findall(r"training \[time: ([0-9.]+)s", (folder / "train.log").read_text())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="ml-1m")
    parser.add_argument("--data_path")
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    given, keys = parser.parse_known_args()
    rows, first = [], 0.0
    with tempfile.TemporaryDirectory() as scratch:
        for number, kind in enumerate(("--loss_type=BPR", "--loss_type=softmax")):
            for workers in map(int, given.workers.split(",")):
                best = min(seconds(given, [kind, *keys], workers, Path(scratch) / f"{number}-{workers}"))
                first = best if workers == 1 else first
                told = "one process" if workers == 1 else f"{workers} workers"
                rows.append(f"| {kind.partition('=')[2]} | {told} | {best:.2f} | {first / best:.2f} |")
                print(rows[-1], flush=True)
    head = [
        "# Training by several processes",
        "",
        f"`python benchmarks/parallel.py {' '.join(f'--{name}={getattr(given, name)}' for name in ('dataset', 'epochs', 'workers'))}"
        f"{''.join(f' {key}' for key in keys)}`, SASRecCD, {os.cpu_count()} cores, one thread per process.",
        "",
        "| loss | | seconds per epoch, best | times as fast |",
        "|---|---|---|---|",
    ]
    given.out.write_text("\n".join([*head, *rows, ""]))


if __name__ == "__main__":
    main()
