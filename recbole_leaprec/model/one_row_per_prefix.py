"""The calibration-disentangled loss for any sequential RecBole model, trained in RecBole's way (one row per prefix)."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from recbole_leaprec.model.cd_mixin import CalibrationDisentangledMixin


class OneRowPerPrefixMixin(CalibrationDisentangledMixin):
    """Place it before the RecBole class: `class NARMCD(OneRowPerPrefixMixin, NARM)`.

    It replaces only the model's loss function, by Eq. 8. This gets the same arguments: the scores of all items, or those of
    the positive and the negative item. The rest of the loss, such as regularisation, stays.
    """

    def calculate_loss(self, interaction: Any) -> Tensor:
        """RecBole's `calculate_loss`, with its loss function replaced by one that knows the batch."""
        this_batch = copy.copy(self)  # the same parameters
        this_batch._modules = dict(self._modules)
        for name in ("loss_fct", "bpr_loss"):  # RecBole's two names of the loss function
            if hasattr(self, name):
                setattr(this_batch, name, _BatchLoss(self, interaction))
        return super(CalibrationDisentangledMixin, this_batch).calculate_loss(interaction)


class _BatchLoss(nn.Module):
    """The loss function that the RecBole model calls, with the scores `[B, I]` and the positives, or with r_i and r_j."""

    def __init__(self, model: OneRowPerPrefixMixin, interaction: Any):
        super().__init__()
        self._of = (model, interaction)  # in a tuple, so that the model does not become a submodule of its own loss

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
