"""Ranking losses, plain and calibration-disentangled: BPR as in Eq. 8 to 10 of the paper, and a softmax over many negatives."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import logsigmoid

SOFTMAX = "softmax"
LOSS_TYPES = ("BPR", SOFTMAX)
"""`loss_type` of a calibration-disentangled model."""


def bpr_loss(positive: Tensor, negative: Tensor) -> Tensor:
    """L_BPR (Eq. 9): the mean of -log sigma(r_i - r_j)."""
    return -logsigmoid(positive - negative).mean()


def cd_bpr_loss(positive: Tensor, negative: Tensor, kl_positive: Tensor, kl_negative: Tensor) -> Tensor:
    """L_CD-BPR (Eq. 10): BPR on r - KL(p_{t-1} || p~_i), so that the order survives calibration.

    The KL depends on data alone and carries no gradient.

    Example:
        >>> import torch
        >>> cd_bpr_loss(torch.tensor([1.0]), torch.tensor([0.0]), torch.tensor([2.0]), torch.tensor([1.0]))
        tensor(0.6931)
    """
    return bpr_loss(positive - kl_positive, negative - kl_negative)


def softmax_loss(
    positive: Tensor,
    negatives: Tensor,
    kl_positive: Tensor | None = None,
    kl_negatives: Tensor | None = None,
    weight: float = 1.0,
    gamma: float = 0.0,
) -> Tensor:
    """`weight * L + gamma * L_CD`: the cross-entropy of the positive among itself and its negatives, on r and on r - KL.

    With one negative, L is L_BPR and L_CD is L_CD-BPR. Means over the T positions; the KL carries no gradient.

    Args:
        positive, kl_positive: `[T]`.
        negatives, kl_negatives: `[T, M]`; a negative at -inf does not count.

    Example:
        >>> softmax_loss(torch.tensor([1.0]), torch.tensor([[0.0, -torch.inf]]))
        tensor(0.3133)
    """
    if positive.dtype in (torch.float16, torch.bfloat16):  # gradients are made here, before a loss scale can save them
        positive, negatives = positive.float(), negatives.float()
    return _SoftmaxLoss.apply(positive, negatives, kl_positive, kl_negatives, weight, gamma)


_ELEMENTS = 2**19
"""Scores worked on at once: what fits into a processor's cache."""


class _SoftmaxLoss(torch.autograd.Function):
    """Works out the gradient along with the loss, some rows at a time: each score is read from memory once for both terms."""

    @staticmethod
    def forward(ctx, positive, negatives, kl_positive, kl_negatives, weight, gamma):
        loss = positive.new_zeros((), dtype=torch.float64)
        grad_positive, grad_negatives = torch.zeros_like(positive), torch.empty_like(negatives)
        step = max(1, _ELEMENTS // negatives.shape[1])
        for start in range(0, len(positive), step):
            rows = slice(start, start + step)
            grads = grad_positive[rows], grad_negatives[rows].zero_()
            if weight:
                loss += weight * _add_cross_entropy(positive[rows], negatives[rows].clone(), weight / len(positive), *grads)
            if gamma:
                r, others = positive[rows] - kl_positive[rows], negatives[rows] - kl_negatives[rows]
                loss += gamma * _add_cross_entropy(r, others, gamma / len(positive), *grads)
        ctx.save_for_backward(grad_positive, grad_negatives)
        return (loss / len(positive)).to(positive.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        grad_positive, grad_negatives = ctx.saved_tensors
        return grad_positive * grad, grad_negatives * grad, None, None, None, None


def _add_cross_entropy(
    positive: Tensor, negatives: Tensor, weight: float, grad_positive: Tensor, grad_negatives: Tensor
) -> Tensor:
    """The sum of -log softmax over some rows, with its gradient, times `weight`, added; `negatives` is written over."""
    top = torch.maximum(positive, negatives.amax(1))
    of_positive, of_negatives = (positive - top).exp_(), negatives.sub_(top[:, None]).exp_()
    total = of_positive + of_negatives.sum(1)
    grad_positive += weight * (of_positive / total - 1)
    grad_negatives.addcmul_(of_negatives, (weight / total)[:, None])
    return (total.log() + top - positive).double().sum()
