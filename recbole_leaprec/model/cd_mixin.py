"""Calibration-disentangled learning for RecBole's sequential recommenders."""

from __future__ import annotations

import torch
from torch import Tensor

from recbole_leaprec.loss import bpr_loss, cd_bpr_loss

PREFERENCE = "preference"
"""Field of a batch that the trainer injects: the sequential preference p_{t-1} before each target, `[..., C]`."""


class CalibrationDisentangledMixin:
    """Puts `bpr_weight * L_BPR + gamma * L_CD-BPR` (Eq. 8) in the place of a RecBole model's loss.

    Goes before the RecBole class: `class SASRecCD(CalibrationDisentangledMixin, SASRec)`. The model's `forward` must
    end in RecBole's `gather_indexes`, as that of most sequential models does; with one index a row it gives the last
    position, with T indices a row all T of them, which is how one pass trains every position of a sequence
    (`train_positions: all`).
    """

    train_positions = "all"

    def __init__(self, config, dataset):
        super().__init__(config, dataset)
        self.gamma, self.bpr_weight, self.beta = config["gamma"], config["bpr_weight"], config["beta"]
        self.categories = dataset.categories.to(config["device"])

    def gather_indexes(self, output: Tensor, gather_index: Tensor) -> Tensor:
        """The vectors of `output [B, L, H]` at the given positions: `[B] -> [B, H]`, `[B, T] -> [B, T, H]`."""
        if gather_index.dim() == 1:
            return super().gather_indexes(output, gather_index)
        return output.gather(1, gather_index.unsqueeze(-1).expand(-1, -1, output.shape[-1]))

    def item_scores(self, output: Tensor, items: Tensor) -> Tensor:
        """Relevance r of `items [T]` at the positions that `output [T, H]` encodes."""
        return (output * self.item_embedding(items)).sum(-1)

    def calculate_loss(self, interaction) -> Tensor:
        inputs, targets = interaction[self.ITEM_SEQ], interaction[self.POS_ITEM_ID]
        if targets.dim() == 1:  # one row a prefix: the target comes after the last item
            output = self.forward(inputs, interaction[self.ITEM_SEQ_LEN])
        else:
            output = self.forward(inputs, torch.arange(1, inputs.shape[1] + 1, device=inputs.device).expand_as(inputs))
        trained = targets != 0
        output, positive, negative = output[trained], targets[trained], interaction[self.NEG_ITEM_ID][trained]
        r_positive, r_negative = self.item_scores(output, positive), self.item_scores(output, negative)
        loss = r_positive.new_zeros(())
        if self.bpr_weight:
            loss = loss + self.bpr_weight * bpr_loss(r_positive, r_negative)
        if self.gamma:
            p = interaction[PREFERENCE][trained]
            kl = self.categories.kl(p, torch.stack([positive, negative], -1), self.beta)
            loss = loss + self.gamma * cd_bpr_loss(r_positive, r_negative, kl[:, 0], kl[:, 1])
        return loss
