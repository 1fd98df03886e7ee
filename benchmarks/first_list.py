"""How long it takes from the start of a process to its first list, and the memory that this needs.

    python benchmarks/first_list.py [--dataset=ml-1m] [--data_path=../shared/data] [--threads=2] [--repeats=5]
                                    [--out=benchmarks/first_list.md]

A model is trained for one epoch, and the dataset is not used again. Then each row is measured in new processes:

- `leaprec recommend` for one user, from start to end;
- a Ray worker of `leaprec recommend --engine=ray`, from the creation of its process to its first list. Ray itself is up.

The best of several times counts, because other programs may be running. Memory is the peak of the process itself.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from peak import peak_now

from recbole_leaprec.checkpoint import load_checkpoint
from recbole_leaprec.cluster import connected

ROOT = Path(__file__).resolve().parent.parent
METHODS = ("leaprec", "setwise")


def commands(checkpoint: Path, histories: Path, method: str, repeats: int) -> Iterator[tuple[float, int]]:
    """Seconds and peak of calls of `leaprec recommend`."""
    words = [sys.executable, ROOT / "run_leaprec.py", "recommend", f"--checkpoint={checkpoint}", f"--histories={histories}"]
    for number in range(repeats):
        out = histories.with_name(f"{method}-{number}.csv")
        started = time.perf_counter()
        process = subprocess.Popen([*words, f"--reranker={method}", f"--out={out}"], stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)  # so that Popen does not wait for it, too
        if process.returncode:
            raise SystemExit(f"leaprec recommend failed: exit code {process.returncode}")
        yield time.perf_counter() - started, used.ru_maxrss * 1024


def workers(checkpoint: Path, histories: Path, method: str, repeats: int) -> Iterator[tuple[float, int]]:
    """The same of new Ray workers, one after the other. Each makes its lists as those of `--engine=ray` do."""
    import ray

    @ray.remote(num_cpus=1, max_calls=1)  # a new process for each
    def lists(out: str) -> int:
        from recbole_leaprec.recommend.chunk_workers import ChunkRecommender

        worker = ChunkRecommender(out, batch=1, checkpoint=str(checkpoint), changes={"reranker": method, "gpu_id": ""}, k=10)
        worker.make(histories)
        return peak_now()

    for number in range(repeats):
        started = time.perf_counter()
        peak = ray.get(lists.remote(f".made{number}"))
        yield time.perf_counter() - started, peak


def best(measured: Iterator[tuple[float, int]]) -> tuple[float, int]:
    seconds, peaks = zip(*measured, strict=True)
    return min(seconds), max(peaks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="ml-1m")
    parser.add_argument("--data_path", default="../shared/data")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    asked = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(asked.threads)
    os.environ["PYTHONPATH"] = f"{ROOT}{os.pathsep}{Path(__file__).resolve().parent}"  # Ray's workers find peak.py there
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = folder / "run"
        training = [f"--dataset={asked.dataset}", f"--data_path={asked.data_path}", "--epochs=1", f"--output_dir={run}"]
        subprocess.run([sys.executable, ROOT / "run_leaprec.py", *training], check=True, stdout=subprocess.DEVNULL)
        checkpoint, histories = run / "model.pth", folder / "one.parquet"
        items = load_checkpoint(checkpoint)["serving"]["items"]
        pd.DataFrame({"user": ["somebody"], "items": [items[1:51]]}).to_parquet(histories)
        measured: dict[str, tuple[float, int]] = {}
        for method in METHODS:
            measured[f"leaprec recommend, {method}"] = best(commands(checkpoint, histories, method, asked.repeats))
        with connected():
            for method in METHODS:
                measured[f"a Ray worker, {method}"] = best(workers(checkpoint, histories, method, asked.repeats))
    lines = [
        f"`python benchmarks/first_list.py --dataset={asked.dataset} --threads={asked.threads} --repeats={asked.repeats}`: one user with 50 items, {len(items) - 1:,} items in the catalogue",
        "",
        "| | seconds to the first list, best | peak, MB |",
        "|---|---|---|",
        *(f"| {name} | {seconds:.1f} | {peak / 1e6:,.0f} |" for name, (seconds, peak) in measured.items()),
    ]
    asked.out.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
