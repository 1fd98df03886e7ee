"""Caser with the calibration-disentangled loss."""

from __future__ import annotations

import torch
from recbole.model.sequential_recommender import Caser
from torch import Tensor
from torch.nn.functional import pad

from recbole_leaprec.model.all_positions import AllPositionsMixin
from recbole_leaprec.model.cd_mixin import ConfigWith


class CaserCD(AllPositionsMixin, Caser):
    """RecBole's Caser trained on `L_BPR + gamma L_CD-BPR`, on windows of the last `caser_window` items.

    RecBole convolves over the whole sequence, with one filter size for each length up to MAX_ITEM_LIST_LENGTH, and advises a
    length of ten. Here, as in Caser's own paper, the input is a short window that slides over the sequence, filled up with
    padding on the left; the windows of a batch are cut out of its sequences when they are needed.
    """

    def __init__(self, config, dataset):
        super().__init__(ConfigWith(config, MAX_ITEM_LIST_LENGTH=config["caser_window"]), dataset)

    def windows(self, item_seq: Tensor) -> Tensor:
        """`[B, L] -> [B, L, window]`: the items up to each position, itself included."""
        return pad(item_seq, (self.max_seq_length - 1, 0)).unfold(1, self.max_seq_length, 1)

    def encode(self, interaction) -> tuple[Tensor, Tensor]:
        inputs, targets = interaction[self.ITEM_SEQ], interaction[self.POS_ITEM_ID]
        trained = targets != 0
        user = interaction[self.USER_ID]
        if targets.dim() == 1:
            return self.forward(user, self._last_window(interaction))[trained], trained
        return self.forward(user[:, None].expand_as(inputs)[trained], self.windows(inputs)[trained]), trained

    def regularization(self) -> Tensor:
        weights = [
            self.user_embedding.weight,
            self.item_embedding.weight,
            self.conv_v.weight,
            self.fc1.weight,
            self.fc2.weight,
        ]
        return self.reg_weight * self.reg_loss(weights) + self.reg_loss_conv_h()

    def full_sort_predict(self, interaction) -> Tensor:
        output = self.forward(interaction[self.USER_ID], self._last_window(interaction))
        return output @ self.item_embedding.weight.T

    def predict(self, interaction) -> Tensor:
        output = self.forward(interaction[self.USER_ID], self._last_window(interaction))
        return self.item_scores(output, interaction[self.ITEM_ID][:, None])[:, 0]

    def _last_window(self, interaction) -> Tensor:
        last = interaction[self.ITEM_SEQ_LEN] - 1
        return self.windows(interaction[self.ITEM_SEQ])[torch.arange(len(last), device=last.device), last]
