"""Trains all positions of a sequence in one pass."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from recbole_leaprec.model.backbone import Backbone
from recbole_leaprec.model.cd_mixin import CalibrationDisentangledMixin, InnerProducts


class AllPrefixesMixin(Backbone):
    """Lets a RecBole model encode all prefixes in one pass.

    The model's `forward(item_seq, item_seq_len)` must end in `gather_indexes`. With one index per row, that returns the last
    position; with T indices per row, all T positions.
    """

    def gather_indexes(self, output: Tensor, gather_index: Tensor) -> Tensor:
        """The vectors of `output [B, L, H]` at the given positions: `[B] -> [B, H]`, `[B, T] -> [B, T, H]`."""
        if gather_index.dim() == 1:
            return super().gather_indexes(output, gather_index)
        return output.gather(1, gather_index.unsqueeze(-1).expand(-1, -1, output.shape[-1]))

    def all_prefixes(self, inputs: Tensor) -> Tensor:
        """The output of `forward` for the first item, the first two items, and so on: `[B, L] -> [B, L, H]`."""
        return self.forward(inputs, torch.arange(1, inputs.shape[1] + 1, device=inputs.device).expand_as(inputs))


class AllPositionsMixin(AllPrefixesMixin, CalibrationDisentangledMixin):
    """The CD loss at every position of a sequence in one pass: `class SASRecCD(AllPositionsMixin, SASRec)`.

    A model that encodes positions in another way overrides `encode`. RecBole's one row per prefix works, too
    (`train_positions: last`), but its training time is multiplied by the length of the sequences.
    """

    train_positions = "all"

    def encode(self, interaction: Any) -> tuple[Tensor, Tensor]:
        """`(output [T, H], trained)`: the output for each trained target, and which targets of the batch are trained."""
        inputs, targets = interaction[self.ITEM_SEQ], interaction[self.POS_ITEM_ID]
        trained = targets != 0
        if targets.dim() == 1:  # one row per prefix: the target comes after the last item
            return self.forward(inputs, interaction[self.ITEM_SEQ_LEN])[trained], trained
        return self.all_prefixes(inputs)[trained], trained

    def item_vectors(self, items: Tensor) -> Tensor:
        """The vectors `[..., H]` of items `[...]`. A score is the inner product with the `output` of `encode`."""
        return self.item_embedding(items)

    def regularization(self) -> Tensor | float:
        """A regularization term that is added to the loss."""
        return 0.0

    def calculate_loss(self, interaction: Any) -> Tensor:
        output, trained = self.encode(interaction)
        loss = self.ranking_loss(InnerProducts(output, self.item_vectors), interaction, trained)
        return loss + self.regularization()
