"""Cuts batches into the shares of workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from recbole.data.interaction import Interaction

WEIGHT = "weight_of_share"
"""A field of a share: its part of the batch's targets. The value is the same in every row."""


class BatchShares:
    """The batches of a loader, cut to the rows of one worker.

    Every worker draws the same batches, including negatives, so together they train on the same data as one process. With
    the weights of the shares, the sum of the workers' losses is the mean over all targets of the batch.
    """

    def __init__(self, batches: Any, target: str, rank: int, workers: int):
        """`target` is the field with the target items, 0 where there is none."""
        self._batches, self._target, self._rank, self._workers = batches, target, rank, workers

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[Interaction]:
        for batch in self._batches:
            yield cut_share(batch, self._target, self._rank, self._workers)


def cut_share(batch: Interaction, target: str, rank: int, workers: int) -> Interaction:
    """Every `workers`-th row of a batch from row `rank` on. If there is none, the first row with the weight 0.

    Example:
        >>> batch = Interaction({"item": torch.tensor([[5, 6], [7, 0], [8, 0]])})
        >>> share = cut_share(batch, "item", rank=0, workers=2)
        >>> share["item"].tolist(), share[WEIGHT].tolist()
        ([[5, 6], [8, 0]], [0.75, 0.75])
    """
    own = torch.arange(len(batch))[rank::workers]
    counted = batch[target] != 0
    weight = float(counted[own].sum() / counted.sum())
    share = batch[own if len(own) else torch.zeros(1, dtype=torch.long)]
    share.update(Interaction({WEIGHT: torch.full((len(share),), weight)}))
    return share
