"""Optimizers without torch's compiler do what torch's do."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from recbole_leaprec.lighter_optimizer import OPTIMIZERS, lighter
from recbole_leaprec.settings.keys import LEARNERS
from tests.toy import SMALL


def test_every_learner_has_an_optimizer():
    assert set(OPTIMIZERS) == set(LEARNERS)


@pytest.mark.parametrize("learner", OPTIMIZERS)
def test_steps_and_states_are_those_of_torch(learner):
    torch.manual_seed(1)
    start, gradients = torch.randn(3, 4), torch.randn(6, 3, 4)
    ends, states = [], []
    for make in (OPTIMIZERS[learner], lighter(OPTIMIZERS[learner])):
        parameter = torch.nn.Parameter(start.clone())
        optimizer = make([parameter], lr=0.1, weight_decay=0.01)
        for number, gradient in enumerate(gradients):
            if number == 3:  # goes on from what was saved
                saved, optimizer = optimizer.state_dict(), make([parameter], lr=0.1, weight_decay=0.01)
                optimizer.load_state_dict(saved)
            optimizer.zero_grad()
            parameter.grad = gradient.clone()
            optimizer.step()
        ends.append(parameter.detach())
        states.append(optimizer.state_dict()["param_groups"])
    assert torch.equal(*ends)
    assert states[0] == states[1]


def test_hooks_are_called():
    parameter = torch.nn.Parameter(torch.ones(1))
    optimizer = lighter(torch.optim.Adam)([parameter])
    called = []
    optimizer.register_step_pre_hook(lambda *_: called.append("before"))
    parameter.grad = torch.ones(1)
    optimizer.step()
    assert called == ["before"]


def test_a_training_and_its_evaluation_load_no_compiler(toy):
    keys = {**SMALL, "data_path": str(toy), "output_dir": str(toy / "run")}
    code = (
        "import sys; from recbole_leaprec import run_leaprec; "
        f"run_leaprec('SASRecCD', 'toy', config_dict={keys!r}); "
        "print('loaded' if 'torch._dynamo' in sys.modules else 'not loaded')"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.split("\n")[-2] == "not loaded"
