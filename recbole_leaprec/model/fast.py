"""What RecBole's models spend most of their time on, computed faster; parameters and their names stay as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from recbole.model.layers import FeedForward, MultiHeadAttention, TransformerEncoder
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import gelu, linear, scaled_dot_product_attention


def speed_up(model: nn.Module) -> None:
    """Put the modules below in the place of PyTorch's and RecBole's, in the model and everything in it."""
    for module in list(model.modules()):
        for name, child in module.named_children():
            if type(child) is nn.Dropout:
                setattr(module, name, FastDropout(child.p))
            elif type(child) is TransformerEncoder:
                setattr(module, name, FusedEncoder(child))


class FastDropout(nn.Dropout):
    """Dropout that draws 16 random bits per element: PyTorch's takes several times as long on a CPU.

    The bits come from a generator that torch's own seeds, so that a seed still fixes everything.
    """

    worker = 0
    """Which of several workers this is that train together with the same seeds: they must not drop the same."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or not self.draws_itself(x.device):
            return super().forward(x)
        return x * self.kept(x.shape).to(x.dtype).div_(1 - self.p)

    def draws_itself(self, device: torch.device) -> bool:
        """Whether this class does better than PyTorch's."""
        return device.type == "cpu" and 0 < self.p < 0.999

    def kept(self, shape: torch.Size) -> Tensor:
        """Which elements stay: each with probability 1-p."""
        seed = int(torch.randint(2**62, ())) ^ self.worker
        words = np.random.SFC64(seed).random_raw(-(-shape.numel() // 4))
        bits = torch.from_numpy(words.view(np.int16))[: shape.numel()].view(shape)
        return bits >= round(self.p * 2**16) - 2**15


class FusedEncoder(nn.Module):
    """RecBole's TransformerEncoder in fewer and larger steps; a mask of None stands for one that hides what comes after."""

    def __init__(self, encoder: TransformerEncoder):
        super().__init__()
        self.layer = encoder.layer

    def forward(self, hidden: Tensor, attention_mask: Tensor | None, output_all_encoded_layers: bool = True) -> list[Tensor]:
        outputs = []
        for layer in self.layer:
            hidden = _feed_forward(layer.feed_forward, _attend(layer.multi_head_attention, hidden, attention_mask))
            outputs.append(hidden)
        return outputs if output_all_encoded_layers else outputs[-1:]


def _attend(attention: MultiHeadAttention, x: Tensor, mask: Tensor | None) -> Tensor:
    parts = (attention.query, attention.key, attention.value)
    together = linear(x, torch.cat([part.weight for part in parts]), torch.cat([part.bias for part in parts]))
    heads = together.view(*x.shape[:2], 3, attention.num_attention_heads, attention.attention_head_size)
    query, key, value = heads.permute(2, 0, 3, 1, 4)
    if attention.training and attention.attn_dropout.p:
        mixed = _attend_with_dropout(attention, query, key, value, mask)
    else:
        mixed = scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=mask is None)
    output = attention.dense(mixed.transpose(1, 2).flatten(2))
    return attention.LayerNorm(attention.out_dropout(output) + x)


def _attend_with_dropout(
    attention: MultiHeadAttention, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
) -> Tensor:
    """PyTorch's fused attention has no dropout on a CPU."""
    rows, heads, length, _ = query.shape
    query, dropout = query / attention.sqrt_attention_head_size, attention.attn_dropout
    if mask is None:
        mask = torch.full((1, 1, length, length), -torch.inf, device=query.device).triu(1)
    shape = torch.Size((rows, heads, length, length))
    in_cache = shape.numel() <= _IN_CACHE or torch.is_autocast_enabled(query.device.type)
    if in_cache or not isinstance(dropout, FastDropout) or not dropout.draws_itself(query.device):
        return dropout((query @ key.transpose(2, 3) + mask).softmax(-1)) @ value
    return _InPieces.apply(query, key, value, mask.expand(rows, -1, -1, -1), dropout.kept(shape), 1 - dropout.p)


_IN_CACHE = 2**20
"""Weights of attention that a processor's cache can hold, or nearly."""


class _InPieces(torch.autograd.Function):
    """`dropout(softmax(query @ key + mask)) @ value` for some rows at a time, worked out again on the way back.

    Long sequences have more weights than fit into a cache. In pieces that do, working them out twice takes no longer than
    reading them from memory, where they would be most of what a training holds; results are the same to the last bit.
    """

    @staticmethod
    def forward(context: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor, kept: Tensor, rate: float) -> Tensor:
        context.save_for_backward(query, key, value, mask, kept)
        context.rate = rate
        output = torch.empty_like(value)
        for rows in _pieces(kept):
            weights = _weights(query[rows], key[rows], mask[rows])
            output[rows] = weights.mul_(kept[rows].to(weights.dtype).div_(rate)) @ value[rows]
        return output

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, mask, kept = context.saved_tensors
        of_query, of_key, of_value = (torch.empty_like(part) for part in (query, key, value))
        for rows in _pieces(kept):
            weights = _weights(query[rows], key[rows], mask[rows])
            scale = kept[rows].to(weights.dtype).div_(context.rate)
            of_value[rows] = (weights * scale).transpose(2, 3) @ gradient[rows]
            of_weights = (gradient[rows] @ value[rows].transpose(2, 3)).mul_(scale)
            of_scores = torch._softmax_backward_data(of_weights, weights, -1, weights.dtype)
            of_query[rows], of_key[rows] = of_scores @ key[rows], of_scores.transpose(2, 3) @ query[rows]
        return of_query, of_key, of_value, None, None, None


def _weights(query: Tensor, key: Tensor, mask: Tensor) -> Tensor:
    return (query @ key.transpose(2, 3)).add_(mask).softmax(-1)


def _pieces(kept: Tensor) -> list[slice]:
    """Rows of `kept [B, H, L, L]` that fit into a cache together."""
    some = max(1, _IN_CACHE // (2 * kept[0].numel()))
    return [slice(begin, begin + some) for begin in range(0, len(kept), some)]


def _feed_forward(layer: FeedForward, x: Tensor) -> Tensor:
    activation = layer.intermediate_act_fn
    if activation == layer.gelu:
        activation = gelu
    return layer.LayerNorm(layer.dropout(layer.dense_2(activation(layer.dense_1(x)))) + x)
