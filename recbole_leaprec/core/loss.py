"""Ranking losses, plain and calibration-disentangled: BPR (the paper's Eq. 8 to 10), and a softmax over many negatives."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn.functional import logsigmoid


def bpr_loss(positive: Tensor, negative: Tensor) -> Tensor:
    """L_BPR (Eq. 9): the mean of -log sigma(r_i - r_j)."""
    return -logsigmoid(positive - negative).mean()


NOT_COUNTED = -1e30
"""The score of a negative that does not count. It is finite because the gradient of a row of only -inf would be nan."""


def softmax_loss(positive: Tensor, negatives: Tensor) -> Tensor:
    """Cross-entropy of the positive among itself and its negatives.

    It equals BPR against one negative with the score log sum_j exp(r_j).

    Args:
        positive: `[T]`.
        negatives: `[T, M]`; a negative at `NOT_COUNTED` does not count.

    Example:
        >>> import torch
        >>> softmax_loss(torch.tensor([1.0]), torch.tensor([[0.0, NOT_COUNTED]]))
        tensor(0.3133)
    """
    return bpr_loss(positive, negatives.logsumexp(1))


def disentangled_loss(
    loss: Callable[[Tensor, Tensor], Tensor],
    positive: Tensor,
    negative: Tensor,
    kl_positive: Tensor | None = None,
    kl_negative: Tensor | None = None,
    weight: float = 1.0,
    gamma: float = 0.0,
) -> Tensor:
    """`weight * L + gamma * L_CD` (Eq. 8): a loss on r, and the same loss on r - KL.

    The second term trains the model so that positives rank above negatives even after calibration.

    Args:
        loss: `bpr_loss`, with which L_CD is the paper's L_CD-BPR (Eq. 10), or `softmax_loss`.
        positive, negative: relevance r, in the shapes that the loss takes.
        kl_positive, kl_negative: KL(p_{t-1} || p~_i) of the same items, without a gradient; needed if gamma is not 0.

    Example:
        >>> import torch
        >>> r, kl = (torch.tensor([1.0]), torch.tensor([0.0])), (torch.tensor([2.0]), torch.tensor([1.0]))
        >>> disentangled_loss(bpr_loss, *r, *kl, weight=0.0, gamma=1.0)
        tensor(0.6931)
    """
    total = positive.new_zeros(())
    if weight:
        total = total + weight * loss(positive, negative)
    if gamma:
        if kl_positive is None or kl_negative is None:
            raise ValueError("the calibration-disentangled term needs the KL of the positive and of the negatives")
        total = total + gamma * loss(positive - kl_positive, negative - kl_negative)
    return total
