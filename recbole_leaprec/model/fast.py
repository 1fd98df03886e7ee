"""What RecBole's models spend most of their time on, computed faster; parameters and their names stay as they are."""

from __future__ import annotations

import numpy as np
import torch
from recbole.model.layers import FeedForward, MultiHeadAttention, TransformerEncoder
from torch import Tensor, nn
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
        if not self.training or x.device.type != "cpu" or not 0 < self.p < 0.999:
            return super().forward(x)
        return x * self.mask(x)

    def mask(self, x: Tensor) -> Tensor:
        """What to multiply `x` by: 0 with probability p, otherwise 1/(1-p)."""
        seed = int(torch.randint(2**62, ())) ^ self.worker
        words = np.random.SFC64(seed).random_raw(-(-x.numel() // 4))
        bits = torch.from_numpy(words.view(np.int16))[: x.numel()].view(x.shape)
        kept = bits >= round(self.p * 2**16) - 2**15
        return kept.to(x.dtype).div_(1 - self.p)


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
    length = query.shape[2]
    scores = (query / attention.sqrt_attention_head_size) @ key.transpose(2, 3)
    if mask is None:
        mask = torch.full((length, length), -torch.inf, device=query.device).triu(1)
    return attention.attn_dropout((scores + mask).softmax(-1)) @ value


def _feed_forward(layer: FeedForward, x: Tensor) -> Tensor:
    activation = layer.intermediate_act_fn
    if activation == layer.gelu:
        activation = gelu
    return layer.LayerNorm(layer.dropout(layer.dense_2(activation(layer.dense_1(x)))) + x)
