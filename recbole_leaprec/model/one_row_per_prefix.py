"""The calibration-disentangled loss for any sequential model of RecBole, trained as RecBole trains it."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from recbole_leaprec.model.cd_mixin import CalibrationDisentangledMixin


class OneRowPerPrefixMixin(CalibrationDisentangledMixin):
    """Goes before the RecBole class: `class NARMCD(OneRowPerPrefixMixin, NARM)`.

    The model keeps the rest of its loss, such as regularisation: what it hands to its loss function, the scores of all items or
    those of the positive and the negative item, is ranked by Eq. 8 instead.
    """

    def calculate_loss(self, interaction: Any) -> Tensor:
        """RecBole's, with a loss function that knows the batch in the place of RecBole's own."""
        this_batch = copy.copy(self)  # the same parameters
        this_batch._modules = dict(self._modules)
        for name in ("loss_fct", "bpr_loss"):  # RecBole's two names for it
            if hasattr(self, name):
                setattr(this_batch, name, _BatchLoss(self, interaction))
        return super(CalibrationDisentangledMixin, this_batch).calculate_loss(interaction)


class _BatchLoss(nn.Module):
    """What RecBole's model calls with the scores of all items `[B, I]` and the positives, or with r_i and r_j."""

    def __init__(self, model: OneRowPerPrefixMixin, interaction: Any):
        super().__init__()
        self._of = (model, interaction)  # in a tuple: the model is no part of its own loss

    def forward(self, first: Tensor, second: Tensor, **_: Any) -> Tensor:
        model, interaction = self._of
        in_pairs = second.is_floating_point()
        if in_pairs and not model.shares_negatives:
            pairs = torch.stack([first.flatten(), second.flatten()], -1)
            return model.ranking_loss(lambda items: pairs, interaction)
        scores = model.full_sort_predict(interaction).view(len(first), -1) if in_pairs else first
        return model.ranking_loss(
            lambda items: scores[:, items] if items.dim() == 1 else scores.gather(1, items), interaction
        )
