"""BERT4Rec with the calibration-disentangled loss."""

from __future__ import annotations

from typing import Any

import torch
from recbole.model.sequential_recommender import BERT4Rec
from torch import Tensor

from recbole_leaprec.model.all_positions import AllPositionsMixin


class BERT4RecCD(AllPositionsMixin, BERT4Rec):
    """RecBole's BERT4Rec trained on `L_BPR + gamma L_CD-BPR` at the masked positions of its cloze task.

    A batch has the form in which RecBole tests the model: a sequence without its first item, with the last place masked. A
    share `ft_ratio` of the sequences is trained in exactly this form. In the others, each place is masked with probability
    `mask_ratio`, and at least one is masked. The preference p is that before the masked position, though the model sees
    items after it.
    """

    def __init__(self, config, dataset):
        super().__init__(config, dataset)
        self.ft_ratio = config["ft_ratio"]

    def encode(self, interaction: Any) -> tuple[Tensor, Tensor]:
        inputs, targets = interaction[self.ITEM_SEQ], interaction[self.POS_ITEM_ID]
        if targets.dim() == 1:
            item_seq = self.reconstruct_test_data(inputs, interaction[self.ITEM_SEQ_LEN])
            output = self.gather_indexes(self.forward(item_seq), interaction[self.ITEM_SEQ_LEN] - 1)
            return _with_one(output), targets != 0
        last = (torch.arange(len(inputs), device=inputs.device), interaction[self.ITEM_SEQ_LEN] - 1)
        tokens = torch.cat([inputs[:, 1:], torch.zeros_like(inputs[:, :1])], 1)
        tokens[last] = targets[last]
        masked = self._mask(targets, last)
        return _with_one(self.forward(tokens.masked_fill(masked, self.mask_token))[masked]), masked

    def _mask(self, targets: Tensor, last: tuple[Tensor, Tensor]) -> Tensor:
        """Which targets are masked and predicted, `[B, L]`."""
        masked = (torch.rand(targets.shape, device=targets.device) < self.mask_ratio) & (targets != 0)
        only_last = torch.rand(len(targets), device=targets.device) < self.ft_ratio
        masked &= ~only_last[:, None]
        masked[last] |= ~masked.any(1)
        return masked

    def item_vectors(self, items: Tensor) -> Tensor:
        """The items' vectors with the bias as one more dimension, in which every output is 1."""
        return torch.cat([super().item_vectors(items), self.output_bias[items].unsqueeze(-1)], -1)


def _with_one(output: Tensor) -> Tensor:
    return torch.cat([output, output.new_ones(*output.shape[:-1], 1)], -1)
