"""The calibration-disentangled learning-to-rank loss, Eq. 8 to 10 of the paper."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import logsigmoid


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
