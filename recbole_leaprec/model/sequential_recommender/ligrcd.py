"""A transformer with gated blocks and attention by distance, trained with the calibration-disentangled loss."""

from __future__ import annotations

import math
from typing import Any

import torch
from recbole.model.abstract_recommender import SequentialRecommender
from torch import Tensor, nn
from torch.nn.functional import embedding, embedding_bag, silu

from recbole_leaprec.core.categories import ItemCategories
from recbole_leaprec.model.all_positions import AllPositionsMixin
from recbole_leaprec.model.fast import EncoderInPieces


class _LiGR(SequentialRecommender):
    """Item vectors, scaled by the square root of their size, go through blocks with a norm before and a gate after.

    The blocks are those of LinkedIn's ranker LiGR: `x + sigmoid(W n(x)) * f(n(x))`, where f is attention or a SwiGLU
    feed-forward. Attention adds to each weight a learned number for the distance between the two items. With
    `category_features`, an item's vector is the sum of its own and the mean of its categories' vectors. This helps rare
    items.
    """

    item_embedding: Any

    def __init__(self, config: Any, dataset: Any):
        super().__init__(config, dataset)
        size, dropout = config["hidden_size"], config["hidden_dropout_prob"]
        self.hidden_size = size
        self.item_embedding = ItemEmbedding(size, dataset.categories, with_categories=config["category_features"])
        self.position_embedding = nn.Embedding(self.max_seq_length, size)
        self.dropout = nn.Dropout(dropout)
        self.encoder = EncoderInPieces(
            nn.ModuleList(
                GatedBlock(size, config["n_heads"], config["inner_size"], dropout, self.max_seq_length)
                for _ in range(config["n_layers"])
            ),
            config["n_heads"],
        )
        self.norm = nn.LayerNorm(size)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                module.weight.data.normal_(0, config["initializer_range"])
            if isinstance(module, nn.Linear) and module.bias is not None:
                module.bias.data.zero_()
        self.item_embedding.own.weight.data[0] = 0

    def forward(self, item_seq: Tensor, item_seq_len: Tensor) -> Tensor:
        """The output `[B, H]` that predicts the item after the last one of each row."""
        positions = self.position_embedding.weight[: item_seq.shape[1]]
        hidden = self.item_embedding(item_seq) * math.sqrt(self.hidden_size) + positions
        output = self.encoder(self.dropout(hidden), None, output_all_encoded_layers=False)[-1]
        return self.norm(self.gather_indexes(output, item_seq_len - 1))

    def predict(self, interaction: Any) -> Tensor:
        output = self.forward(interaction[self.ITEM_SEQ], interaction[self.ITEM_SEQ_LEN])
        return (output * self.item_embedding(interaction[self.ITEM_ID])).sum(1)

    def full_sort_predict(self, interaction: Any) -> Tensor:
        output = self.forward(interaction[self.ITEM_SEQ], interaction[self.ITEM_SEQ_LEN])
        return output @ self.item_embedding(torch.arange(self.n_items, device=output.device)).T


class ItemEmbedding(nn.Module):
    """Item vectors: each item's own vector, plus, with categories, the mean of its categories' vectors."""

    members: Tensor
    member_begin: Tensor
    profile_of_item: Tensor

    def __init__(self, size: int, categories: ItemCategories, with_categories: bool):
        super().__init__()
        self.own = nn.Embedding(categories.n_items, size, padding_idx=0)
        self.of_category = nn.Embedding(categories.n_categories, size) if with_categories else None
        for name in ("members", "member_begin", "profile_of_item"):
            self.register_buffer(name, getattr(categories, name), persistent=False)

    def forward(self, items: Tensor) -> Tensor:
        """The vectors of items, `[...] -> [..., H]`."""
        vectors = self.own(items)
        if self.of_category is None:
            return vectors
        of_profile = embedding_bag(self.members, self.of_category.weight, self.member_begin[:-1], mode="mean")
        return vectors + embedding(self.profile_of_item[items], of_profile)


class GatedBlock(nn.Module):
    """Attention and a feed-forward. Each takes the normalised input, is gated by it, and is added to the input."""

    def __init__(self, size: int, heads: int, inner_size: int, dropout: float, longest: int):
        super().__init__()
        self.heads = heads
        self.norm_before_attention, self.norm_before_feed_forward = nn.LayerNorm(size), nn.LayerNorm(size)
        self.query_key_value, self.mixed = nn.Linear(size, 3 * size, bias=False), nn.Linear(size, size)
        self.by_distance = nn.Parameter(torch.zeros(heads, longest))
        self.widened, self.narrowed = nn.Linear(size, 2 * inner_size), nn.Linear(inner_size, size)
        self.attention_gate, self.feed_forward_gate = nn.Linear(size, size), nn.Linear(size, size)
        self.attention_dropout, self.feed_forward_dropout = nn.Dropout(dropout), nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        normal = self.norm_before_attention(x)
        x = x + self.attention_dropout(self.attend(normal)) * self.attention_gate(normal).sigmoid()
        normal = self.norm_before_feed_forward(x)
        return x + self.feed_forward_dropout(self.feed_forward(normal)) * self.feed_forward_gate(normal).sigmoid()

    def attend(self, x: Tensor) -> Tensor:
        """Attention of each position to itself and to those before it."""
        rows, length, size = x.shape
        together = self.query_key_value(x).view(rows, length, 3, self.heads, size // self.heads)
        query, key, value = together.permute(2, 0, 3, 1, 4)
        weights = (query / math.sqrt(size // self.heads)) @ key.transpose(2, 3)
        mixed = (weights + self.bias(length)).softmax(-1) @ value
        return self.mixed(mixed.transpose(1, 2).flatten(2))

    def bias(self, length: int) -> Tensor:
        """What each pair's distance adds to its weight, minus infinity for later items, `[heads, L, L]`."""
        position = torch.arange(length, device=self.by_distance.device)
        distance = position[:, None] - position
        return self.by_distance[:, distance.clamp_min(0)].masked_fill(distance < 0, -torch.inf)

    def feed_forward(self, x: Tensor) -> Tensor:
        gate, value = self.widened(x).chunk(2, -1)
        return self.narrowed(silu(gate) * value)


class LiGRCD(AllPositionsMixin, _LiGR):
    """LiGR trained on `L_BPR + gamma L_CD-BPR`, every position of a sequence in one pass."""
