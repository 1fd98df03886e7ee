"""Sequences of all users in one flat array, and what training cuts out of it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Sequences:
    """Each user's items once, oldest first: user u's are `items[offsets[u]:offsets[u+1]]`.

    Example:
        >>> sequences = Sequences(items=torch.tensor([7, 8, 9, 5]), offsets=torch.tensor([0, 3, 4]))
        >>> sequences.before(torch.tensor([2, 3]), length=2)[0].tolist()
        [[7, 8], [0, 0]]
    """

    items: Tensor
    offsets: Tensor

    def user_of(self, position: Tensor) -> Tensor:
        """The user whose item stands at each flat position."""
        return torch.searchsorted(self.offsets, position, right=True) - 1

    def last_in_training(self, position: Tensor) -> Tensor:
        """The same flat position, or the user's last training item where that comes before; the two after it are held out."""
        return torch.minimum(position, self.offsets[self.user_of(position) + 1] - 3)

    def before(self, target: Tensor, length: int) -> tuple[Tensor, Tensor]:
        """The last `length` items before each flat position: `[B, length]`, zeros at the end, and how many `[B]`."""
        start = torch.maximum(self.offsets[self.user_of(target)], target - length)
        count = target - start
        place = torch.arange(length)
        items = self.items[(start[:, None] + place).clamp_max(len(self.items) - 1)]
        return items * (place < count[:, None]), count

    def latest(self, target: Tensor, length: int) -> tuple[Tensor, Tensor]:
        """The last `length` items before each flat position, `[B, length]`, zeros in front; and how many there are in all `[B]`."""
        start = self.offsets[self.user_of(target)]
        place = target[:, None] - length + torch.arange(length)
        return self.items[place.clamp_min(0)] * (place >= start[:, None]), target - start

    def history(self, target: Tensor) -> tuple[Tensor, Tensor]:
        """Everything before each flat position, as pairs (row, item)."""
        start = self.offsets[self.user_of(target)]
        count = target - start
        rows = torch.repeat_interleave(torch.arange(len(target)), count)
        within = torch.arange(len(rows)) - torch.repeat_interleave(count.cumsum(0) - count, count)
        return rows, self.items[start[rows] + within]


@dataclass(frozen=True)
class Windows:
    """Pieces of sequences, at most `length` inputs each, such that every target is trained exactly once.

    The input at flat position n has the item at n+1 as its target. A sequence of more than `length` inputs is cut;
    every piece after the first repeats the last `length // 2` inputs of the one before it as context, without
    training them again. So a target sees its whole past, or at least `length // 2` items of it.

    Attributes:
        start, stop: `[W]` the inputs are at flat positions start to stop-1.
        first: `[W]` inputs before it are context only.
    """

    start: Tensor
    stop: Tensor
    first: Tensor

    @classmethod
    def cut(cls, start: Tensor, stop: Tensor, length: int) -> Windows:
        """Cut sequences whose inputs are at flat positions start to stop-1.

        Example:
            >>> Windows.cut(torch.tensor([0]), torch.tensor([7]), length=4)
            Windows(start=tensor([0, 2, 4]), stop=tensor([4, 6, 7]), first=tensor([0, 4, 6]))
        """
        context = length // 2
        stride = length - context
        beyond = (stop - start - length).clamp_min(0)
        pieces = (1 + (beyond + stride - 1) // stride) * (stop > start)
        sequence = torch.repeat_interleave(torch.arange(len(start)), pieces)
        number = torch.arange(len(sequence)) - torch.repeat_interleave(pieces.cumsum(0) - pieces, pieces)
        begin = start[sequence] + number * stride
        return cls(begin, torch.minimum(begin + length, stop[sequence]), begin + context * (number > 0))

    def __len__(self) -> int:
        return len(self.start)

    @property
    def lengths(self) -> Tensor:
        return self.stop - self.start


class NegativeSampler:
    """Draws items that a user does not have, uniformly, without rejection.

    The r-th item that is not among a user's sorted items o_0 < o_1 < ... is r + 1 plus the number of o_k that come
    before it, those with `o_k - 1 - k <= r`: one binary search a draw.

    Example:
        >>> sampler = NegativeSampler(user=torch.tensor([0, 0, 1]), item=torch.tensor([1, 3, 2]), n_users=2, n_items=5)
        >>> draws = sampler.sample(torch.tensor([0] * 100), (100,), torch.Generator().manual_seed(0))
        >>> draws.unique().tolist()
        [2, 4]
    """

    def __init__(self, user: Tensor, item: Tensor, n_users: int, n_items: int):
        """`user` and `item` are the pairs never to draw; item ids are 1 to n_items-1."""
        own = torch.unique(user * n_items + item)
        owner = own // n_items
        count = torch.bincount(owner, minlength=n_users)
        self._begin = count.cumsum(0) - count
        rank = torch.arange(len(own)) - self._begin[owner]
        self._keys = owner * n_items + (own % n_items) - 1 - rank
        self._n_items = n_items
        self.available = n_items - 1 - count

    def sample(self, user: Tensor, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Item ids of `shape`, whose first dimension goes with `user`."""
        user = user.view(-1, *[1] * (len(shape) - 1))
        draw = (torch.rand(shape, dtype=torch.float64, generator=generator) * self.available[user]).long()
        before = torch.searchsorted(self._keys, user * self._n_items + draw, right=True) - self._begin[user]
        return draw + 1 + before
