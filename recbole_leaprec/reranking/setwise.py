"""The best set of K items: S_KL@K and HR@K do not depend on the order, so calibrate the set and show it by relevance.

The set R maximises `(1 - lambda) sum_{i in R} g(r_i) - lambda S_KL(R)`. g is the user's softmax probability: what leaving an
item out costs is a chance of a hit, not a difference of logits. Two lists, the greedy one with weight lambda at every place and
plain top-K, are improved by the best single swap, again and again, until none helps; the better of the two is it.

As in the greedy engine, only the best unpicked item of a profile can enter, and only its worst picked item can leave; swaps
are compared in float32, and in float64 where that cannot tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from recbole_leaprec.calibration import kl_divergence
from recbole_leaprec.categories import ItemCategories
from recbole_leaprec.reranking.greedy import (
    CLOSED,
    COLUMNS,
    SMALLEST_WEIGHT,
    TIE,
    Gain,
    GreedyLists,
    best_by_rule,
    lists_in_chunks,
)
from recbole_leaprec.reranking.topk import by_relevance


def probability(scores: Tensor) -> Gain:
    """g is an item's share in the softmax over the user's allowed items."""
    total = scores[:, 1:].double().logsumexp(1)
    return lambda values, user: (values.double() - total[user]).exp_()


def raw_score(scores: Tensor) -> Gain:
    """g is the score."""
    return lambda values, user: values.double()


def setwise(
    scores: Tensor,
    p: Tensor,
    categories: ItemCategories,
    k: int,
    lambdas: Sequence[float],
    beta: float,
    gain: Callable[[Tensor], Gain] = probability,
) -> Tensor:
    """Sets `[S, B, k]` for S lambdas, each by falling score; 0 where a user has no allowed item left."""

    def make(some_scores: Tensor, some_p: Tensor, weights: Tensor) -> Tensor:
        return Sets(some_scores, some_p, categories, k, weights, beta, gain(some_scores)).make()

    weights = torch.tensor([[lam] * k for lam in lambdas], dtype=torch.float64)
    return by_relevance(lists_in_chunks(make, scores, p, k, weights), scores)


class Sets(GreedyLists):
    """Lists that swaps improve, two for each setting and user; their places mean nothing any more."""

    def __init__(
        self, scores: Tensor, p: Tensor, categories: ItemCategories, k: int, weights: Tensor, beta: float, gain: Gain
    ):
        starts = torch.cat([weights, torch.zeros_like(weights)])
        super().__init__(scores, p, categories, k, starts, beta, gain, items_stay=False)
        self.weight = weights[:, 0].repeat(2).repeat_interleave(len(p))  # of calibration in the objective, for each list

    def make(self) -> Tensor:
        super().make()
        swapped = (self.items != 0).all(0).nonzero()[:, 0]  # a short list has nothing left to swap in
        while len(swapped):
            swapped = torch.cat([self._swap(columns) for columns in swapped.split(max(1, COLUMNS // self.shape[0]))])
        one, other = self.lists().chunk(2)
        objective, of_other = self._objectives().view(self.shape[1:]).chunk(2)
        return torch.where((of_other > objective + TIE)[..., None], other, one)

    def _objectives(self) -> Tensor:
        """`[2*S*B]`: what each list has come to, in float64."""
        worth = torch.zeros_like(self.weight)
        for place, profile in enumerate(self.profiles):
            rank = ((self.profiles[:place] == profile) & (self.items[:place] != 0)).sum(0)
            value = self.heads.values[self.heads.rows(self.user, profile), rank]
            worth += value.where(self.items[place] != 0, 0)
        divergence = kl_divergence(self.p.T, self.picked.T / self.shape[0], self.beta)
        return (1 - self.weight) * worth - self.weight * divergence

    def _swap(self, columns: Tensor) -> Tensor:
        """Make the best swap in each of these lists, if one helps; returns the lists where one did."""
        leaving = self._leaving(columns)
        gain = self._gains(leaving)
        largest, margin = gain.amax(0), 2 * self.margin()[columns]
        best = torch.full_like(margin, -torch.inf).scatter_reduce(0, leaving.of, largest, "amax")
        enough = (best - margin).where(best > -margin, torch.inf)[leaving.of]  # what a swap must gain to come into question
        some = (largest >= enough).nonzero()[:, 0]
        entering, number = (gain.index_select(1, some) >= enough[some]).nonzero().unbind(1)
        return self._decide_swap(len(columns), leaving.take(some[number]), entering)

    def _leaving(self, columns: Tensor) -> _Leaving:
        """The worst item of every profile that each list has."""
        profiles = self.profiles[:, columns]
        same = profiles[:, None] == profiles[None]
        before = same & same.new_ones(same.shape[:2]).tril(-1)[..., None]
        place, of = (~before.any(1)).nonzero().unbind(1)  # a profile's first place stands for it
        column, profile = columns[of], profiles[place, of]
        row, last = self.heads.rows(self.user[column], profile), same.sum(1)[place, of] - 1
        return _Leaving(of, column, profile, self.heads.values[row, last], self.heads.items[row, last])

    def _gains(self, leaving: _Leaving) -> Tensor:
        """`[P+1, n]` in float32: by how much the objective rises when the best unpicked item of each profile takes the place."""
        column, weight = leaving.column, self.weight[leaving.column].float()
        relevance_weight = (1 - weight).clamp_min_(SMALLEST_WEIGHT)
        rest = (self.picked.index_select(1, column) - self.categories.profiles[leaving.profile].T).float()
        p_of_pair = self.p_of_pair.index_select(1, column)
        of_pair = self.categories.saved_by_pair(p_of_pair, rest, self.shape[0], self.beta)
        saved = self.categories.sum_by_profile(of_pair.mul_(weight))
        stays = saved.gather(0, leaving.profile[None])[0] + relevance_weight * leaving.worth.float()
        return saved.addcmul_(self.best.index_select(1, column), relevance_weight).sub_(stays)

    def _decide_swap(self, lists: int, leaving: _Leaving, entering: Tensor) -> Tensor:
        """Decide in float64 between swaps `leaving[n]` for `entering[n]` of so many lists, and make those that help."""
        column = leaving.column
        user, weight = self.user[column], self.weight[column]
        self.heads.find(user, entering, position=1)
        row, taken = self.heads.rows(user, entering), self._taken(entering, column, self.shape[0] + 1)
        worth, item = self.heads.values[row, taken], self.heads.items[row, taken]
        k, rest = self.shape[0], (self.picked.T[column] - self.categories.profiles[leaving.profile]).clamp_min_(0)
        saved = self._saved(entering, column, rest, k) - self._saved(leaving.profile, column, rest, k)
        gain = torch.where(weight == 1, 0, (1 - weight) * (worth - leaving.worth)) + weight * saved
        gain.masked_fill_(item == 0, -torch.inf)
        made = best_by_rule(leaving.of, lists, gain, worth, -item, -leaving.worth, leaving.item) & (gain > TIE)
        self._make_swaps(leaving.take(made), entering[made], item[made], self.heads.values[row[made], taken[made] + 1])
        return column[made]

    def _make_swaps(self, leaving: _Leaving, entering: Tensor, item: Tensor, following: Tensor) -> None:
        column = leaving.column
        place = (self.items[:, column] == leaving.item).int().argmax(0)
        self.items[place, column], self.profiles[place, column] = item, entering
        self.picked[:, column] += (self.categories.profiles[entering] - self.categories.profiles[leaving.profile]).T
        self.best[leaving.profile, column] = leaving.worth.float()
        self.best[entering, column] = following.float().clamp_min_(CLOSED)


@dataclass(frozen=True)
class _Leaving:
    """Items that may leave, `[n]` each: of which list, its number among those looked at and its column, and what it loses."""

    of: Tensor
    column: Tensor
    profile: Tensor
    worth: Tensor
    item: Tensor

    def take(self, index: Tensor) -> _Leaving:
        return _Leaving(*(getattr(self, field.name)[index] for field in fields(self)))
