"""Files that a command reads and somebody has damaged or altered: each is read, or refused in a sentence that names it."""

from __future__ import annotations

import csv
import io
import json
import math
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
import torch

from recbole_leaprec import run_leaprec
from recbole_leaprec.analysis.measurement import FILE
from recbole_leaprec.training_state import STATE, save_state
from tests.fuzz.cases import Bench, Broken, alter_rows, damaged, fuzz, odd_text
from tests.toy import SMALL

pytestmark = pytest.mark.slow
ODD_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2, 7, 10**9, 2**63, 10**30, 0.5, -0.5, math.nan, math.inf, "", "x", "i1", "\x00", "../x", "é", [], [1], ["a"], [[]],
    {}, {"a": 1}, {1: "a"}, (), torch.zeros(0), torch.zeros(3), torch.ones(3, dtype=torch.long), torch.full((2, 2), math.nan),
)  # fmt: skip
HEADERS = (
    "user",
    "item",
    "items",
    "score",
    "timestamp",
    "category",
    "categories",
    "share",
    "leave_out",
    "rank",
    "",
    "User",
    " user",
)


def altered(value: Any, draw: random.Random) -> Any:
    """A plain value with one thing in it that is another, is missing, or is there in addition."""
    inside = isinstance(value, dict | list | tuple) and len(value) > 0 and draw.random() < 0.85
    if isinstance(value, torch.Tensor) and draw.random() < 0.8:
        return torch.from_numpy(altered_array(value.numpy(), draw))
    if not inside:
        return draw.choice(ODD_VALUES)
    kind = draw.random()
    if isinstance(value, dict):
        key = draw.choice(list(value))
        if kind < 0.15:
            return {name: one for name, one in value.items() if name != key}
        if kind < 0.25:
            return {**value, draw.choice(["more", 1, None]): draw.choice(ODD_VALUES)}
        return {**value, key: altered(value[key], draw)}
    place = draw.randrange(len(value))
    if kind < 0.15:
        return value[:place]
    changed = list(value)
    changed[place] = altered(value[place], draw)
    return changed if isinstance(value, list) else tuple(changed)


def altered_array(array: np.ndarray, draw: random.Random) -> np.ndarray:
    """Another shape, another type, or other values."""
    some = draw.randrange(array.size) if array.size else 0

    def with_value(value: Any) -> np.ndarray:
        changed = array.copy()
        if array.size:
            with np.errstate(all="ignore"):
                changed.flat[some] = np.array(value).astype(array.dtype)
        return changed

    def of_type(kind: str) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.zeros(array.shape, kind) if array.dtype.kind == "U" else array.astype(kind)

    values = (
        ["", "x", "\x00", "<b>", "9" * 40]
        if array.dtype.kind == "U"
        else [-1, 0, 1, 100, 2**31, math.nan, math.inf, -math.inf, 1e300]
    )
    return draw.choice(
        [
            lambda: array[:-1].copy() if array.ndim else array,
            lambda: array[:0].copy() if array.ndim else array,
            lambda: array[None].copy(),
            lambda: np.concatenate([array, array]) if array.ndim else array,
            lambda: array.reshape(-1).copy(),
            lambda: array.T.copy(),
            lambda: of_type(draw.choice(["int8", "int64", "float32", "float64", "bool", "complex64", "uint8"])),
            lambda: with_value(draw.choice(values)),
            lambda: with_value(draw.choice(values)),
            lambda: with_value(draw.choice(values)),
            lambda: np.zeros_like(array),
            lambda: array[::-1].copy() if array.ndim else array,
        ]
    )()


def alter_archive(path: Path, draw: random.Random) -> None:
    """A checkpoint or a state with other content, and checksums that are right."""
    content = torch.load(path, weights_only=True)
    for _ in range(draw.choice([1, 1, 2])):
        content = altered(content, draw)
        if not isinstance(content, dict):
            break
    torch.save(content, path)


def alter_measured(path: Path, draw: random.Random) -> None:
    with np.load(path) as content:
        arrays = dict(content)
    for _ in range(draw.choice([1, 1, 2])):
        name = draw.choice(sorted(arrays))
        kind = draw.random()
        if kind < 0.1:
            del arrays[name]
        elif kind < 0.15:
            arrays[draw.choice(["more", "allow_pickle", ""])] = np.zeros(2)
        elif name == "info" or kind < 0.35:
            info = altered(json.loads(str(arrays.get("info", "{}"))), draw)
            arrays["info"] = np.array(json.dumps(info, default=str))
        else:
            arrays[name] = altered_array(arrays[name], draw)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    path.write_bytes(buffer.getvalue())


