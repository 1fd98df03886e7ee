"""`rerank`: makes lists from scores and preferences with any method. Arguments are checked here."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from recbole_leaprec.common.defaults import SMALLEST_BETA
from recbole_leaprec.common.did_you_mean import unknown_name
from recbole_leaprec.core.categories import ItemCategories
from recbole_leaprec.reranking.compiled import BadScores
from recbole_leaprec.reranking.registry import ORDERS, get_reranker
from recbole_leaprec.reranking.topk import by_relevance, top_items

_logger = logging.getLogger(__name__)

SHORT_LISTS = "%d of %d users have fewer than %d items to recommend; their lists are shorter, with 0 at the end"


def rerank(
    scores: Tensor,
    p: Tensor | None,
    categories: ItemCategories,
    k: int = 10,
    method: str = "leaprec",
    lam: float = 0.3,
    beta: float = 0.01,
    candidates: int | None = None,
    order: str = "greedy",
    temperature: float = 1.0,
) -> Tensor:
    """Lists of k items that trade relevance against calibration to p.

    Args:
        scores: `[B, I]` relevance, -inf for items that are not allowed; item 0 is padding and never allowed.
        p: `[B, C]` category preference, each row sums to one. Every method uses it as given; None only for `none`. A row
            of zeros means a user without a history, who gets the plain ranking.
        categories: the categories of the I items.
        k: list length, 1 to I-1.
        method: a name in `RERANKERS`.
        lam: the weight of calibration, in [0, 1]. At 0 the list is the plain ranking; at 1 only the categories count.
        beta: smoothing of Eq. 4, in [1e-15, 1).
        candidates: rerank only the n most relevant items; None for the method's default: 1,000 for `mip`, 100 for `mcf`,
            the whole catalogue for the others.
        order: `greedy`: items in the order in which the method picks them. `relevance`: the same items by falling score.
            `setwise`, `mip` and `mcf` choose sets of k items and always order them by relevance: the first items of such
            a list are not a list for a smaller k.
        temperature: scores are divided by it first; above 0.

    Returns:
        LongTensor `[B, k]` on the device of `scores`. A list of a user with fewer than k allowed items ends with 0s. One
        warning says how many users have such a list.

    Raises:
        ValueError: unknown method or order; lam, beta, k, candidates or temperature out of range; shapes that do not fit
            each other; nan or +inf in the scores; a preference that sums neither to one nor to zero.

    Example:
        >>> categories = ItemCategories.from_lists([[], ["Action"], ["Action"], ["Drama"]])
        >>> scores, p = torch.tensor([[0.0, 3.0, 2.0, 1.0]]), torch.tensor([[0.5, 0.5]])
        >>> rerank(scores, p, categories, k=2, method="none")
        tensor([[1, 2]])
        >>> rerank(scores, p, categories, k=2, lam=0.5)
        tensor([[1, 3]])
    """
    lists = rerank_sweep(scores, p, categories, k, method, [lam], beta, candidates, order, temperature)[0]
    short = int((lists[:, -1] == 0).sum())
    if short:
        _logger.warning(SHORT_LISTS, short, len(lists), k)
    return lists


@torch.no_grad()
def rerank_sweep(
    scores: Tensor,
    p: Tensor | None,
    categories: ItemCategories,
    k: int = 10,
    method: str = "leaprec",
    lambdas: Sequence[float] = (0.3,),
    beta: float = 0.01,
    candidates: int | None = None,
    order: str = "greedy",
    temperature: float = 1.0,
) -> Tensor:
    """`rerank` for many lambdas at once, `[len(lambdas), B, k]`: work that does not depend on lambda is done once.

    With a greedy method and `order="greedy"`, the first items of a list are the list for a smaller k. There is no warning
    about short lists here.
    """
    reranker = get_reranker(method)
    if p is None and reranker.preference is not None:
        raise ValueError(f"{method} calibrates to p, and p is None")
    if order not in ORDERS:
        raise ValueError(unknown_name("order", order, ORDERS))
    if not 0 < temperature < math.inf:
        raise ValueError(f"temperature must be above 0, got {temperature}")
    if temperature != 1:
        scores = scores / temperature
    _check(scores, p, categories, k, lambdas, beta, candidates)
    if not reranker.compiled or scores.device.type != "cpu":
        _check_scores(scores)
    candidates = candidates or max(k, reranker.candidates or categories.n_items)
    if candidates < categories.n_items - 1:
        kept = top_items(scores, candidates)
        scores = torch.full_like(scores, -torch.inf).scatter(1, kept, scores.gather(1, kept))
    try:
        lists = reranker.run(scores, p, categories.to(scores.device), k, lambdas, beta)
    except BadScores:  # the compiled loops see each score anyway
        _check_scores(scores)
        raise
    return by_relevance(lists, scores) if order == "relevance" else lists


def _check(
    scores: Tensor,
    p: Tensor | None,
    categories: ItemCategories,
    k: int,
    lambdas: Sequence[float],
    beta: float,
    candidates: int | None,
) -> None:
    if scores.dim() != 2 or scores.shape[1] != categories.n_items:
        raise ValueError(f"scores must be [B, {categories.n_items}] for these categories, got {list(scores.shape)}")
    if not scores.is_floating_point():
        raise ValueError(f"scores must be floating-point numbers, got {scores.dtype}")
    if p is not None and p.shape != (len(scores), categories.n_categories):
        raise ValueError(f"p must be {[len(scores), categories.n_categories]} for these scores, got {list(p.shape)}")
    for lam in lambdas:
        if not 0 <= lam <= 1:
            raise ValueError(f"lam must be in [0, 1], got {lam}")
    if not SMALLEST_BETA <= beta < 1:
        raise ValueError(f"beta must be in [{SMALLEST_BETA:g}, 1), got {beta}")
    if not 1 <= k < categories.n_items:
        raise ValueError(f"k must be from 1 to the number of items, {categories.n_items - 1}, got {k}")
    if candidates is not None and candidates < k:
        raise ValueError(f"candidates must be at least k = {k}, got {candidates}")
    if p is None:
        return
    total = p.sum(1, dtype=torch.float64)
    off = ~(((total - 1).abs() <= 1e-3) | (total == 0)) | (p < 0).any(1)
    if off.any():
        first = int(off.nonzero()[0])
        raise ValueError(
            f"{int(off.sum())} rows of p are not distributions that sum to one, nor all zero; the first is row {first}, "
            f"with the sum {float(p[first].sum()):.6g} and the least {float(p[first].min()):.6g}"
        )


def _check_scores(scores: Tensor) -> None:
    """Raise ValueError for nan or +inf."""
    if len(scores) and not (scores.amax(1) < torch.inf).all():  # amax is nan if the row has a nan
        bad = (scores.isnan() | (scores == torch.inf)).sum(1)
        first = int(bad.nonzero()[0])
        raise ValueError(
            f"{int((bad > 0).sum())} rows of scores hold nan or +inf; the first is row {first}, with {int(bad[first])}"
        )
