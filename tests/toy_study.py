"""A small study on made-up data, finished once for all tests that look at one."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import yaml

from recbole_leaprec.study import study
from tests.toy import GENRES, SMALL, write_dataset

LAMBDAS = [0.0, 0.5, 0.9]


def spec_file(folder: Path, data: Path, **changes) -> Path:
    settings = {**SMALL, "dataset": "toy", "data_path": str(data), "topk": 5, "valid_metric": "NDCG@5", "epochs": 1}
    content = {
        "title": "A toy", "settings": settings, "backbones": ["SASRec"], "seeds": [1, 2], "lambdas": LAMBDAS,
        "variants": {"BPR": {"gamma": 0}, "CD": None, "DACSR": {"model": "DACSR"}},
        "methods": {
            "LeapRec": {"variant": "CD", "reranker": "leaprec"},
            "CaliRec": {"variant": "BPR", "reranker": "calirec", "lambdas": [0.5]},
            "DACSR": {"variant": "DACSR"},
        },
        "ablations": {"(-)CD": {"variant": "BPR", "reranker": "leaprec"}},
        "reference": "LeapRec", "match": [2.0, 0.5],
    }  # fmt: skip
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump({**content, **changes}))
    return path


@pytest.fixture(scope="session")
def finished_study(tmp_path_factory):
    """`(folder, spec)` of a finished study."""
    draw, folder = random.Random(3), tmp_path_factory.mktemp("study")
    inter = [(f"u{u}", f"i{i}", n) for u in range(25) for n, i in enumerate(draw.sample(range(40), draw.choice([4, 9, 25])))]
    data = write_dataset(folder / "data", inter, {f"i{i}": " ".join(draw.sample(GENRES, 1 + i % 2)) for i in range(40)})
    spec = spec_file(folder, data)
    study(spec, folder / "out", show_progress=False)
    return folder / "out", spec
