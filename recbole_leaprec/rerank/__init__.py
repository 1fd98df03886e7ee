"""Reranking: relevance scores and a category preference in, calibrated lists out."""

from __future__ import annotations

import logging

import torch
from torch import Tensor

from recbole_leaprec.categories import ItemCategories
from recbole_leaprec.rerank.registry import RERANKERS, Reranker, get_reranker, register

__all__ = ["RERANKERS", "Reranker", "get_reranker", "make_lists", "register", "rerank"]

_logger = logging.getLogger(__name__)

SHORT_LISTS = "%d of %d users have fewer than %d items to recommend; their lists end in 0"


def rerank(
    scores: Tensor,
    p: Tensor | None,
    categories: ItemCategories,
    k: int = 10,
    method: str = "leaprec",
    lam: float = 0.3,
    beta: float = 0.01,
    candidates: int | None = None,
) -> Tensor:
    """Lists of k items that trade relevance against calibration to p.

    Args:
        scores: `[B, I]` relevance, -inf for items that are not allowed; item 0 is padding and never is.
        p: `[B, C]` category preference, each row sums to one. Used as given, whatever the method; None for `none`.
        categories: of the I items.
        k: list length, 1 to I-1.
        method: a name in `RERANKERS`.
        lam: weight of calibration in [0, 1]: 0 is plain top-k, 1 calibration alone.
        beta: smoothing of Eq. 4, in (0, 1).
        candidates: rerank the n most relevant items only; None for the whole catalogue.

    Returns:
        LongTensor `[B, k]` on the device of `scores`. Users with fewer than k allowed items get 0 at the end of their
        list, and one warning counts them.

    Raises:
        ValueError: unknown method; lam, beta, k or candidates out of range; shapes that do not fit each other; nan or
            +inf in the scores; a preference that does not sum to one.

    Example:
        >>> categories = ItemCategories.from_lists([[], ["Action"], ["Action"], ["Drama"]])
        >>> scores, p = torch.tensor([[0.0, 3.0, 2.0, 1.0]]), torch.tensor([[0.5, 0.5]])
        >>> rerank(scores, p, categories, k=2, method="none")
        tensor([[1, 2]])
        >>> rerank(scores, p, categories, k=2, lam=0.5)
        tensor([[1, 3]])
    """
    lists = make_lists(scores, p, categories, k, method, lam, beta, candidates)
    short = int((lists[:, -1] == 0).sum())
    if short:
        _logger.warning(SHORT_LISTS, short, len(lists), k)
    return lists


def make_lists(
    scores: Tensor,
    p: Tensor | None,
    categories: ItemCategories,
    k: int,
    method: str,
    lam: float,
    beta: float,
    candidates: int | None,
) -> Tensor:
    """`rerank` without the warning, for callers that go batch by batch and warn once."""
    reranker = get_reranker(method)
    if p is None and reranker.target is not None:
        raise ValueError(f"{method} calibrates to p, and p is None")
    _check(scores, p, categories, k, lam, beta, candidates)
    scores = scores.clone()
    scores[:, 0] = -torch.inf
    if candidates is not None and candidates < scores.shape[1]:
        kept = get_reranker("none").run(scores, p, categories, candidates, lam, beta)
        scores = torch.full_like(scores, -torch.inf).scatter(1, kept, scores.gather(1, kept))
    return reranker.run(scores, p, categories.to(scores.device), k, lam, beta)


def _check(
    scores: Tensor, p: Tensor | None, categories: ItemCategories, k: int, lam: float, beta: float, candidates: int | None
) -> None:
    if scores.dim() != 2 or scores.shape[1] != categories.n_items:
        raise ValueError(f"scores must be [B, {categories.n_items}] for these categories, got {list(scores.shape)}")
    if p is not None and p.shape != (len(scores), categories.n_categories):
        raise ValueError(f"p must be {[len(scores), categories.n_categories]} for these scores, got {list(p.shape)}")
    if not 0 <= lam <= 1:
        raise ValueError(f"lam must be in [0, 1], got {lam}")
    if not 0 < beta < 1:
        raise ValueError(f"beta must be in (0, 1), got {beta}")
    if not 1 <= k < categories.n_items:
        raise ValueError(f"k must be from 1 to the number of items, {categories.n_items - 1}, got {k}")
    if candidates is not None and candidates < k:
        raise ValueError(f"candidates must be at least k = {k}, got {candidates}")
    bad = (scores.isnan() | (scores == torch.inf)).sum(1)
    if bad.any():
        first = int(bad.nonzero()[0])
        raise ValueError(
            f"{int((bad > 0).sum())} rows of scores hold nan or +inf; the first is row {first}, with {int(bad[first])}"
        )
    if p is None:
        return
    off = (p.double().sum(1) - 1).abs() > 1e-3
    if off.any():
        first = int(off.nonzero()[0])
        raise ValueError(
            f"{int(off.sum())} rows of p do not sum to one; the first is row {first}, with {float(p[first].sum()):.6g}"
        )
