"""Caser with the calibration-disentangled loss."""

from __future__ import annotations

from typing import Any

import torch
from recbole.model.sequential_recommender import Caser
from torch import Tensor
from torch.nn.functional import max_pool1d, pad

from recbole_leaprec.model.all_positions import AllPositionsMixin
from recbole_leaprec.model.cd_mixin import ConfigWith


class CaserCD(AllPositionsMixin, Caser):
    """RecBole's Caser trained on `L_BPR + gamma L_CD-BPR`, on windows of the last `caser_window` items.

    RecBole's Caser convolves over the whole sequence, with one filter size per length up to MAX_ITEM_LIST_LENGTH; RecBole
    advises a length of ten. Here, as in Caser's own paper, the input is a short window that slides over the sequence. Short
    windows are padded on the left.
    """

    def __init__(self, config, dataset):
        super().__init__(ConfigWith(config, MAX_ITEM_LIST_LENGTH=config["caser_window"]), dataset)

    def all_windows(self, user: Tensor, item_seq: Tensor) -> Tensor:
        """The output of `forward` for the window that ends at each position: `[B, H], [B, L] -> [B, L, H]`.

        Overlapping windows share their convolutions: the filters slide once over the sequence. The maximum of a horizontal
        filter is taken over the places where it lies inside the window.
        """
        window = self.max_seq_length
        embedded = self.item_embedding(pad(item_seq, (window - 1, 0))).unsqueeze(1)
        vertical = self.conv_v(embedded).transpose(1, 2).flatten(2)
        horizontal = [
            max_pool1d(self.ac_conv(conv(embedded).squeeze(3)), window - height, stride=1).transpose(1, 2)
            for height, conv in enumerate(self.conv_h)
        ]
        z = self.ac_fc(self.fc1(self.dropout(torch.cat([vertical, *horizontal], -1))))
        user_embedded = self.user_embedding(user)[:, None].expand(-1, item_seq.shape[1], -1)
        return self.ac_fc(self.fc2(torch.cat([z, user_embedded], -1)))

    def encode(self, interaction: Any) -> tuple[Tensor, Tensor]:
        targets = interaction[self.POS_ITEM_ID]
        trained = targets != 0
        if targets.dim() == 1:
            return self._last(interaction)[trained], trained
        return self.all_windows(interaction[self.USER_ID], interaction[self.ITEM_SEQ])[trained], trained

    def regularization(self) -> Tensor:
        weights = [
            self.user_embedding.weight,
            self.item_embedding.weight,
            self.conv_v.weight,
            self.fc1.weight,
            self.fc2.weight,
        ]
        return self.reg_weight * self.reg_loss(weights) + self.reg_loss_conv_h()

    def full_sort_predict(self, interaction: Any) -> Tensor:
        return self._last(interaction) @ self.item_embedding.weight.T

    def predict(self, interaction: Any) -> Tensor:
        return (self._last(interaction) * self.item_vectors(interaction[self.ITEM_ID])).sum(-1)

    def _last(self, interaction: Any) -> Tensor:
        """The output of RecBole's `forward` for the last window of each sequence."""
        windows = pad(interaction[self.ITEM_SEQ], (self.max_seq_length - 1, 0)).unfold(1, self.max_seq_length, 1)
        last = interaction[self.ITEM_SEQ_LEN] - 1
        return self.forward(interaction[self.USER_ID], windows[torch.arange(len(last), device=last.device), last])
