"""Faster versions of the parts where RecBole's models spend most of their time. Parameters and their names stay the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from recbole.model.layers import FeedForward, MultiHeadAttention, TransformerEncoder
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import gelu, linear, scaled_dot_product_attention


def speed_up(model: nn.Module) -> None:
    """Replace modules of PyTorch and RecBole in the model, and in all its parts, by the modules below."""
    for module in list(model.modules()):
        for name, child in module.named_children():
            if type(child) is nn.Dropout:
                setattr(module, name, FastDropout(child.p))
            elif type(child) is TransformerEncoder:
                setattr(module, name, FusedEncoder(child))


@contextmanager
def matmul_precision(precision: str) -> Iterator[None]:
    """Matrix products of float32 in another precision inside of this; see `PRECISIONS`."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


class FastDropout(nn.Dropout):
    """Dropout that draws 16 random bits per element. PyTorch's dropout takes several times as long on a CPU.

    Torch's own generator seeds the generator of the bits, so a torch seed still makes results repeatable.
    """

    worker = 0
    """The number of this worker. Workers that train together have the same seeds, but must not drop the same elements."""

    _stream: np.random.SFC64 | None = None
    """The source of the bits while rows come in pieces: the next piece gets the next bits."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or not self.draws_itself(x.device):
            return super().forward(x)
        return x * self._kept(x.shape).to(x.dtype).div_(1 - self.p)

    def draws_itself(self, device: torch.device) -> bool:
        """Whether this class draws the bits itself, because it is faster than PyTorch here."""
        return device.type == "cpu" and 0 < self.p < 0.999

    def seed(self) -> int:
        """A seed for the bits of one batch, drawn anew per batch."""
        return int(torch.randint(2**62, ())) ^ self.worker

    def _kept(self, shape: torch.Size) -> Tensor:
        """Which elements stay, each with probability 1-p."""
        words = (self._stream or np.random.SFC64(self.seed())).random_raw(-(-shape.numel() // _PER_WORD))
        bits = torch.from_numpy(words.view(np.int16))[: shape.numel()].view(shape)
        return bits >= round(self.p * 2**16) - 2**15


_PER_WORD = 4
"""How many elements one word of 64 random bits is enough for."""


class EncoderInPieces(nn.Module):
    """Layers one after the other, for some rows of a batch at a time if that saves memory."""

    def __init__(self, layers: nn.ModuleList, heads: int):
        super().__init__()
        self.layer, self.heads = layers, heads

    def forward(self, hidden: Tensor, attention_mask: Tensor | None, output_all_encoded_layers: bool = True) -> list[Tensor]:
        """The outputs of the layers for `hidden [B, L, H]`. A mask of None hides, for each position, all later ones."""
        active = [one for one in self.modules() if isinstance(one, nn.Dropout) and one.training and one.p]
        dropouts = [one for one in active if isinstance(one, FastDropout) and one.draws_itself(hidden.device)]
        pieces = _pieces(hidden, self.heads)
        if len(pieces) == 1 or len(dropouts) < len(active):
            outputs = self.layers(hidden, attention_mask)
        else:
            parameters = [one for one in self.parameters() if one.requires_grad]
            seeds = {one: one.seed() for one in dropouts}  # in the order in which they would be drawn for all rows at once
            mask = None if attention_mask is None else attention_mask.expand(len(hidden), -1, -1, -1)
            outputs = _InPieces.apply(self, pieces, seeds, mask, hidden, *parameters)
        return list(outputs) if output_all_encoded_layers else [outputs[-1]]

    def layers(self, hidden: Tensor, mask: Tensor | None) -> list[Tensor]:
        """The output of each layer for `hidden [B, L, H]`."""
        outputs = []
        for layer in self.layer:
            hidden = self.apply_layer(layer, hidden, mask)
            outputs.append(hidden)
        return outputs

    def apply_layer(self, layer: nn.Module, hidden: Tensor, mask: Tensor | None) -> Tensor:
        """The output of one layer for `hidden [B, L, H]`."""
        return layer(hidden, mask)


class FusedEncoder(EncoderInPieces):
    """RecBole's TransformerEncoder in fewer and larger steps."""

    def __init__(self, encoder: TransformerEncoder):
        super().__init__(encoder.layer, encoder.layer[0].multi_head_attention.num_attention_heads)

    def apply_layer(self, layer: Any, hidden: Tensor, mask: Tensor | None) -> Tensor:
        return _feed_forward(layer.feed_forward, _attend(layer.multi_head_attention, hidden, mask))


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
    """Attention with dropout, because PyTorch's fused attention has no dropout on a CPU."""
    query, length = query / attention.sqrt_attention_head_size, query.shape[2]
    if mask is None:
        mask = torch.full((1, 1, length, length), -torch.inf, device=query.device).triu(1)
    return attention.attn_dropout((query @ key.transpose(2, 3) + mask).softmax(-1)) @ value


