"""Command lines out of the keys and options that there are, with values of every kind: each runs, or says what it does not take."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import yaml

from recbole_leaprec.cli.command import Command
from recbole_leaprec.commands import command_names, take_command
from recbole_leaprec.settings.keys import PLUGIN_KEYS, PROPERTIES, RECBOLE_KEYS, known_keys
from recbole_leaprec.settings.recbole_keys import recbole_folder
from tests.fuzz.cases import Bench, fuzz, odd_text
from tests.fuzz.conftest import DATA, RERANK

pytestmark = pytest.mark.slow
NUMBERS = (
    "-1",
    "0",
    "1",
    "2",
    "3",
    "7",
    "0.0",
    "0.5",
    "1.0",
    "1.5",
    "-0.5",
    "1e-9",
    "nan",
    ".inf",
    "-.inf",
    "1e400",
    "9e30",
    "007",
    "1_0",
)
WORDS = (
    "True", "False", "None", "null", "~", "yes", "a", "x y", "''", "[]", "{}", "[1]", "[1,2]", "[a,b]", "[[1]]", "{a: 1}", "{1: a}",
    "{a: [1]}", "2024-01-01", "12:30:00", "0:1:0.5", "&a [*a]", "*a", "!!python/name:os.system", "!!set {a}", "!!binary aGk=", "[", "{", "[" * 400,
    ",", "%", "@", "`", "- a", "a: b: c", "=", "==", "é", "\u202e", "💥", "a/b", "/", ".", "..", "data", "run", "run/model.pth", "/etc/passwd",
    "\t", "\\", "[1,2", "genre", "toy", "leaprec", "[Hit]", "[NDCG,SKL]", "NDCG@5", "BPR", "softmax", "all", "last", "training", "cosine",
)  # fmt: skip
HUGE = "99999999999999999999999"
TAKES_LONG = {"epochs", "samples", "longest", "eval_step", "stopping_step"}
"""What may be as large as somebody likes, and take as long."""
NOT_HERE = ("serve", "doctor", "tune", "study", "data goodreads", "data grocery", "data ml-1m", "data steam")
"""Commands that go on until they are stopped, start a cluster, or need a dataset to themselves; they get no values that are right."""
MODELS = (
    "SASRec",
    "SASRecCD",
    "GRU4RecCD",
    "BERT4RecCD",
    "CaserCD",
    "NARMCD",
    "FPMC",
    "NARM",
    "DACSR",
    "BPR",
    "Pop",
    "sasreccd",
    "STAMPCD",
    "NextItNetCD",
)


def defaults() -> dict[str, list[str]]:
    """The values that RecBole and the plugin have for their keys."""
    found: dict[str, list[str]] = {}
    for path in (*(recbole_folder() / "properties").rglob("*.yaml"), *PROPERTIES.rglob("*.yaml")):
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        for key, value in (content or {}).items() if isinstance(content, dict) else ():
            found.setdefault(str(key), []).append(
                yaml.safe_dump(value, default_flow_style=True).replace("\n...", "").strip()
            )
    return {key: sorted(set(values)) for key, values in found.items() if key in known_keys()}


DEFAULTS = defaults()
IMPORTANT = sorted(PLUGIN_KEYS | RECBOLE_KEYS)
KEYS = sorted(known_keys() - {"local_rank", "nproc", "world_size", "group_offset", "ip", "port", "log_wandb"})


def value_for(key: str, draw: random.Random) -> str:
    kind = draw.random()
    if kind < 0.25 and key in DEFAULTS and key not in TAKES_LONG:
        return draw.choice(DEFAULTS[key])
    if kind < 0.6:
        return draw.choice(NUMBERS)
    if kind < 0.9:
        return draw.choice(WORDS)
    return HUGE if kind < 0.93 and key not in TAKES_LONG else odd_text(draw).replace("\x00", "")


def base_of(name: str) -> list[str]:
    """A right command line."""
    model = "--checkpoint=run/model.pth"
    return {
        "train": [*DATA, "--output_dir=out"],
        "evaluate": ["evaluate", model, "--output_dir=out"],
        "recommend": ["recommend", model, "--out=lists.csv"],
        "users": ["users", model, "--output_dir=out"],
        "tradeoff": ["tradeoff", model, "--lambdas=0,0.5", "--samples=5", "--output_dir=out"],
        "report": ["report", "tradeoff", "--out=out/report.html"],
        "shift": ["shift", *DATA, "--longest=5", "--window=2", "--step=1", "--output_dir=out"],
        "data describe": ["data", "describe", *DATA, "--output_dir=out"],
        "data csv": ["data", "csv", "--interactions=data/toy/toy.inter", "--items=data/toy/toy.item", "--out=out"],
        "rerank": [*RERANK, "--out=reranked.csv"],
    }.get(name, [*name.split()])  # fmt: skip


def line(draw: random.Random) -> list[str]:
    """A command line with one to three changes."""
    names = command_names()
    name = draw.choice(["train"] * 6 + names + [other for other in names if other not in NOT_HERE] * 2)
    words = base_of(name)
    command: Command = take_command(name.split())
    options = [option.name or "" for option in command.params]
    keys = sorted(command.keys) if command.keys is not None else KEYS
    for _ in range(draw.choice([1, 1, 2, 3])):
        key = draw.choice(draw.choice([options or IMPORTANT, keys or IMPORTANT, IMPORTANT, KEYS]))
        value = draw.choice(MODELS) if key == "model" and draw.random() < 0.7 else value_for(key, draw)
        if key in ("engine", "ray_address") or (name in NOT_HERE and draw.random() < 0.7):
            value = draw.choice(WORDS)
        if name == "serve" and value == "run/model.pth":
            value = "run"  # a service that starts goes on until it is stopped
        if draw.random() < 0.04:
            key = key[:-1] + draw.choice("xyz_")
        words = [word for word in words if not word.startswith(f"--{key}=")]
        words.append(f"--{key}={value}")
    if draw.random() < 0.06:
        noise = [
            "--",
            "-x",
            "--=",
            "--=1",
            "--epochs",
            "",
            "-",
            "=",
            "--epochs=1",
            "--help=1",
            "x",
            "-m",
            "--metrics=",
            odd_text(draw),
        ]
        words.insert(draw.randrange(1, len(words) + 1), draw.choice(noise).replace("\x00", ""))
    return words


def link_shop(shop: Path, folder: Path) -> None:
    for name in ("data", "run", "tradeoff", "lists.parquet", "items.csv", "histories.csv"):
        (folder / name).symlink_to(shop / name)


def test_command_lines_run_or_are_refused_in_a_sentence(shop, forks, tmp_path):
    def case(draw: random.Random, bench: Bench) -> None:
        link_shop(shop, bench.folder)
        words = line(draw)
        if words[0] in NOT_HERE and not any(word.startswith("--") for word in words):
            return
        bench.run(*words)

    fuzz("command lines", 0.35, forks, tmp_path, case)


def test_config_files_are_read_or_refused_in_a_sentence(shop, forks, tmp_path):
    def case(draw: random.Random, bench: Bench) -> None:
        link_shop(shop, bench.folder)
        lines = []
        for _ in range(draw.choice([1, 1, 2, 3])):
            key = draw.choice(draw.choice([IMPORTANT, KEYS, WORDS]))
            lines.append(f"{key}: {value_for(key, draw)}")
        (bench.folder / "own.yaml").write_bytes(
            "\n".join(lines).encode("utf-8", "replace") + draw.choice([b"\n", b"", b"\xff"])
        )
        given = {one.partition(":")[0] for one in lines}
        bench.run(
            *(word for word in DATA if word[2:].partition("=")[0] not in given),
            "--config_files=own.yaml",
            "--output_dir=out",
        )

    fuzz("config files", 0.05, forks, tmp_path, case)