def alter_table(path: Path, draw: random.Random) -> None:
    """A CSV file with other cells, or a Parquet file with other columns."""
    if path.suffix == ".parquet":
        table = pa.parquet.read_table(path)
        place = draw.randrange(table.num_columns)
        pa.parquet.write_table(altered_table(table, place, draw), path)
        return
    with open(path, newline="") as file:
        rows = list(csv.reader(file))
    for _ in range(draw.choice([1, 1, 2])):
        if len(rows) > 1 and all(rows):
            alter_rows(rows, HEADERS, draw)
    with open(path, "w", newline="", encoding="utf-8", errors="replace") as file:
        csv.writer(file, quoting=draw.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])).writerows(rows)


def altered_table(table: pa.Table, place: int, draw: random.Random) -> pa.Table:
    name, count = table.column_names[place], table.num_rows
    own = table.column(place).to_pylist()
    columns: list[Callable[[], pa.Array]] = [
        lambda: pa.nulls(count),
        lambda: pa.array(range(count)),
        lambda: pa.array([float(n) for n in range(count)]),
        lambda: pa.array([math.nan] * count),
        lambda: pa.array([None if n % 3 == 0 else one for n, one in enumerate(own)], table.column(place).type),
        lambda: pa.array([b"\xff\x00"] * count),
        lambda: pa.array([[1, 2]] * count),
        lambda: pa.array([[["a"]]] * count),
        lambda: pa.array([["i1", None]] * count),
        lambda: pa.array([{"a": 1}] * count),
        lambda: pa.array([True] * count),
        lambda: pa.array([odd_text(draw) for _ in range(count)]),
        lambda: pa.array(["i1"] * count).dictionary_encode(),
        lambda: pa.array([n * 10**9 for n in range(count)], pa.timestamp("ns")),
        lambda: pa.array([n * 10**9 for n in range(count)], pa.duration("ns")),
        lambda: pa.array([str(one) for one in own], pa.large_string()),
    ]
    return draw.choice(
        [
            lambda: table.set_column(place, name, draw.choice(columns)()),
            lambda: table.set_column(place, name, draw.choice(columns)()),
            lambda: table.append_column(draw.choice(HEADERS), draw.choice(columns)()),
            lambda: table.remove_column(place),
            lambda: table.slice(0, draw.choice([0, 1])),
            lambda: pa.concat_tables([table, table]),
        ]
    )()


def damage(path: Path, alter: Callable[[Path, random.Random], None], draw: random.Random) -> None:
    """Other bytes, or other content in the right form."""
    if draw.random() < 0.35:
        path.write_bytes(damaged(path.read_bytes(), draw))
    else:
        alter(path, draw)


