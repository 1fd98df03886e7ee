"""Training and evaluation of every model on a pretended device: nothing is left on the CPU that the device needs, nor the other way."""

import contextlib

import pytest
import torch
from recbole.utils import init_seed

from recbole_leaprec.reranking import Reranking
from recbole_leaprec.settings.model_names import known_models
from recbole_leaprec.trainer import LeapRecTrainer
from tests.model.test_models import NEEDED, OWN, one_thread  # noqa: F401
from tests.pretend import DEVICE, PretendDevice

UNFIT = {"FEARec": "its complex numbers", "RepeatNet": "it asks torch for CUDA"}
"""Models of RecBole for which the pretended device is too little of one, and what of them."""
MODELS = sorted(name for name in known_models() if name.removesuffix("CD") not in UNFIT)
NO_DROPOUT = dict.fromkeys(("hidden_dropout_prob", "attn_dropout_prob", "dropout_prob"), 0.0)


@pytest.fixture
def like_a_device(monkeypatch):
    """What torch does for the devices that it knows: autocast that is switched off, and a tensor that is made there at once."""
    autocast, tensor = torch.autocast, torch.tensor

    def our_autocast(device_type, *more, enabled=True, **options):
        off = device_type == DEVICE.type and not enabled
        return contextlib.nullcontext() if off else autocast(device_type, *more, enabled=enabled, **options)

    def our_tensor(data, *, device=None, **options):
        made = tensor(data, **options)
        return made if device is None else made.to(device)

    monkeypatch.setattr(torch, "autocast", our_autocast)
    monkeypatch.setattr(torch, "tensor", our_tensor)


def trained(prepare, tmp_path, name, device, **changes):
    """Metrics of a model after an epoch on a device, in three rerankings."""
    config, dataset, (train, valid, test) = prepare(
        name, epochs=1, output_dir=str(tmp_path / device.type), **NEEDED.get(name.removesuffix("CD"), {}), **changes
    )
    config["device"] = device
    (tmp_path / device.type).mkdir()
    init_seed(5, True)
    model = config.model_class(config, train.dataset).to(device)
    trainer = LeapRecTrainer(config, model, dataset)
    trainer.fit(train, valid, saved=False, show_progress=False)
    rerankings = [Reranking(), *(Reranking(method, 0.4) for method in ("leaprec", "setwise"))]
    return [one.metrics for one in trainer.evaluate_rerankings(test, rerankings, per_user=True)]


@pytest.mark.slow
@pytest.mark.usefixtures("like_a_device")
@pytest.mark.parametrize("name", MODELS)
def test_every_model_trains_and_is_evaluated_on_a_device(prepare, tmp_path, name):
    with PretendDevice() as device:
        results = trained(prepare, tmp_path, name, DEVICE)
    assert device.launches > 100
    assert all(0 <= result["hit@10"] <= 1 for result in results)


@pytest.mark.usefixtures("like_a_device")
@pytest.mark.parametrize("loss_type", ["BPR", "softmax"])
@pytest.mark.parametrize("name", [name for name in OWN if name != "DACSR"])
def test_a_model_learns_the_same_on_a_device(prepare, tmp_path, name, loss_type):
    changes = {**NO_DROPOUT, "loss_type": loss_type, "num_negatives": "all"}
    with PretendDevice():
        there = trained(prepare, tmp_path, name, DEVICE, **changes)
    here = trained(prepare, tmp_path, name, torch.device("cpu"), **changes)
    for own, expected in zip(there, here, strict=True):
        assert own == pytest.approx(expected, abs=2e-4)
