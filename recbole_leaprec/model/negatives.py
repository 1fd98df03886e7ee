"""The negatives that all positions of a batch share, for the softmax loss."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from recbole_leaprec.settings.keys import ALL_NEGATIVES


class SharedNegatives:
    """`number` items drawn anew for every batch, or the whole catalogue.

    Uniform draws are without replacement. Weighted draws are with replacement, and an item counts as often as it is drawn,
    each time with the weight u / q, where q is the item's probability and u that of uniform draws. So the expected sum over
    the negatives is that of uniform draws, for every q.
    """

    def __init__(self, n_items: int, number: int | Literal["all"], weights: Tensor | None = None):
        """`weights [n_items]`: probabilities are proportional to them; None for uniform draws. Item 0 is never drawn."""
        self.n_items = n_items
        self.number = n_items - 1 if number == ALL_NEGATIVES else min(number, n_items - 1)
        self._share = None
        if weights is not None and self.number < n_items - 1:
            self._share = weights[1:].double() / weights[1:].sum()

    def draw(self, device: torch.device | str = "cpu") -> tuple[Tensor, Tensor | None]:
        """`(items [M], corrections [M])`: each item once, and a number to add to its score; None if no score needs one."""
        if self.number == self.n_items - 1:
            return torch.arange(1, self.n_items, device=device), None
        if self._share is None:
            return torch.randperm(self.n_items - 1, device=device)[: self.number] + 1, None
        drawn = torch.multinomial(self._share, self.number, replacement=True)
        drawn, times = drawn.unique(return_counts=True)
        correction = (times / (self._share[drawn] * (self.n_items - 1))).log()
        return (drawn + 1).to(device), correction.float().to(device)

    def positives_among(self, positive: Tensor, items: Tensor) -> tuple[Tensor, Tensor]:
        """`(position, column)` of every positive `[T]` that is one of the drawn items `[M]`."""
        column_of = torch.full((self.n_items,), -1, device=positive.device)
        column_of[items] = torch.arange(len(items), device=positive.device)
        column = column_of[positive]
        position = (column >= 0).nonzero()[:, 0]
        return position, column[position]


def shared_negatives(config: Any, dataset: Any) -> SharedNegatives:
    """The negatives according to `num_negatives` and RecBole's `train_neg_sample_args`; `dataset` is the training split."""
    drawn = config["train_neg_sample_args"]
    weights = None
    if drawn["distribution"] == "popularity":
        count = torch.bincount(dataset.inter_feat[dataset.iid_field], minlength=dataset.item_num)
        weights = count.clamp_min(1).double() ** drawn["alpha"]  # an item that is not in training can be drawn, too
    return SharedNegatives(dataset.item_num, config["num_negatives"], weights)
