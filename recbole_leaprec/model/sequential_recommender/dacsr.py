"""DACSR, the end-to-end competitor: two encoders learn accuracy and calibration, without reranking."""

from __future__ import annotations

from typing import Any

import torch
from recbole.model.abstract_recommender import SequentialRecommender
from recbole.model.sequential_recommender import SASRec
from recbole.utils import InputType
from torch import Tensor, nn

from recbole_leaprec.core.calibration import kl_divergence
from recbole_leaprec.core.loss import bpr_loss
from recbole_leaprec.model.all_positions import AllPrefixesMixin
from recbole_leaprec.model.cd_mixin import PREFERENCE, ConfigWith
from recbole_leaprec.model.fast import speed_up


class _Encoder(AllPrefixesMixin, SASRec):
    """A SASRec without a loss of its own."""


class DACSR(SequentialRecommender):
    """Two SASRec encoders, one for accuracy and one for calibration. Items are ranked by their aggregate.

    The loss is `(1 - dacsr_lambda) * accuracy + dacsr_lambda * calibration`. The accuracy loss is on the accuracy encoder
    and the aggregate, the calibration loss on the calibration encoder and the aggregate. The calibration loss is
    KL(p || q~), where p is the static preference (alpha = 1), and q the category mix of all items, weighted by the softmax
    of their scores.

    No code of the authors is public. These choices are ours:

    - the encoders share only the item embeddings;
    - the aggregate is `g * accuracy + (1 - g) * calibration`, with a gate g per dimension that is computed from both;
    - the accuracy loss is BPR on all positions, as for the models that it is compared with;
    - q is smoothed as in Eq. 4, so that the loss is finite;
    - the calibration loss is taken at one random position per sequence, drawn anew each time: for all positions, the
      scores of all items would not fit into memory.
    """

    input_type = InputType.PAIRWISE
    train_positions = "all"
    all_positions_only = True
    preference_alpha = 1.0

    def __init__(self, config, dataset):
        super().__init__(config, dataset)
        self.weight, self.beta = config["dacsr_lambda"], config["beta"]
        self.accuracy, self.calibration = (_Encoder(ConfigWith(config, loss_type="CE"), dataset) for _ in range(2))
        self.item_embedding = self.calibration.item_embedding = self.accuracy.item_embedding
        hidden_size = config["hidden_size"]
        self.gate = nn.Linear(2 * hidden_size, hidden_size)
        speed_up(self)
        self.register_buffer(
            "distribution", dataset.categories.shares(torch.arange(dataset.item_num)).float(), persistent=False
        )

    def aggregate(self, accuracy: Tensor, calibration: Tensor) -> Tensor:
        gate = torch.sigmoid(self.gate(torch.cat([accuracy, calibration], -1)))
        return gate * accuracy + (1 - gate) * calibration

    def calculate_loss(self, interaction: Any) -> Tensor:
        inputs, targets = interaction[self.ITEM_SEQ], interaction[self.POS_ITEM_ID]
        trained = targets != 0
        for_accuracy, for_calibration = self.accuracy.all_prefixes(inputs), self.calibration.all_prefixes(inputs)
        both = self.aggregate(for_accuracy, for_calibration)
        positive, negative = (self.item_embedding(interaction[f][trained]) for f in (self.POS_ITEM_ID, self.NEG_ITEM_ID))
        accuracy = sum(
            bpr_loss((output[trained] * positive).sum(-1), (output[trained] * negative).sum(-1))
            for output in (for_accuracy, both)
        )
        place = torch.multinomial(trained.float(), 1)
        p = interaction[PREFERENCE].gather(1, place[..., None].expand(-1, -1, self.distribution.shape[1]))[:, 0]
        calibration = sum(
            self.miscalibration(self.accuracy.gather_indexes(output, place)[:, 0], p) for output in (for_calibration, both)
        )
        return (1 - self.weight) * accuracy + self.weight * calibration

    def miscalibration(self, output: Tensor, p: Tensor) -> Tensor:
        """The mean KL(p || q~), where q is the category mix of the items that `output [B, H]` scores."""
        scores = (output @ self.item_embedding.weight.T)[:, 1:]  # without padding
        return kl_divergence(p, scores.softmax(-1) @ self.distribution[1:], self.beta).mean()

    def forward(self, item_seq: Tensor, item_seq_len: Tensor) -> Tensor:
        return self.aggregate(self.accuracy(item_seq, item_seq_len), self.calibration(item_seq, item_seq_len))

    def full_sort_predict(self, interaction: Any) -> Tensor:
        return self.forward(interaction[self.ITEM_SEQ], interaction[self.ITEM_SEQ_LEN]) @ self.item_embedding.weight.T

    def predict(self, interaction: Any) -> Tensor:
        output = self.forward(interaction[self.ITEM_SEQ], interaction[self.ITEM_SEQ_LEN])
        return (output * self.item_embedding(interaction[self.ITEM_ID])).sum(-1)
