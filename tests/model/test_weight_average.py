"""The running mean of the weights: its formula, where it is used, and that it is saved and goes on."""

from __future__ import annotations

import pytest
import torch

from recbole_leaprec import run_leaprec
from recbole_leaprec.model.weight_average import WeightAverage
from tests.toy import SMALL


def trained(decay, steps):
    """A model with one weight, its average, and its weight after each step."""
    model = torch.nn.Linear(1, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    average, weights = WeightAverage(model, optimizer, decay), []
    for _ in range(steps):
        optimizer.zero_grad()
        (model.weight - 7).pow(2).sum().backward()
        optimizer.step()
        weights.append(model.weight.item())
    return model, average, weights


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.9])
def test_the_mean_is_that_of_its_formula(decay):
    model, average, weights = trained(decay, 30)
    mean = weights[0]
    for n, weight in enumerate(weights, 1):
        kept = min(decay, (1 + n) / (10 + n))
        mean = kept * mean + (1 - kept) * weight
    with average.in_use():
        assert model.weight.item() == pytest.approx(mean, rel=1e-5)
    assert model.weight.item() == weights[-1]


def test_before_the_first_step_the_weights_are_used():
    model, average, _ = trained(0.9, 0)
    before = model.weight.item()
    with average.in_use():
        assert model.weight.item() == before


def test_an_error_inside_leaves_the_weights_as_they_were():
    model, average, weights = trained(0.9, 5)
    with pytest.raises(KeyError), average.in_use():
        raise KeyError
    assert model.weight.item() == weights[-1]


@pytest.mark.parametrize(
    "state",
    [None, {}, {"steps": 3, "mean": []}, {"steps": 3, "mean": [torch.zeros(2, 2)]}, {"steps": "3", "mean": [torch.zeros(1, 1)]},
     {"steps": 3, "mean": [torch.full((1, 1), torch.nan)]}, {"steps": 3, "mean": [[1.0]]}, {"steps": 3, "mean": [torch.zeros(1, 1).double()]},
     {"steps": 0, "mean": [torch.zeros(1, 1)]}],
)  # fmt: skip
def test_states_that_are_none_are_refused(state):
    _, average, _ = trained(0.9, 5)
    with pytest.raises(ValueError, match="its mean of the weights is not what it should be"):
        average.restore(state)


def test_a_state_goes_on():
    _, average, _ = trained(0.9, 5)
    model, other, _ = trained(0.9, 3)
    other.restore(average.state())
    with average.in_use(), other.in_use():
        assert model.weight.item() == average._parameters[0].item()


def test_a_decay_of_nearly_nothing_is_no_average(toy, tmp_path):
    given = {**SMALL, "topk": [10], "data_path": str(toy), "epochs": 2}
    plain = run_leaprec("SASRecCD", "toy", config_dict={**given, "output_dir": str(tmp_path / "a")})
    averaged = run_leaprec(
        "SASRecCD", "toy", config_dict={**given, "output_dir": str(tmp_path / "b"), "weight_average": 1e-9}
    )
    assert plain["backbone"] == averaged["backbone"]
