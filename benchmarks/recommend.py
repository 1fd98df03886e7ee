"""Lists for a million users: users per second in one process and over Ray, and memory from start to end.

    python benchmarks/recommend.py [--users=1000000] [--length=100] [--dataset=ml-1m] [--data_path=../shared/data]
                                   [--out=benchmarks/recommend.md]

A history is a part of a real user's history, with a random length from 1 to `length`. The model is trained for one
epoch only, since making lists takes the same time with a better model. Each row is one call of `leaprec recommend` with
one torch thread per process. Memory is read every second. It is the sum over the command's processes, with Ray's own:
what each holds alone, and its share of what it shares (PSS).
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from processes import memory

from recbole_leaprec.run import Run, trained_config

ENGINES = {
    "one process": ["--engine=local"],
    "Ray, 1 worker": ["--engine=ray", "--workers=1"],
    "Ray, 2 workers": ["--engine=ray", "--workers=2"],
}
TENTHS = 10


def write_histories(path: Path, checkpoint: Path, arguments: argparse.Namespace) -> None:
    dataset = Run.restored(checkpoint, *trained_config(checkpoint, None)).dataset
    tokens = dataset.field2id_token[dataset.iid_field][dataset.sequences.items.numpy()]
    random = np.random.default_rng(0)
    schema = pa.schema([("user", pa.string()), ("items", pa.list_(pa.string()))])
    with pa.parquet.ParquetWriter(path, schema) as writer:
        for start in range(0, arguments.users, 10_000):
            users = range(start, min(start + 10_000, arguments.users))
            lengths = random.integers(1, arguments.length + 1, len(users))
            starts = random.integers(0, len(tokens) - arguments.length, len(users))
            items = [tokens[begin : begin + n] for begin, n in zip(starts, lengths, strict=True)]
            writer.write_table(pa.table({"user": [f"u{user}" for user in users], "items": items}, schema=schema))


def measure(command: list[str], log: Path) -> dict:
    """Seconds of the whole command, and `(seconds, users so far, bytes)` for every second."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    started, curve = time.perf_counter(), []
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
        while process.poll() is None:
            curve.append((time.perf_counter() - started, users_so_far(log), memory(process.pid)))
            time.sleep(1)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{log.read_text()[-2000:]}")
    return {"seconds": time.perf_counter() - started, "curve": curve}


def users_so_far(log: Path) -> int:
    """The number of users in the last line of the progress bar."""
    found = re.findall(r"lists: (\d+)user", log.read_text())
    return int(found[-1]) if found else 0


def report(measured: dict[str, dict], arguments: argparse.Namespace) -> str:
    n = arguments.users
    lines = [
        f"{n:,} users, histories of 1 to {arguments.length} items, {arguments.dataset}'s catalogue, SASRecCD, leaprec at 0.3, "
        f"{os.cpu_count()} cores, one torch thread a process (`{' '.join(['python', *sys.argv])}`).",
        "",
        "| | seconds | users/s | users/s once it runs | peak memory |",
        "|---|---|---|---|---|",
    ]
    for name, row in measured.items():
        begun = next(at for at in row["curve"] if at[1])
        last = row["curve"][-1]
        steady = (last[1] - begun[1]) / max(last[0] - begun[0], 1e-9)
        peak = max(size for *_, size in row["curve"])
        lines.append(f"| {name} | {row['seconds']:.0f} | {n / row['seconds']:,.0f} | {steady:,.0f} | {peak / 1e6:,.0f} MB |")
    heads = [f"{tenth * 100 // TENTHS} %" for tenth in range(1, TENTHS + 1)]
    lines += ["", "Memory (MB) at its highest while each tenth of the users is made:", ""]
    lines += [f"| | {' | '.join(heads)} |", "|---" * (TENTHS + 1) + "|"]
    for name, row in measured.items():
        tenths: list[int] = [0] * TENTHS
        for _, users, size in row["curve"]:
            if users:
                tenth = min(users * TENTHS // n, TENTHS - 1)
                tenths[tenth] = max(tenths[tenth], size)
        lines.append(f"| {name} | {' | '.join(f'{size / 1e6:,.0f}' for size in tenths)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--length", type=int, default=100)
    parser.add_argument("--dataset", default="ml-1m")
    parser.add_argument("--data_path", default="../shared/data")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    leaprec = [sys.executable, str(Path(__file__).parents[1] / "run_leaprec.py")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        training = [f"--dataset={arguments.dataset}", f"--data_path={arguments.data_path}", "--epochs=1"]
        subprocess.run([*leaprec, "--model=SASRecCD", *training, f"--output_dir={folder / 'run'}"], check=True)
        checkpoint, histories = folder / "run" / "model.pth", folder / "histories.parquet"
        write_histories(histories, checkpoint, arguments)
        measured = {}
        for engine, options in ENGINES.items():
            out = folder / f"{len(measured)}.parquet"
            command = [*leaprec, "recommend", f"--checkpoint={checkpoint}", f"--histories={histories}", f"--out={out}"]
            measured[engine] = measure([*command, *options], folder / "log")
            rows = pa.parquet.ParquetFile(out).metadata.num_rows
            print(f"{engine}: {measured[engine]['seconds']:.0f} s, {rows:,} rows", flush=True)
            if rows != 10 * arguments.users:
                raise SystemExit(f"{engine} made {rows:,} rows for {arguments.users:,} users")
    text = report(measured, arguments)
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
