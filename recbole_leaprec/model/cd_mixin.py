"""Calibration-disentangled learning for RecBole's sequential recommenders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from recbole.utils import InputType
from torch import Tensor

from recbole_leaprec.loss import bpr_loss, cd_bpr_loss

PREFERENCE = "preference"
"""Field of a batch that the trainer injects: the preference before each target, `[..., C]`."""

Score = Callable[[Tensor], Tensor]
"""Relevance r of items at the T positions that are trained: `items [T, M] -> [T, M]`."""


class CalibrationDisentangledMixin:
    """Puts `bpr_weight * L_BPR + gamma * L_CD-BPR` (Eq. 8) in the place of a RecBole model's loss function.

    Goes before the RecBole class: `class NARMCD(CalibrationDisentangledMixin, NARM)`. The model trains as RecBole trains it,
    one row a prefix, and keeps the rest of its loss, such as regularisation: what it hands to its loss function, the scores of
    all items or those of the positive and the negative item, is ranked by Eq. 8 instead. `AllPositionsMixin` is for models
    that can do better.
    """

    train_positions = "last"
    input_type = InputType.PAIRWISE  # batches bring a negative

    def __init__(self, config, dataset):
        # Models that can hand over the scores of all items do; some of RecBole's can do nothing else.
        in_pairs = getattr(super(), "input_type", None) == InputType.PAIRWISE
        super().__init__(ConfigWith(config, loss_type="BPR" if in_pairs else "CE"), dataset)
        self.gamma, self.bpr_weight, self.beta = config["gamma"], config["bpr_weight"], config["beta"]
        self.preference_alpha = config["alpha"] if self.gamma else None
        self.categories = dataset.categories.to(config["device"])
        self._batch = None
        for name in ("loss_fct", "bpr_loss"):  # RecBole's two names for it
            if hasattr(self, name):
                delattr(self, name)
                setattr(self, name, self._rank)

    def calculate_loss(self, interaction) -> Tensor:
        self._batch = interaction
        try:
            return super().calculate_loss(interaction)
        finally:
            self._batch = None

    def _rank(self, first: Tensor, second: Tensor, **_: Any) -> Tensor:
        """What RecBole's model calls with scores of all items `[B, I]` and the positives, or with r_i and r_j."""
        if self._batch is None:  # some models work out a loss when they predict, too
            return first.new_zeros(())
        positive, negative = self._batch[self.POS_ITEM_ID], self._batch[self.NEG_ITEM_ID]
        if second.is_floating_point():
            pairs = torch.stack([first.flatten(), second.flatten()], -1)
            return self.ranking_loss(lambda items: pairs, positive, negative, self._preference())
        return self.ranking_loss(lambda items: first.gather(1, items), positive, negative, self._preference())

    def _preference(self) -> Tensor | None:
        return self._batch[PREFERENCE] if self.gamma else None

    def ranking_loss(self, score: Score, positive: Tensor, negative: Tensor, p: Tensor | None) -> Tensor:
        """Eq. 8: `bpr_weight * L_BPR + gamma * L_CD-BPR`, means over the T positions that are trained.

        Args:
            positive, negative: `[T]` items i and j.
            p: `[T, C]` the sequential preference p_{t-1} before each position; needed if gamma is not 0.
        """
        items = torch.stack([positive, negative], -1)
        r_positive, r_negative = score(items).unbind(-1)
        loss = r_positive.new_zeros(())
        if self.bpr_weight:
            loss = loss + self.bpr_weight * bpr_loss(r_positive, r_negative)
        if self.gamma:
            kl = self.categories.kl(p, items, self.beta)
            loss = loss + self.gamma * cd_bpr_loss(r_positive, r_negative, kl[:, 0], kl[:, 1])
        return loss


class ConfigWith:
    """A config with some values changed, for the constructor of a model."""

    def __init__(self, config, **changes: Any):
        self._config, self._changes = config, changes

    def __getitem__(self, key: str) -> Any:
        return self._changes[key] if key in self._changes else self._config[key]

    def __contains__(self, key: str) -> bool:
        return key in self._changes or key in self._config

    def __getattr__(self, name: str) -> Any:
        return getattr(self._config, name)
