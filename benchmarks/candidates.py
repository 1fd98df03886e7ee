"""Reranking anybody's candidates: users per second, and the memory that it takes with more and more users.

    python benchmarks/candidates.py [--users=20000,100000] [--candidates=200] [--out=benchmarks/candidates.md]

Items and categories have the shape of ML-1M's; scores are random, histories have 20 items. Each run is a process of its own.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

ROOT = Path(__file__).resolve().parent.parent
ITEMS, CATEGORIES, HISTORY = 3_883, 18, 20
PROGRAM = """
import sys
from recbole_leaprec.cli import main
code = main(sys.argv[1:])
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")), file=sys.stderr)
sys.exit(code)
"""


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


def run(folder: Path) -> tuple[float, float]:
    """Seconds and MB at most."""
    files = [f"--{name}={folder / name}.parquet" for name in ("candidates", "items", "histories")]
    command = [sys.executable, "-c", PROGRAM, "rerank", *files, f"--out={folder / 'lists.parquet'}", "--show_progress=False"]
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return time.perf_counter() - started, int(done.stderr.split()[-2]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", default="20000,100000")
    parser.add_argument("--candidates", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    arguments = parser.parse_args()
    lines = [
        f"`python benchmarks/candidates.py --users={arguments.users} --candidates={arguments.candidates}`",
        "",
        "| users | candidates | seconds | users per second | peak MB |",
        "|---|---|---|---|---|",
    ]
    for users in map(int, arguments.users.split(",")):
        with tempfile.TemporaryDirectory() as scratch:
            write(Path(scratch), users, arguments.candidates)
            seconds, peak = run(Path(scratch))
        lines.append(
            f"| {users:,} | {users * arguments.candidates:,} | {seconds:.1f} | {users / seconds:,.0f} | {peak:.0f} |"
        )
        print(lines[-1], flush=True)
    arguments.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
