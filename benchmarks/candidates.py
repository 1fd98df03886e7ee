"""Reranking candidates of any recommender: users per second in one process and over Ray, and memory by number of users.

    python benchmarks/candidates.py [--users=20000,100000] [--candidates=200] [--out=benchmarks/candidates.md]

Items and categories have the shape of ML-1M's. Scores are random, and histories have 20 items. Each row is one call of
`leaprec rerank` with one torch thread per process. Ray's file must be the same to the last byte. Memory is read every
second. It is the sum over the command's processes, with Ray's own: what each holds alone, and its share of what it
shares (PSS). The table has the peak of the whole time, of its first quarter and of its last.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from processes import memory

ROOT = Path(__file__).resolve().parent.parent
ITEMS, CATEGORIES, HISTORY = 3_883, 18, 20
ENGINES = {"one process": ["--engine=local"], "Ray, 2 workers": ["--engine=ray", "--workers=2"]}


def write(folder: Path, users: int, candidates: int) -> None:
    random = np.random.default_rng(0)
    tokens = np.array([f"item{n}" for n in range(ITEMS)])
    names = [[f"c{c}" for c in random.choice(CATEGORIES, random.integers(1, 4), replace=False)] for _ in range(ITEMS)]
    pa.parquet.write_table(pa.table({"item": tokens, "categories": names}), folder / "items.parquet")
    schema = pa.schema([("user", pa.string()), ("item", pa.string()), ("score", pa.float32())])
    listed = pa.schema([("user", pa.string()), ("items", pa.list_(pa.string()))])
    with (
        pa.parquet.ParquetWriter(folder / "candidates.parquet", schema) as scores,
        pa.parquet.ParquetWriter(folder / "histories.parquet", listed) as histories,
    ):
        for start in range(0, users, 2_000):
            names = [f"user{n}" for n in range(start, min(start + 2_000, users))]
            chosen = np.stack([random.permutation(ITEMS)[:candidates] for _ in names])
            rows = {
                "user": np.repeat(names, candidates),
                "item": tokens[chosen.ravel()],
                "score": random.normal(size=chosen.size).astype(np.float32),
            }
            scores.write_table(pa.table(rows, schema=schema))
            past = random.integers(ITEMS, size=(len(names), HISTORY))
            histories.write_table(pa.table({"user": names, "items": [tokens[own].tolist() for own in past]}, schema=listed))


def run(folder: Path, out: Path, options: list[str]) -> tuple[float, list[int]]:
    """Seconds of a command, and the bytes that it holds, read once per second."""
    files = [f"--{name}={folder / name}.parquet" for name in ("candidates", "items", "histories")]
    command = [sys.executable, "-m", "recbole_leaprec", "rerank", *files, f"--out={out}", "--show_progress=False", *options]
    started, curve = time.perf_counter(), []
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
        while process.poll() is None:
            curve.append(memory(process.pid))
            time.sleep(1)
    assert process.returncode == 0, (folder / "log").read_text()
    return time.perf_counter() - started, curve


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", default="20000,100000")
    parser.add_argument("--candidates", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    arguments = parser.parse_args()
    lines = [
        f"`python benchmarks/candidates.py --users={arguments.users} --candidates={arguments.candidates}`, {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f} when it began.",
        "",
        "| users | candidates | | seconds | users per second | peak MB | first quarter | last quarter |",
        "|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    for users in map(int, arguments.users.split(",")):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            write(folder, users, arguments.candidates)
            files = []
            for number, (name, options) in enumerate(ENGINES.items()):
                files.append(folder / f"lists{number}.parquet")
                seconds, curve = run(folder, files[-1], options)
                quarter = max(1, len(curve) // 4)
                sizes = [max(part) / 2**20 for part in (curve, curve[:quarter], curve[-quarter:])]
                lines.append(
                    f"| {users:,} | {users * arguments.candidates:,} | {name} | {seconds:.1f} | {users / seconds:,.0f} | "
                    f"{' | '.join(f'{size:,.0f}' for size in sizes)} |"
                )
                print(lines[-1], flush=True)
            assert files[0].read_bytes() == files[1].read_bytes(), "the two engines made different files"
    arguments.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
