"""The service under load: latencies and requests per second at 1, 8 and 64 connections, by wrk (apt-get install wrk).

    python benchmarks/serve.py --checkpoint=output/SASRecCD-ml-1m-.../model.pth [--data_path=dataset] [--seconds=10]
        [--repeats=3] [--out=benchmarks/serve.md]

The requests have the whole histories of the dataset that the model was trained on, in random order. wrk runs on the
same machine and takes some of its CPU time. The repeat with the smallest p99 counts, since the machine may be busy with
other things.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from itertools import pairwise
from pathlib import Path

from recbole_leaprec.checkpoint import load_checkpoint
from recbole_leaprec.config import LeapRecConfig
from recbole_leaprec.data import create_dataset

SCRIPT = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local bodies = {}
for line in io.lines("%s") do bodies[#bodies + 1] = line end
local at = 0
request = function()
    at = at %% #bodies + 1
    return wrk.format(nil, "%s", nil, bodies[at])
end
done = function(summary, latency, requests)
    io.write(string.format("RESULT %%f %%f %%f %%d %%d\\n", latency:percentile(50) / 1000, latency:percentile(99) / 1000,
        summary.requests / (summary.duration / 1e6), summary.errors.status, summary.errors.timeout + summary.errors.read))
end
"""
CONNECTIONS = (1, 8, 64)


def histories(checkpoint: Path, data_path: str | None) -> list[list[str]]:
    settings = load_checkpoint(checkpoint)["config"] | ({"data_path": data_path} if data_path else {})
    dataset = create_dataset(LeapRecConfig(config_dict=settings))
    dataset.build()
    offsets, tokens = dataset.sequences.offsets.tolist(), dataset.field2id_token[dataset.iid_field]
    items = tokens[dataset.sequences.items.numpy()]
    found = [items[start:end].tolist() for start, end in pairwise(offsets[1:])]
    random.Random(0).shuffle(found)
    return found


def bodies(kind: str, users: list[list[str]]) -> tuple[str, list[dict]]:
    """The path of a kind of request, and one body per user."""
    draw = random.Random(1)
    if kind == "rerank of 200 candidates":
        catalogue = sorted({item for own in users for item in own})
        return "/rerank", [
            {
                "candidates": [{"item": item, "score": draw.gauss(0, 1)} for item in draw.sample(catalogue, 200)],
                "history": own,
            }
            for own in users
        ]
    more = {"reranker": "setwise", "rerank_lambda": 0.1} if kind == "recommend, setwise" else {}
    return "/recommend", [{"history": own, **more} for own in users]


KINDS = ("recommend, leaprec", "recommend, setwise", "rerank of 200 candidates")


def load(address: str, path: str, file: Path, connections: int, seconds: int) -> list[float]:
    """p50 and p99 in milliseconds, requests per second, number of error answers, and of requests without an answer."""
    script = file.with_suffix(".lua")
    script.write_text(SCRIPT % (file, path))
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", str(script), address]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"RESULT (.*)", told)
    assert found, told
    return [float(word) for word in found[1].split()]


def started(command: list[str]) -> tuple[subprocess.Popen[str], float]:
    """A service that is ready, and the seconds until it was ready."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    print(process.stdout.readline().strip())
    return process, time.perf_counter() - start


def ended(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)
    process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--data_path")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    given = parser.parse_args()
    users = histories(given.checkpoint, given.data_path)
    address = f"http://127.0.0.1:{given.port}"
    command = [sys.executable, "-m", "recbole_leaprec", "serve", f"--checkpoint={given.checkpoint}", f"--port={given.port}"]
    first, first_ready = started(command)  # compiles files that are not compiled yet
    ended(first)
    process, ready = started(command)
    rows = []
    try:
        model = json.load(urllib.request.urlopen(f"{address}/model"))
        with tempfile.TemporaryDirectory() as folder:
            for number, kind in enumerate(KINDS):
                path, made = bodies(kind, users)
                file = Path(folder) / f"{number}.txt"
                file.write_text("".join(json.dumps(body) + "\n" for body in made))
                load(address, path, file, 8, 2)
                for connections in CONNECTIONS:
                    runs = [load(address, path, file, connections, given.seconds) for _ in range(given.repeats)]
                    p50, p99, rate, errors, lost = min(runs, key=lambda run: run[1])
                    rows.append(
                        f"| {kind} | {connections} | {p50:.1f} | {p99:.1f} | {rate:,.0f} | {errors:.0f} | {lost:.0f} |"
                    )
                    print(rows[-1], flush=True)
        peak = next(
            line for line in Path(f"/proc/{process.pid}/status").read_text().splitlines() if line.startswith("VmHWM")
        )
    finally:
        ended(process)
    lengths = sorted(map(len, users))
    given.out.write_text(
        "\n".join(
            [
                "# The service under load",
                "",
                f"`python benchmarks/serve.py --repeats={given.repeats} --seconds={given.seconds}` with {model['model']} on "
                f"{model['dataset']}: {model['items']:,} items, {len(users):,} histories of {lengths[len(lengths) // 2]} items in the "
                f"median and {lengths[-1]:,} at most, K = {model['k']}. wrk and the service share {os.cpu_count()} cores; the service "
                f"scores on one thread. It was ready {ready:.1f} s after its start ({first_ready:.1f} s the time before, when it may have had "
                f"to compile), and took {int(peak.split()[1]) / 1024:.0f} MB.",
                "",
                "| request | connections | p50, ms | p99, ms | requests per second | errors | lost |",
                "|---|---|---|---|---|---|---|",
                *rows,
                "",
            ]
        )
    )


if __name__ == "__main__":
    main()
