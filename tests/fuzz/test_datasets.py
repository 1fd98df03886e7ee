"""Atomic files that are damaged or odd: a training succeeds with figures that are figures, or says in one sentence why not."""

from __future__ import annotations

import gzip
import json
import math
import random
from pathlib import Path

import pytest

from tests.fuzz.cases import Bench, Broken, alter_rows, damaged, fuzz
from tests.fuzz.conftest import DATA

pytestmark = pytest.mark.slow
HEADERS = (
    "user_id:token", "item_id:token", "timestamp:float", "genre:token_seq", "timestamp:token", "timestamp:float_seq", "genre:token",
    "genre:float", "genre:float_seq", "user_id:float", "item_id:token_seq", "rating:float", "rating:float", "item_id", "user_id:tokens",
    ":token", "timestamp:", "", "class:token_seq",
)  # fmt: skip
SETTINGS = """\
val_interval: {timestamp: "[0,inf)"}
category_field: title
title_field: genre
load_col: null
load_col: {inter: [user_id, item_id, timestamp], item: [item_id, genre]}
load_col: {inter: [user_id]}
TIME_FIELD: time
ITEM_ID_FIELD: movie
user_inter_num_interval: "[3,inf)"
item_inter_num_interval: "[2,5]"
field_separator: ","
seq_separator: "|"
filter_inter_by_user_or_item: False
rm_dup_inter: first
normalize_all: True
encoding: latin-1
alpha: 2
epochs: many
!!python/object/apply:os.system ["true"]
- a list
1: one
""".splitlines()


def alter(path: Path, draw: random.Random) -> None:
    """Change an atomic file in one way."""
    rows = [line.split("\t") for line in path.read_text().splitlines()]
    alter_rows(rows, HEADERS, draw)
    path.write_bytes("\n".join("\t".join(one) for one in rows).encode("utf-8", "surrogateescape") + b"\n")


def replace(path: Path, draw: random.Random) -> None:
    """Put something else in a file's place."""
    content = path.read_bytes()
    path.unlink()
    draw.choice(
        [
            lambda: None,
            lambda: path.mkdir(),
            lambda: path.symlink_to(path),
            lambda: path.write_bytes(b""),
            lambda: path.write_bytes(gzip.compress(content)),
            lambda: path.write_bytes(content.replace(b"\n", b"\r\n")),
            lambda: path.write_bytes(content.replace(b"\n", b"\r")),
            lambda: path.write_bytes(content.replace(b"\t", b",")),
            lambda: path.write_bytes(b"\xef\xbb\xbf" + content),
            lambda: path.write_bytes(content.decode().encode("utf-16")),
            lambda: path.write_bytes(content.rstrip(b"\n")),
            lambda: path.write_bytes(damaged(content, draw)),
            lambda: path.write_bytes(damaged(content, draw)),
            lambda: path.write_bytes(damaged(content, draw)),
        ]
    )()


def write_odd_dataset(shop: Path, folder: Path, draw: random.Random) -> None:
    data = folder / "data" / "toy"
    data.mkdir(parents=True)
    for kind in ("inter", "item"):
        (data / f"toy.{kind}").write_bytes((shop / "data" / "toy" / f"toy.{kind}").read_bytes())
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        path = data / f"toy.{draw.choice(['inter', 'item'])}"
        try:
            (alter if draw.random() < 0.75 else replace)(path, draw)
        except (OSError, ValueError, IndexError):  # an earlier change has left no rows to change
            break
    if draw.random() < 0.15:
        (data / "toy.yaml").write_text("\n".join(draw.sample(SETTINGS, draw.choice([1, 1, 2]))) + "\n")


def check_result(path: Path) -> None:
    """Broken for a figure that is none."""
    result = json.loads(path.read_text())
    for figures in (result["backbone"]["valid"], result["backbone"]["test"], *(one["test"] for one in result["rerank"])):
        for name, value in figures.items():
            if not math.isfinite(value) or value < 0 or (name.startswith(("hit", "ndcg")) and value > 1):
                raise Broken(f"{name} is {value}")


def test_odd_datasets_are_trained_on_or_refused_in_a_sentence(shop, forks, tmp_path):
    def case(draw: random.Random, bench: Bench) -> None:
        write_odd_dataset(shop, bench.folder, draw)
        kind = draw.choice(["train", "train", "train", "describe", "shift", "csv"])
        if kind == "train":
            if bench.run(*DATA, "--output_dir=run").code == 0:
                check_result(bench.folder / "run" / "result.json")
        elif kind == "describe":
            bench.run("data", "describe", *DATA[:-2], "toy", "--data_path=data", "--output_dir=out")
        elif kind == "shift":
            bench.run("shift", *DATA, "--output_dir=out", "--longest=5", "--step=1", "--window=2")
        else:
            files = [f"--interactions=data/toy/toy.{kind}" for kind in ["inter"]] + ["--items=data/toy/toy.item"]
            bench.run("data", "csv", *files, "--out=out/toy", "--categories=genre", made=("out",))

    fuzz("datasets", 0.35, forks, tmp_path, case)
