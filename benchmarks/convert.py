"""Converters: lines per second and memory, on generated files in the publishers' forms.

    python benchmarks/convert.py [--lines=1000000] [--out=benchmarks/convert.md] [--catalogues=../shared/data/catalogues]

Each file has `--lines` events, in the form of `tests/convert/raw.py`. Each conversion is its own process. Memory is the
peak of the process, with a tenth of the lines and with all: it grows with the interactions that are kept, not with the
file. With `--catalogues`, the paper's catalogues are written in their publishers' forms and converted back: the
profiles must be the same.
"""

from __future__ import annotations

import argparse
import csv
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from tests.convert import raw  # noqa: E402

PROGRAM = """
import sys
from recbole_leaprec.cli import main
code = main(sys.argv[1:])
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")), file=sys.stderr)
sys.exit(code)
"""


def events(lines: int, items: list[str]) -> list[tuple[str, str, int, int]]:
    draw = random.Random(0)
    return [(f"user{n // 10}", draw.choice(items), 15_000 + 2 * (n % 10), 1 + n % 5) for n in range(lines)]


def write_csv(folder: Path, rows: list[tuple], genres: dict[str, list[str]]) -> None:
    folder.mkdir(parents=True)
    with open(folder / "events.csv", "w", newline="") as file:
        csv.writer(file).writerows([("user", "item", "date", "rating"), *((u, i, raw.date(d), r) for u, i, d, r in rows)])
    with open(folder / "items.csv", "w", newline="") as file:
        csv.writer(file).writerows([("item", "genres"), *((i, "|".join(own)) for i, own in genres.items())])


FORMS = {
    "CSV": ("csv", write_csv),
    "ML-1M, .dat": ("ml-1m", raw.write_ml_1m),
    "Goodreads, JSON": ("goodreads", raw.write_goodreads),
    "Grocery 2018, JSON": ("grocery", raw.write_grocery),
    "Steam, Python literals": ("steam", raw.write_steam),
}


def convert(name: str, folder: Path, out: Path) -> tuple[float, float]:
    """Seconds and peak MB of a conversion."""
    files = (
        [f"--interactions={folder / 'events.csv'}", f"--items={folder / 'items.csv'}"]
        if name == "csv"
        else [f"--raw={folder}"]
    )
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "data", name, *files, f"--out={out}", "--show_progress=False"],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return time.perf_counter() - started, int(done.stderr.split()[-2]) / 1024


def measure(lines: int) -> list[str]:
    rows = [
        "| form | lines | seconds | lines per second | peak MB, a tenth of the lines | peak MB |",
        "|---|---|---|---|---|---|",
    ]
    for title, (name, write) in FORMS.items():
        genres = raw.catalogue("grocery" if name == "grocery" else "steam" if name == "csv" else name, 5_000)
        with tempfile.TemporaryDirectory() as scratch:
            peaks = []
            for count in (lines // 10, lines):
                folder = Path(scratch) / f"raw-{count}"
                write(folder, events(count, list(genres)), genres)
                seconds, peak = convert(name, folder, Path(scratch) / f"out-{count}")
                peaks.append(peak)
            rows.append(
                f"| {title} | {lines:,} | {seconds:.1f} | {lines / seconds:,.0f} | {peaks[0]:.0f} | {peaks[1]:.0f} |"
            )
            print(rows[-1], flush=True)
    return rows


def check_catalogues(folder: Path) -> list[str]:
    """Write the paper's catalogues in the publishers' forms, convert them back, and compare."""
    from recbole_leaprec.core.categories import ItemCategories

    rows = ["| catalogue | items | profiles | the same profiles after the way through raw files |", "|---|---|---|---|"]
    for name in ("goodreads", "grocery", "steam"):
        names = {
            row["genre_id"]: row["genre_name"]
            for row in csv.DictReader((folder / f"{name}.genres.txt").read_text().splitlines())
        }
        genres = {
            row["item_id"]: [names[g] for g in row["genre_id"].split("|") if g]
            for row in csv.DictReader((folder / f"{name}.item_genres.txt").read_text().splitlines())
        }
        items = list(genres)
        rows_of = [(f"u{n // 10}", item, 15_000 + 2 * (n % 10), 5) for n, item in enumerate([*items, *items[:10]])]
        with tempfile.TemporaryDirectory() as scratch:
            raw.WRITERS[name](Path(scratch) / "raw", rows_of, genres)
            out = Path(scratch) / name
            command = [sys.executable, str(ROOT / "run_leaprec.py"), "data", name, f"--raw={scratch}/raw", f"--out={out}",
                       "--show_progress=False", "--min_user_interactions=1", "--one_per_day=False", "--need_category=False"]  # fmt: skip
            subprocess.run(command, check=True, capture_output=True)
            separator = next(
                line for line in (out / f"{name}.yaml").read_text().splitlines() if line.startswith("seq_separator")
            )
            between = {"'|'": "|", "' '": " ", ";": ";"}.get(separator.split(": ", 1)[1], "\x1e")
            lines = (out / f"{name}.item").read_text().splitlines()[1:]
            back = {line.split("\t")[0]: [name for name in line.split("\t")[1].split(between) if name] for line in lines}
        before, after = (ItemCategories.from_lists([[], *(own[i] for i in items)]) for own in (genres, back))
        same = set(genres) == set(back) and all(set(genres[i]) == set(back[i]) for i in items)
        rows.append(
            f"| {name} | {len(items):,} | {before.n_profiles} | {'yes' if same and after.n_profiles == before.n_profiles else 'NO'} |"
        )
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    parser.add_argument("--catalogues", type=Path)
    arguments = parser.parse_args()
    lines = [f"`python benchmarks/convert.py --lines={arguments.lines}`", "", *measure(arguments.lines)]
    if arguments.catalogues:
        lines += ["", *check_catalogues(arguments.catalogues)]
    arguments.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
