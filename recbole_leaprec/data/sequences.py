"""The sequences of all users in one flat array, and the windows that training cuts from it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from recbole_leaprec.core.categories import ItemCategories
from recbole_leaprec.core.preference import preference_after, preference_along


@dataclass(frozen=True)
class Sequences:
    """Each user's items once, oldest first. Those of user u are `items[offsets[u]:offsets[u+1]]`.

    Example:
        >>> sequences = Sequences(items=torch.tensor([7, 8, 9, 5]), offsets=torch.tensor([0, 3, 4]))
        >>> sequences.before(torch.tensor([2, 3]), length=2)[0].tolist()
        [[7, 8], [0, 0]]
    """

    items: Tensor
    offsets: Tensor

    def to(self, device: torch.device | str) -> Sequences:
        """The same sequences on `device`."""
        return Sequences(self.items.to(device), self.offsets.to(device))

    def user_of(self, position: Tensor) -> Tensor:
        """The user of the item at each flat position."""
        return torch.searchsorted(self.offsets, position, right=True) - 1

    @property
    def training_end(self) -> Tensor:
        """The end of each user's training items, `[U]`. The two items after it are for validation and test."""
        return self.offsets[1:] - 2

    def last_in_training(self, position: Tensor) -> Tensor:
        """Each flat position, or that of the user's last training item if it is smaller."""
        return torch.minimum(position, self.training_end[self.user_of(position)] - 1)

    def before(self, target: Tensor, length: int) -> tuple[Tensor, Tensor]:
        """The last `length` items before each flat position, `[B, length]`, zeros at the end; and their number, `[B]`."""
        start = torch.maximum(self.offsets[self.user_of(target)], target - length)
        count = target - start
        place = torch.arange(length)
        items = self.items[(start[:, None] + place).clamp_max(len(self.items) - 1)]
        return items * (place < count[:, None]), count

    def latest(self, target: Tensor, length: int) -> tuple[Tensor, Tensor]:
        """The last `length` items before each flat position, `[B, length]`, zeros in front.

        Also how many items there are before it in all, `[B]`.
        """
        start = self.offsets[self.user_of(target)]
        place = target[:, None] - length + torch.arange(length)
        return self.items[place.clamp_min(0)] * (place >= start[:, None]), target - start

    def history(self, target: Tensor) -> tuple[Tensor, Tensor]:
        """All items of the user before each flat position, as pairs (row, item)."""
        start = self.offsets[self.user_of(target)]
        count = target - start
        rows = torch.repeat_interleave(torch.arange(len(target)), count)
        within = torch.arange(len(rows)) - torch.repeat_interleave(count.cumsum(0) - count, count)
        return rows, self.items[start[rows] + within]

    def preference(self, position: Tensor, categories: ItemCategories, alpha: float) -> Tensor:
        """The preference after each of these flat positions, from the user's whole history (Eq. 2), `[..., C]`.

        Args:
            position: `[B]`; or `[B, L]`, where each row holds consecutive positions. The values at positions after the
                user's last item have no meaning.
        """
        start = position if position.dim() == 1 else position[:, 0].contiguous()
        user = self.user_of(start)
        begin, end = self.offsets[user], self.offsets[user + 1]
        if position.dim() == 1:
            return preference_after(self.items, begin, position + 1, categories, alpha)
        return preference_along(self.items, begin, start, end, position.shape[1], categories, alpha)


@dataclass(frozen=True)
class Windows:
    """Pieces of sequences with at most `length` inputs each. Every target is trained exactly once.

    The input at flat position n has the item at n+1 as its target. A sequence of more than `length` inputs is cut. Every
    piece after the first repeats the last `length // 2` inputs of the piece before it as context, without training them
    again. So a target sees its whole past, or at least `length // 2` items of it.

    Attributes:
        start, stop: `[W]`, the inputs are at flat positions start to stop-1.
        first: `[W]`, inputs before it are only context.
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
