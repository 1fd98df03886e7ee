"""Miscalibration of a list, Eq. 1, 3 and 4 of the paper.

To use another divergence, change it here (the metric), in `ItemCategories.kl` (the loss), and in the rerankers:
`divergence_saved` for devices, and the same terms in `reranking/kernels`, whose bounds hold only for KL. All of them rely on
this: KL(p || q~) is log(1/beta) minus a sum over the categories of a list. That is not so for Jensen-Shannon, for example.
"""

from __future__ import annotations

import math

from torch import Tensor

from recbole_leaprec.core.categories import ItemCategories, divergence_saved


def kl_divergence(p: Tensor, q: Tensor, beta: float = 0.01) -> Tensor:
    """KL(p || q~) over the last dimension, with `q~ = (1-beta) q + beta p` (Eq. 3 and 4); q may carry a gradient.

    Example:
        >>> import torch
        >>> kl_divergence(torch.tensor([0.5, 0.5]), torch.tensor([1.0, 0.0]))
        tensor(1.9585)
    """
    # p log(p / q~) = p log(1/beta) - p log(1 + (1-beta) q / (beta p)): the form in the loss and the rerankers.
    return p.sum(-1) * math.log(1 / beta) - divergence_saved(p, None, q, beta).sum(-1)


def miscalibration(p: Tensor, lists: Tensor, categories: ItemCategories, beta: float = 0.01) -> Tensor:
    """S_KL of each list against the preference p: `sum_c p log(p / q~)`, natural log, 0 log 0 = 0.

    `q` is the mean of p(.|i) over the list and `q~ = (1-beta) q + beta p`. With the sequential preference this is the
    paper's S_KL, with the static one C_KL. Item 0 is padding and does not count; a list of only padding has log(1/beta),
    the worst value. A user without a preference (p all zero) has 0.

    Args:
        p: `[B, C]`, each row sums to one.
        lists: `[B, K]` item ids.

    Returns:
        `[B]` float64.

    Example:
        >>> import torch
        >>> categories = ItemCategories.from_lists([[], ["Action"], ["Drama"]])
        >>> lists = torch.tensor([[1, 2], [1, 1]])
        >>> miscalibration(torch.tensor([[0.5, 0.5], [0.5, 0.5]]), lists, categories).round(decimals=4)
        tensor([0.0000, 1.9585], dtype=torch.float64)
    """
    p, lists = p.double(), lists.to(p.device)
    listed = (lists != 0).sum(1, keepdim=True).clamp_min(1)
    q = categories.to(p.device).add_shares(p.new_zeros(p.shape), lists) / listed
    return kl_divergence(p, q, beta).clamp_min(0)  # rounding can leave -1e-16
