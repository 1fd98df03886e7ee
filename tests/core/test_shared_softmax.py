"""The softmax loss some positions at a time, against the loss that keeps all scores."""

import pytest
import torch

from recbole_leaprec.core import shared_softmax
from recbole_leaprec.core.loss import NOT_COUNTED, disentangled_loss, softmax_loss
from recbole_leaprec.core.shared_softmax import shared_softmax_loss

WEIGHTS = [(1.0, 0.0), (0.0, 0.5), (1.0, 0.1), (0.3, 2.0)]


@pytest.mark.parametrize(("weight", "gamma"), WEIGHTS)
@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("at_once", [1, 11, 2**20])
def test_loss_and_gradients_are_those_of_all_scores_at_once(monkeypatch, weight, gamma, scale, at_once):
    monkeypatch.setitem(shared_softmax._AT_ONCE, "cpu", at_once)
    torch.manual_seed(0)
    for positions, negatives in ((1, 1), (7, 5), (4, 40)):
        vectors = [
            torch.randn(n, 3, dtype=torch.float64).mul(scale).requires_grad_() for n in (positions, positions, negatives)
        ]
        output, positive, others = vectors
        correction = torch.randn(negatives, dtype=torch.float64)
        own = (torch.rand(positions, negatives) < 0.2).nonzero(as_tuple=True)
        kl_positive, kl_others = torch.rand(positions).double(), torch.rand(positions, negatives).double()
        got = shared_softmax_loss(
            *vectors, correction, own, lambda rows, kl=(kl_positive, kl_others): (kl[0][rows], kl[1][rows]), weight, gamma
        )
        scores = (output @ others.T + correction).index_put(own, torch.tensor(NOT_COUNTED, dtype=torch.float64))
        expected = disentangled_loss(softmax_loss, (output * positive).sum(1), scores, kl_positive, kl_others, weight, gamma)
        torch.testing.assert_close(got, expected)
        torch.testing.assert_close(
            torch.autograd.grad(got, vectors), torch.autograd.grad(expected, vectors), rtol=1e-9, atol=1e-12
        )


def test_a_position_whose_only_negative_is_its_own_item_has_no_gradient():
    output, positive = (torch.ones(1, 2, requires_grad=True) for _ in range(2))
    loss = shared_softmax_loss(output, positive, torch.ones(1, 2), own=(torch.tensor([0]), torch.tensor([0])))
    loss.backward()
    assert loss.item() == 0
    assert output.grad.tolist() == positive.grad.tolist() == [[0, 0]]


def test_the_cd_term_asks_for_the_divergences():
    one = torch.ones(1, 1)
    with pytest.raises(ValueError, match="needs the KL"):
        shared_softmax_loss(one, one, one, gamma=0.1)
