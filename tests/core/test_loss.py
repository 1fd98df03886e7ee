"""Eq. 8 to 10, the softmax loss and their gradients, on the loss functions alone; the model's loss is in test_model."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from recbole_leaprec.core.loss import NOT_COUNTED, bpr_loss, disentangled_loss, softmax_loss
from tests.reference import log_sigmoid, log_softmax

FLOATS = st.floats(-30, 30)
ROWS = st.lists(st.tuples(FLOATS, FLOATS, st.floats(0, 10), st.floats(0, 10)), min_size=1, max_size=10)


@given(ROWS)
def test_losses_are_means_over_positions(rows):
    columns = torch.tensor(rows, dtype=torch.float64).T
    bpr = -sum(log_sigmoid(ri - rj) for ri, rj, _, _ in rows) / len(rows)
    cd_bpr = -sum(log_sigmoid((ri - ki) - (rj - kj)) for ri, rj, ki, kj in rows) / len(rows)
    assert bpr_loss(columns[0], columns[1]).item() == pytest.approx(bpr)
    assert disentangled_loss(bpr_loss, *columns, weight=0.0, gamma=1.0).item() == pytest.approx(cd_bpr)


@given(ROWS)
def test_gradient_is_that_of_the_formula(rows):
    columns = torch.tensor(rows, dtype=torch.float64).T
    positive = columns[0].clone().requires_grad_()
    disentangled_loss(bpr_loss, positive, *columns[1:], weight=0.0, gamma=1.0).backward()
    margins = [(ri - ki) - (rj - kj) for ri, rj, ki, kj in rows]
    expected = [-(1 - math.exp(log_sigmoid(margin))) / len(rows) for margin in margins]
    assert positive.grad.tolist() == pytest.approx(expected, abs=1e-12)


def test_a_large_margin_does_not_overflow():
    assert bpr_loss(torch.tensor([-1e4]), torch.tensor([1e4])).item() == pytest.approx(2e4)


@st.composite
def softmax_cases(draw):
    """`(r, kl, counts)`, each `[T][1 + M]`, the positive first; `counts` says which negatives do."""
    rows, columns = draw(st.integers(1, 6)), draw(st.integers(2, 5))

    def table(values):
        return draw(st.lists(st.lists(values, min_size=columns, max_size=columns), min_size=rows, max_size=rows))

    return table(FLOATS), table(st.floats(0, 10)), table(st.booleans())


@pytest.mark.parametrize(("weight", "gamma"), [(1.0, 0.0), (0.0, 0.5), (1.0, 0.1), (0.3, 2.0)])
@given(softmax_cases())
def test_softmax_loss_and_gradient_are_those_of_the_formula(weight, gamma, case):
    r, kl, counts = case
    terms = []
    for scores, shifts, count in zip(r, kl, counts, strict=True):
        kept = [0, *(j for j in range(1, len(scores)) if count[j])]
        terms.append(
            -weight * log_softmax([scores[j] for j in kept]) - gamma * log_softmax([scores[j] - shifts[j] for j in kept])
        )
    scores = torch.tensor(r, dtype=torch.float64)
    scores[:, 1:][~torch.tensor(counts)[:, 1:]] = NOT_COUNTED
    scores.requires_grad_()
    shifts = torch.tensor(kl, dtype=torch.float64)
    loss = disentangled_loss(softmax_loss, scores[:, 0], scores[:, 1:], shifts[:, 0], shifts[:, 1:], weight, gamma)
    assert loss.item() == pytest.approx(sum(terms) / len(terms), abs=1e-9)
    (gradient,) = torch.autograd.grad(3 * loss, scores)
    plain = weight * scores.log_softmax(1)[:, 0] + gamma * (scores - shifts).log_softmax(1)[:, 0]
    (expected,) = torch.autograd.grad(-3 * plain.mean(), scores)
    torch.testing.assert_close(gradient, expected)


@given(ROWS)
def test_softmax_over_one_negative_is_bpr(rows):
    columns = torch.tensor(rows, dtype=torch.float64).T
    negative, kl_negative = columns[1][:, None], columns[3][:, None]
    loss = disentangled_loss(softmax_loss, columns[0], negative, columns[2], kl_negative, 1.0, 0.1)
    assert loss.item() == pytest.approx(disentangled_loss(bpr_loss, *columns, 1.0, 0.1).item())
