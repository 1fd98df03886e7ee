"""Eq. 8 to 10 and their gradient, on the loss functions alone; the model's loss is in test_model."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from recbole_leaprec.loss import bpr_loss, cd_bpr_loss
from tests.reference import log_sigmoid

FLOATS = st.floats(-30, 30)
ROWS = st.lists(st.tuples(FLOATS, FLOATS, st.floats(0, 10), st.floats(0, 10)), min_size=1, max_size=10)


@given(ROWS)
def test_losses_are_means_over_positions(rows):
    columns = torch.tensor(rows, dtype=torch.float64).T
    bpr = -sum(log_sigmoid(ri - rj) for ri, rj, _, _ in rows) / len(rows)
    cd_bpr = -sum(log_sigmoid((ri - ki) - (rj - kj)) for ri, rj, ki, kj in rows) / len(rows)
    assert bpr_loss(columns[0], columns[1]).item() == pytest.approx(bpr)
    assert cd_bpr_loss(*columns).item() == pytest.approx(cd_bpr)


@given(ROWS)
def test_gradient_is_that_of_the_formula(rows):
    columns = torch.tensor(rows, dtype=torch.float64).T
    positive = columns[0].clone().requires_grad_()
    cd_bpr_loss(positive, *columns[1:]).backward()
    margins = [(ri - ki) - (rj - kj) for ri, rj, ki, kj in rows]
    expected = [-(1 - math.exp(log_sigmoid(margin))) / len(rows) for margin in margins]
    assert positive.grad.tolist() == pytest.approx(expected, abs=1e-12)


def test_a_large_margin_does_not_overflow():
    assert bpr_loss(torch.tensor([-1e4]), torch.tensor([1e4])).item() == pytest.approx(2e4)
