"""One pass over a sequence trains all its positions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from recbole_leaprec.model.backbone import Backbone
from recbole_leaprec.model.cd_mixin import CalibrationDisentangledMixin, InnerProducts


class AllPrefixesMixin(Backbone):
    """Lets a RecBole model whose `forward(item_seq, item_seq_len)` ends in `gather_indexes` encode all prefixes in one pass.

    With one index per row `gather_indexes` gives the last position, with T indices per row all T of them.
    """

    def gather_indexes(self, output: Tensor, gather_index: Tensor) -> Tensor:
        """The vectors of `output [B, L, H]` at the given positions: `[B] -> [B, H]`, `[B, T] -> [B, T, H]`."""
        if gather_index.dim() == 1:
            return super().gather_indexes(output, gather_index)
        return output.gather(1, gather_index.unsqueeze(-1).expand(-1, -1, output.shape[-1]))

    def all_prefixes(self, inputs: Tensor) -> Tensor:
        """`[B, L] -> [B, L, H]`: what `forward` makes of the first item, the first two, and so on."""
        return self.forward(inputs, torch.arange(1, inputs.shape[1] + 1, device=inputs.device).expand_as(inputs))


class AllPositionsMixin(AllPrefixesMixin, CalibrationDisentangledMixin):
    """The CD loss at every position of a sequence in one pass: `class SASRecCD(AllPositionsMixin, SASRec)`.

    A model that encodes positions in another way says how in `encode`. RecBole's one row per prefix works too
    (`train_positions: last`), and takes as many times longer as sequences are long.
    """

    train_positions = "all"

    def encode(self, interaction: Any) -> tuple[Tensor, Tensor]:
        """`(output [T, H], trained)`: what predicts each target that is trained, and which of the batch's targets these are."""
        inputs, targets = interaction[self.ITEM_SEQ], interaction[self.POS_ITEM_ID]
        trained = targets != 0
        if targets.dim() == 1:  # one row per prefix: the target comes after the last item
            return self.forward(inputs, interaction[self.ITEM_SEQ_LEN])[trained], trained
        return self.all_prefixes(inputs)[trained], trained

    def item_vectors(self, items: Tensor) -> Tensor:
        """`[..., H]`: what `output` of `encode` is multiplied by to score items `[...]`."""
        return self.item_embedding(items)

    def regularization(self) -> Tensor | float:
        """What the model adds to its loss."""
        return 0.0

    def calculate_loss(self, interaction: Any) -> Tensor:
        output, trained = self.encode(interaction)
        loss = self.ranking_loss(InnerProducts(output, self.item_vectors), interaction, trained)
        return loss + self.regularization()
