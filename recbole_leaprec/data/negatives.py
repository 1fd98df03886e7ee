"""Negatives for a pairwise loss: items that are not in a user's training history."""

from __future__ import annotations

import torch
from torch import Tensor


class NegativeSampler:
    """Draws items that a user does not have, uniformly, without rejection.

    Let o_0 < o_1 < ... be a user's items. The r-th other item is r + 1 plus the number of o_k before it, which are those
    with `o_k - 1 - k <= r`. This takes one binary search per draw.

    Example:
        >>> sampler = NegativeSampler(user=torch.tensor([0, 0, 1]), item=torch.tensor([1, 3, 2]), n_users=2, n_items=5)
        >>> draws = sampler.sample(torch.tensor([0] * 100), (100,), torch.Generator().manual_seed(0))
        >>> draws.unique().tolist()
        [2, 4]
    """

    def __init__(self, user: Tensor, item: Tensor, n_users: int, n_items: int):
        """`user` and `item` are the pairs that are never drawn; item ids are 1 to n_items-1."""
        own = torch.unique(user * n_items + item)
        owner = own // n_items
        count = torch.bincount(owner, minlength=n_users)
        self._begin = count.cumsum(0) - count
        rank = torch.arange(len(own)) - self._begin[owner]
        self._keys = owner * n_items + (own % n_items) - 1 - rank
        self._n_items = n_items
        self.available = n_items - 1 - count

    def sample(self, user: Tensor, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Item ids of this shape, whose first dimension is that of `user`."""
        user = user.view(-1, *[1] * (len(shape) - 1))
        draw = (torch.rand(shape, dtype=torch.float64, generator=generator) * self.available[user]).long()
        before = torch.searchsorted(self._keys, user * self._n_items + draw, right=True) - self._begin[user]
        return draw + 1 + before
