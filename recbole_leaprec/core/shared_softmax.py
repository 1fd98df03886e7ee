"""The softmax loss with the same negatives at all positions. Scores are inner products, and never all held at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import logsigmoid

from recbole_leaprec.core.loss import NOT_COUNTED

KL = Callable[[slice], tuple[Tensor, Tensor]]
"""KL(p || p~_i) of the positives `[n]` and of the negatives `[n, M]` at a slice of n positions."""

_AT_ONCE = {"cpu": 2**20}
"""How many scores are held at a time on a CPU: about as many as its cache holds."""

_AT_ONCE_ELSEWHERE = 2**26
"""How many scores are held at a time on other devices, which must be kept busy."""


def shared_softmax_loss(
    output: Tensor,
    positive: Tensor,
    negatives: Tensor,
    correction: Tensor | None = None,
    own: tuple[Tensor, Tensor] | None = None,
    kl: KL | None = None,
    weight: float = 1.0,
    gamma: float = 0.0,
) -> Tensor:
    """`disentangled_loss(softmax_loss, ...)` of `output @ positive` and `output @ negatives`, some positions at a time.

    Scores of thousands of negatives at thousands of positions do not fit into a cache, and autograd would write and read
    them several times. Here the gradient of some positions is computed while their scores are still in the cache.

    Args:
        output: `[T, H]`, the model's output at each position.
        positive: `[T, H]`, the vector of each position's item.
        negatives: `[M, H]`, the vectors of the negatives.
        correction: `[M]`, added to the negatives' scores.
        own: `(position, column)` of every positive that is one of the negatives; it does not count as a negative there.
        kl: needed if gamma is not 0.

    Example:
        >>> one = torch.tensor([[1.0]])
        >>> shared_softmax_loss(one, one, torch.tensor([[0.0]]))
        tensor(0.3133)
    """
    if gamma and kl is None:
        raise ValueError("the calibration-disentangled term needs the KL of the positive and of the negatives")
    with torch.autocast(output.device.type, enabled=False):
        return _InPieces.apply(output, positive, negatives, correction, own, kl, weight, gamma)


class _InPieces(torch.autograd.Function):
    """The loss with its own gradient. It takes the arguments of `shared_softmax_loss`."""

    @staticmethod
    def forward(
        context: Any,
        output: Tensor,
        positive: Tensor,
        negatives: Tensor,
        correction: Tensor | None,
        own: tuple[Tensor, Tensor] | None,
        kl: KL | None,
        weight: float,
        gamma: float,
    ) -> Tensor:
        total = output.new_zeros(())
        of_output, of_positive = torch.empty_like(output), torch.empty_like(positive)
        of_negatives = torch.zeros_like(negatives)
        pieces = _pieces(len(output), len(negatives), output.device.type)
        scores = output.new_empty(pieces[0].stop if pieces else 0, len(negatives))  # new memory per piece would cost time
        for rows in pieces:
            outputs, positives = output[rows], positive[rows]
            r_positive = (outputs * positives).sum(1)
            r = torch.mm(outputs, negatives.T, out=scores[: len(outputs)])
            if correction is not None:
                r += correction
            if own is not None:
                here = (own[0] >= rows.start) & (own[0] < rows.stop)
                r[own[0][here] - rows.start, own[1][here]] = NOT_COUNTED
            terms = []
            if gamma and kl is not None:
                kl_positive, kl_negatives = kl(rows)
                terms.append(_softmax_loss(r_positive - kl_positive, r - kl_negatives, gamma))
            if weight:  # last, because it overwrites r
                terms.append(_softmax_loss(r_positive, r, weight))
            loss, fall, slopes = terms.pop()
            for other_loss, other_fall, other_slopes in terms:
                loss, fall, slopes = loss + other_loss, fall + other_fall, slopes.add_(other_slopes)
            total += loss
            of_output[rows] = torch.addmm(positives * -fall, slopes, negatives)
            of_positive[rows] = outputs * -fall
            of_negatives.addmm_(slopes.T, outputs)
        context.save_for_backward(of_output, of_positive, of_negatives)
        return total / len(output)

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        share = gradient / len(context.saved_tensors[0])
        return (*(of * share for of in context.saved_tensors), None, None, None, None, None)


def _pieces(positions: int, negatives: int, device: str) -> list[slice]:
    some = max(1, _AT_ONCE.get(device, _AT_ONCE_ELSEWHERE) // max(1, negatives))
    return [slice(begin, min(begin + some, positions)) for begin in range(0, positions, some)]


def _softmax_loss(positive: Tensor, negatives: Tensor, weight: float) -> tuple[Tensor, Tensor, Tensor]:
    """`weight * softmax_loss` summed over positions, and its slopes.

    The slopes say how fast the loss falls with the positives, `[n, 1]`, and how fast it rises with the negatives, `[n, M]`.
    The latter overwrite the negatives.
    """
    largest = negatives.amax(1, keepdim=True)
    total = negatives.sub_(largest).exp_().sum(1, keepdim=True)
    difference = total.log() + largest - positive[:, None]
    fall = weight * difference.sigmoid()
    return -weight * logsigmoid(-difference).sum(), fall, negatives.mul_(fall / total)
