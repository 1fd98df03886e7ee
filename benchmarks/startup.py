"""How long a command takes to answer: help, an error message, and the imports of a real start.

    python benchmarks/startup.py [--repeats=7] [--out=benchmarks/startup.md]

Each command is its own process, and the best of several times counts. An empty Python program is measured, too.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from recbole_leaprec.commands import command_names

ROOT = Path(__file__).resolve().parent.parent
LEAPREC = [sys.executable, str(ROOT / "run_leaprec.py")]


def seconds(command: list[str], code: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    assert done.returncode == code, done.stderr.decode()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    arguments = parser.parse_args()
    runs = {
        "Python, an empty program": ([sys.executable, "-c", "pass"], 0),
        "leaprec --help": ([*LEAPREC, "--help"], 0),
        **{f"leaprec {name} --help": ([*LEAPREC, *name.split(), "--help"], 0) for name in command_names()},
        "an unknown key, --rerank_lamda=0.5": ([*LEAPREC, "--rerank_lamda=0.5"], 2),
        "a bad value, --alpha=2": ([*LEAPREC, "--alpha=2"], 2),
        "an unknown model, --model=SASRek": ([*LEAPREC, "--model=SASRek"], 2),
        "an unknown option, data csv --interaction=events.csv": ([*LEAPREC, "data", "csv", "--interaction=events.csv"], 2),
        "a bad value, rerank --reranker=leapreck": (
            [
                *LEAPREC,
                "rerank",
                "--candidates=c.csv",
                "--items=i.csv",
                "--histories=h.csv",
                "--out=l.csv",
                "--reranker=leapreck",
            ],
            2,
        ),
        "a bad value, serve --port=http": ([*LEAPREC, "serve", "--checkpoint=model.pth", "--port=http"], 2),
        "no such file, serve --checkpoint=model.pth": ([*LEAPREC, "serve", "--checkpoint=model.pth"], 2),
        "two keys that do not fit, --gamma=0 --bpr_weight=0": ([*LEAPREC, "--gamma=0", "--bpr_weight=0"], 2),
        "an unknown metric, --metrics=Hitt": ([*LEAPREC, "--metrics=Hitt"], 2),
        "import recbole_leaprec.quick_start": ([sys.executable, "-c", "import recbole_leaprec.quick_start"], 0),
    }
    best = {name: min(seconds(*run) for _ in range(arguments.repeats)) for name, run in runs.items()}
    lines = [
        f"`python benchmarks/startup.py --repeats={arguments.repeats}`, Python {sys.version.split()[0]}",
        "",
        "| | seconds, best |",
        "|---|---|",
        *(f"| {name} | {value:.2f} |" for name, value in best.items()),
    ]
    arguments.out.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
