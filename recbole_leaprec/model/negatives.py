"""Negatives that the positions of a batch share, for the softmax loss."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from recbole_leaprec.settings.keys import ALL_NEGATIVES


class SharedNegatives:
    """`number` items drawn anew for every batch, or the whole catalogue.

    Even draws are without replacement. Uneven ones are with it, and an item counts as often as it is drawn, each time with
    the weight u / q: q is the item's share of the draws, u the share that every item has in even ones. On average, then,
    the sum over the negatives is that of even draws, whatever q.
    """

    def __init__(self, n_items: int, number: int | Literal["all"], weights: Tensor | None = None):
        """`weights [n_items]`: how often each item is drawn, in proportion; None for evenly. Item 0 is never drawn."""
        self.n_items = n_items
        self.number = n_items - 1 if number == ALL_NEGATIVES else min(number, n_items - 1)
        self._share = None
        if weights is not None and self.number < n_items - 1:
            self._share = weights[1:].double() / weights[1:].sum()

    def draw(self, device: torch.device | str = "cpu") -> tuple[Tensor, Tensor | None]:
        """`(items [M], what to add to their scores [M])`, each item once; None where there is nothing to add."""
        if self.number == self.n_items - 1:
            return torch.arange(1, self.n_items, device=device), None
        if self._share is None:
            return torch.randperm(self.n_items - 1, device=device)[: self.number] + 1, None
        drawn = torch.multinomial(self._share, self.number, replacement=True)
        drawn, times = drawn.unique(return_counts=True)
        correction = (times / (self._share[drawn] * (self.n_items - 1))).log()
        return (drawn + 1).to(device), correction.float().to(device)

    def positives_among(self, positive: Tensor, items: Tensor) -> tuple[Tensor, Tensor]:
        """`(position, column)` of every positive `[T]` that is one of the items drawn `[M]`."""
        column_of = torch.full((self.n_items,), -1, device=positive.device)
        column_of[items] = torch.arange(len(items), device=positive.device)
        column = column_of[positive]
        position = (column >= 0).nonzero()[:, 0]
        return position, column[position]


def shared_negatives(config: Any, dataset: Any) -> SharedNegatives:
    """As `num_negatives` and RecBole's `train_neg_sample_args` say; `dataset` is the training split."""
    drawn = config["train_neg_sample_args"]
    weights = None
    if drawn["distribution"] == "popularity":
        count = torch.bincount(dataset.inter_feat[dataset.iid_field], minlength=dataset.item_num)
        weights = count.clamp_min(1).double() ** drawn["alpha"]  # an item that training lacks can be drawn, too
    return SharedNegatives(dataset.item_num, config["num_negatives"], weights)