_IN_CACHE = 5 * 2**16
"""About how many attention weights a processor's cache can hold.

More would take a little less time, but leave larger holes in memory.
"""


def _pieces(hidden: Tensor, heads: int) -> list[slice]:
    """Slices of the rows of `hidden [B, L, H]` whose attention weights `[., heads, L, L]` fit into a cache.

    It is one slice of all rows if no cut is needed.
    """
    rows, length, _ = hidden.shape
    weights = heads * length**2
    if rows * weights <= _IN_CACHE or hidden.device.type != "cpu" or torch.is_autocast_enabled("cpu"):
        return [slice(0, rows)]
    # Whole words of random bits, so that the pieces of a batch get the same bits as the whole batch.
    some = max(1, _IN_CACHE // (weights * _PER_WORD)) * _PER_WORD
    return [slice(begin, begin + some) for begin in range(0, rows, some)]


class _InPieces(torch.autograd.Function):
    """The layers of an `EncoderInPieces` for some rows at a time, computed again in the backward pass.

    For long sequences, the inner values of layers do not fit into a cache, and would be most of the memory of a training.
    For pieces that fit, computing them twice takes no longer than reading them from memory. Dropouts drop the same elements
    as for all rows at once.
    """

    @staticmethod
    def forward(
        context: Any,
        encoder: EncoderInPieces,
        pieces: list[slice],
        seeds: dict[FastDropout, int],
        mask: Tensor | None,
        hidden: Tensor,
        *parameters: Tensor,
    ) -> tuple[Tensor, ...]:
        context.save_for_backward(hidden, mask, *parameters)
        context.encoder, context.pieces, context.seeds = encoder, pieces, seeds
        context.set_materialize_grads(False)
        outputs = tuple(torch.empty_like(hidden) for _ in encoder.layer)
        with _drawing(seeds):
            for rows in pieces:
                for output, part in zip(outputs, encoder.layers(hidden[rows], _of(mask, rows)), strict=True):
                    output[rows] = part
        return outputs

    @staticmethod
    @once_differentiable
    def backward(context: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        hidden, mask, *parameters = context.saved_tensors
        of_hidden, of_parameters = torch.empty_like(hidden), [torch.zeros_like(one) for one in parameters]
        with _drawing(context.seeds), torch.enable_grad():
            for rows in context.pieces:
                inputs = hidden[rows].detach().requires_grad_()
                outputs = context.encoder.layers(inputs, _of(mask, rows))
                asked = [(one, of[rows]) for one, of in zip(outputs, gradients, strict=True) if of is not None]
                found = torch.autograd.grad(
                    [one for one, _ in asked], [inputs, *parameters], [of for _, of in asked], materialize_grads=True
                )
                of_hidden[rows] = found[0]
                torch._foreach_add_(of_parameters, found[1:])
        return None, None, None, None, of_hidden, *of_parameters


def _of(mask: Tensor | None, rows: slice) -> Tensor | None:
    return None if mask is None else mask[rows]


@contextmanager
def _drawing(seeds: dict[FastDropout, int]) -> Iterator[None]:
    """Inside the `with` block, each dropout takes its bits from its seed, and goes on with them from piece to piece."""
    try:
        for dropout, seed in seeds.items():
            dropout._stream = np.random.SFC64(seed)
        yield
    finally:
        for dropout in seeds:
            dropout._stream = None


def _feed_forward(layer: FeedForward, x: Tensor) -> Tensor:
    activation = layer.intermediate_act_fn
    if activation == layer.gelu:
        activation = gelu
    return layer.LayerNorm(layer.dropout(layer.dense_2(activation(layer.dense_1(x)))) + x)
