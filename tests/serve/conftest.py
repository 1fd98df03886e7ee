"""A small trained model, and the service of it."""

from __future__ import annotations

import pytest

from recbole_leaprec import run_leaprec
from recbole_leaprec.serve.service import open_service
from tests.toy import SMALL


@pytest.fixture
def checkpoint(toy, tmp_path):
    settings = {**SMALL, "topk": [10], "epochs": 1, "data_path": str(toy), "output_dir": str(tmp_path / "run")}
    run_leaprec("SASRecCD", "toy", config_dict=settings)
    return tmp_path / "run" / "model.pth"


@pytest.fixture
def service(checkpoint):
    return open_service(checkpoint, k=5)