def check_lists(path: Path) -> None:
    """Broken unless every list has distinct items, with ranks from 1 on and scores that are numbers."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    lists: list[list[dict[str, str]]] = []
    for row in rows:
        if row["rank"] == "1":
            lists.append([])
        lists[-1].append(row)
    for own in lists:
        if len({row["item"] for row in own}) < len(own) or [row["rank"] for row in own] != [
            str(n + 1) for n in range(len(own))
        ]:
            raise Broken(f"no list: {own}"[:300])
        if not all(math.isfinite(float(row["score"])) for row in own):
            raise Broken(f"a score that is no number: {own}"[:300])


MODEL = "--checkpoint=run/model.pth"
TABLES = {
    "candidates": [("user", "item", "score"), *((f"u{u}", f"i{i}", f"{(7 * i + u) % 20 / 3:.2f}") for u in range(6) for i in range(12))],
    "items": [("item", "categories"), *((f"i{i}", ("Action", "Action|Drama", "Horror")[i % 3]) for i in range(14))],
    "histories": [("user", "items"), *((f"u{u}", f"i{u} i{u + 3}") for u in range(6))],
    "events": [("user", "item", "timestamp"), *((f"u{u}", f"i{u + n}", str(1000 * n)) for u in range(6) for n in range(3))],
    "preferences": [("user", "category", "share"), *((f"u{u}", ("Action", "Drama")[n], "0.5") for u in range(6) for n in range(2))],
}  # fmt: skip


def write_table(folder: Path, name: str, suffix: str) -> Path:
    path = folder / f"{name}{suffix}"
    header, *rows = TABLES[name]
    frame = pd.DataFrame(rows, columns=list(header))
    if suffix == ".parquet":
        frame = frame.astype({column: float for column in ("score", "share") if column in header})
        if "items" in header:
            frame["items"] = frame["items"].str.split()
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    return path


def of_checkpoint(shop: Path, bench: Bench, draw: random.Random) -> None:
    (bench.folder / "run").mkdir()
    (bench.folder / "data").symlink_to(shop / "data")
    path = bench.folder / "run" / "model.pth"
    shutil.copy(shop / "run" / "model.pth", path)
    damage(path, alter_archive, draw)
    command = draw.choice(["recommend", "recommend", "recommend", "evaluate", "evaluate", "users", "tradeoff", "report"])
    words = {
        "recommend": [MODEL, "--out=lists.csv"],
        "evaluate": [MODEL, "--output_dir=out"],
        "users": [MODEL, "--output_dir=out"],
        "tradeoff": [MODEL, "--lambdas=0,0.5", "--samples=5", "--output_dir=out"],
        "report": ["run", "--lambdas=0,0.5", "--out=out/report.html"],
    }
    done = bench.run(command, *words[command])
    if done.code == 0 and command == "recommend":
        check_lists(bench.folder / "lists.csv")


def of_state(shop: Path, bench: Bench, draw: random.Random) -> None:
    shutil.copytree(shop / "killed", bench.folder / "killed")
    name = draw.choice([STATE, STATE, STATE, "model.pth", "config.yaml"])
    path = bench.folder / "killed" / name
    damage(path, alter_archive if path.suffix == ".pth" else alter_config, draw)
    before = path.read_bytes()
    made = ("killed/tensorboard",)  # where every start begins a file
    if bench.run("--resume=killed", made=made).code == 2 and path.read_bytes() != before and name != "config.yaml":
        raise Broken(f"{name} is another after a refusal")


def alter_config(path: Path, draw: random.Random) -> None:
    lines = path.read_text().splitlines()
    place = draw.randrange(len(lines))
    key = lines[place].partition(":")[0]
    lines[place] = draw.choice([f"{key}: {odd_text(draw)}", f"{key}: {draw.choice(['-1', '[', '{a: 1}', '!!set {a}'])}", ""])
    path.write_text("\n".join(lines), encoding="utf-8", errors="replace")


def of_measurement(shop: Path, bench: Bench, draw: random.Random) -> None:
    own = bench.folder / "tradeoff" / "evaluation-0"
    own.mkdir(parents=True)
    shutil.copy(shop / "tradeoff" / "evaluation-0" / FILE, own)
    damage(own / FILE, alter_measured, draw)
    bench.run("report", "tradeoff", "--out=out/report.html", f"--users={draw.choice([1, 5])}")


def of_histories(shop: Path, bench: Bench, draw: random.Random) -> None:
    path = write_table(bench.folder, "histories", draw.choice([".csv", ".parquet"]))
    words = []
    if draw.random() < 0.2:  # the list of items that may or must not be in a list
        words = [f"--{draw.choice(['allow', 'deny'])}=rules.txt"]
        (bench.folder / "rules.txt").write_bytes(damaged(b"i1\ni2\ni3\n", draw))
    else:
        damage(path, alter_table, draw)
    (bench.folder / "run").symlink_to(shop / "run")
    if bench.run("recommend", MODEL, f"--histories={path.name}", "--k=3", "--out=lists.csv", *words).code == 0:
        check_lists(bench.folder / "lists.csv")


def of_candidates(shop: Path, bench: Bench, draw: random.Random) -> None:
    tastes = draw.choice(["histories", "events", "preferences"])
    paths = {
        name: write_table(bench.folder, name, draw.choice([".csv", ".parquet"])) for name in ("candidates", "items", tastes)
    }
    damage(draw.choice(list(paths.values())), alter_table, draw)
    words = [f"--{'histories' if name == 'events' else name}={path.name}" for name, path in paths.items()]
    if bench.run("rerank", *words, "--k=3", "--out=lists.csv").code == 0:
        check_lists(bench.folder / "lists.csv")


KINDS = {
    "checkpoints": (of_checkpoint, 0.07),
    "states of trainings": (of_state, 0.03),
    "measurements": (of_measurement, 0.04),
    "histories": (of_histories, 0.03),
    "candidates": (of_candidates, 0.05),
}


@pytest.fixture(scope="session")
def killed(shop):
    """`killed` in the shop: a training that ended after its first epoch, with the state to go on from."""

    class Killed(Exception):
        pass

    def save_and_end(*arguments: Any) -> None:
        save_state(*arguments)
        raise Killed

    settings = {
        **SMALL,
        "topk": [5],
        "valid_metric": "NDCG@5",
        "data_path": str(shop / "data"),
        "output_dir": str(shop / "killed"),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("recbole_leaprec.run.save_state", save_and_end)
        with pytest.raises(Killed):
            run_leaprec("SASRecCD", "toy", config_dict=settings)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("killed")
def test_damaged_files_are_read_or_refused_in_a_sentence(kind, shop, forks, tmp_path):
    case, share = KINDS[kind]
    fuzz(f"damaged files, {kind}", share, forks, tmp_path, lambda draw, bench: case(shop, bench, draw))
