"""The best set of K items: S_KL@K and HR@K do not depend on the order, so calibrate the set and show it by relevance.

The set R maximises `(1 - lambda) sum_{i in R} g(r_i) - lambda S_KL(R)`. g is the user's softmax probability: what leaving an
item out costs is a chance of a hit, not a difference of logits. A greedy list is improved by the best single swap, again and
again, until none helps; then by two or three swaps that help only together, and so on until none of these is found.

As in the greedy engine, only the best unpicked item of a profile can enter, and only its worst picked item can leave; swaps
are compared in float32, and in float64 where that cannot tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

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
    """Lists that swaps improve; their places mean nothing any more."""

    def __init__(
        self, scores: Tensor, p: Tensor, categories: ItemCategories, k: int, weights: Tensor, beta: float, gain: Gain
    ):
        start = weights / (weights + _CAUTION * (1 - weights))
        super().__init__(scores, p, categories, k, start, beta, gain, items_stay=False)
        self.weight = weights[:, 0].repeat_interleave(len(p))  # of calibration in the objective, for each list

    def make(self) -> Tensor:
        super().make()
        columns = (self.items != 0).all(0).nonzero()[:, 0]  # a short list has nothing left to swap in
        while len(columns):
            improved = columns
            while len(improved):
                improved = self._in_parts(self._swap, improved)
            columns = self._in_parts(self._swap_together, columns)
        return self.lists()

    def _in_parts(self, step: Callable[[Tensor], Tensor], columns: Tensor) -> Tensor:
        return torch.cat([step(some) for some in columns.split(max(1, COLUMNS // self.shape[0]))])

    def _swap(self, columns: Tensor) -> Tensor:
        """Make the best swap in each of these lists, if it helps; returns the lists where it did."""
        swaps = self._best(*self._look(columns), self.weight.new_zeros(len(columns)))
        self._make(swaps)
        return swaps.leaving.column

    def _swap_together(self, columns: Tensor) -> Tensor:
        """Make two or three swaps in each of these lists, if they help together; returns the lists where they did."""
        leaving, gain = self._look(columns)
        gain.scatter_(0, leaving.profile[None], -torch.inf)
        beginnings, any_gain = [], self.weight.new_full((len(columns),), -torch.inf)
        for _ in range(_ATTEMPTS):
            swaps = self._best(leaving, gain, any_gain)
            beginnings.append(swaps)
            begun = torch.zeros_like(columns).scatter(0, swaps.leaving.of, swaps.leaving.item)
            gain[:, leaving.item == begun[leaving.of]] = -torch.inf
        helped = columns[:0]
        for swaps in beginnings:
            begun = swaps.take(~torch.isin(swaps.leaving.column, helped))
            helped = torch.cat([helped, self._begin_with(begun)])
        return helped

    def _begin_with(self, swaps: _Swaps) -> Tensor:
        """Make these swaps, and others after them until all help together; returns the lists where they did, the rest is as before.

        A profile that has given an item up gets none back for now, and one that has got an item keeps it.
        """
        lost, left, entered = -swaps.gain, swaps.leaving.profile[:, None], swaps.entering[:, None]
        helped, back = [], []
        for remaining in reversed(range(_FORCED)):
            back.append(self._taking_back(swaps))
            self._make(swaps)
            leaving, gain = self._look(swaps.leaving.column)
            best = self._best(leaving, gain, needed=lost)
            if remaining:
                for profile in (leaving.profile, *left[leaving.of].T):
                    gain.scatter_(0, profile[None], -torch.inf)
                gain[:, (leaving.profile[:, None] == entered[leaving.of]).any(1)] = -torch.inf
                gain[:, torch.isin(leaving.of, best.leaving.of)] = -torch.inf
                swaps = self._best(leaving, gain, torch.full_like(lost, -torch.inf))
                of = swaps.leaving.of
                lost = lost[of] - swaps.gain
                left = torch.cat([left[of], swaps.leaving.profile[:, None]], 1)
                entered = torch.cat([entered[of], swaps.entering[:, None]], 1)
            self._make(best)
            helped.append(best.leaving.column)
        helped = torch.cat(helped)
        for swaps in reversed(back):
            self._make(swaps.take(~torch.isin(swaps.leaving.column, helped)))
        return helped

    def _look(self, columns: Tensor) -> tuple[_Leaving, Tensor]:
        """All swaps of these lists: the items that may leave, and in float32 what each profile's best unpicked item would gain."""
        leaving = self._leaving(columns)
        return leaving, self._gains(leaving)

    def _best(self, leaving: _Leaving, gain: Tensor, needed: Tensor) -> _Swaps:
        """The best swap of each list, if it gains more than is needed; `gain [P+1, n]` is in float32."""
        largest = gain.amax(0)
        best = torch.full_like(needed, -torch.inf).scatter_reduce(0, leaving.of, largest.double(), "amax")[leaving.of]
        margin = 2 * self.margin()[leaving.column]
        enough = (best - margin).where(best > needed[leaving.of] - margin, torch.inf)  # to come into question
        some = (largest >= enough).nonzero()[:, 0]
        entering, number = (gain.index_select(1, some) >= enough[some]).nonzero().unbind(1)
        swaps = self._exact(leaving.take(some[number]), entering)
        won = best_by_rule(swaps.leaving.of, len(needed), swaps.gain, swaps.worth, -swaps.item, -swaps.leaving.worth, swaps.leaving.item)  # fmt: skip
        return swaps.take(won & (swaps.gain > needed[swaps.leaving.of] + TIE))

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

    def _exact(self, leaving: _Leaving, entering: Tensor) -> _Swaps:
        """What swaps `leaving[n]` for the best unpicked item of `entering[n]` gain, in float64."""
        column = leaving.column
        user, weight = self.user[column], self.weight[column]
        self.heads.find(user, entering, position=1)
        row, taken = self.heads.rows(user, entering), self._taken(entering, column, self.shape[0] + 1)
        worth, item = self.heads.values[row, taken], self.heads.items[row, taken]
        k, rest = self.shape[0], (self.picked.T[column] - self.categories.profiles[leaving.profile]).clamp_min_(0)
        saved = self._saved(entering, column, rest, k) - self._saved(leaving.profile, column, rest, k)
        gain = torch.where(weight == 1, 0, (1 - weight) * (worth - leaving.worth)) + weight * saved
        gain.masked_fill_(item == 0, -torch.inf)
        return _Swaps(leaving, entering, item, worth, self.heads.values[row, taken + 1], gain)

    def _make(self, swaps: _Swaps) -> None:
        leaving, column = swaps.leaving, swaps.leaving.column
        place = (self.items[:, column] == leaving.item).int().argmax(0)
        self.items[place, column], self.profiles[place, column] = swaps.item, swaps.entering
        self.picked[:, column] += (self.categories.profiles[swaps.entering] - self.categories.profiles[leaving.profile]).T
        self.best[leaving.profile, column] = leaving.worth.float()
        self.best[swaps.entering, column] = swaps.following.float().clamp_min_(CLOSED)

    def _taking_back(self, swaps: _Swaps) -> _Swaps:
        """What undoes these swaps, which are still to be made."""
        leaving = swaps.leaving
        entered = _Leaving(leaving.of, leaving.column, swaps.entering, swaps.worth, swaps.item)
        following = self.best[leaving.profile, leaving.column]
        return _Swaps(entered, leaving.profile, leaving.item, leaving.worth, following, -swaps.gain)


_CAUTION = 4
"""By how much calibration weighs less, against relevance, in the greedy start: a greedy list calibrates each of its heads, too."""

_ATTEMPTS, _FORCED = 2, 2
"""How often to look for swaps that help together, and how many may lose something before one that must make up for it."""


@dataclass(frozen=True)
class _Part:
    """Tensors `[n]`, or parts of their own, that belong together."""

    def take(self, index: Tensor):
        """Some of the n."""
        values = (getattr(self, field.name) for field in fields(self))
        return type(self)(*(value.take(index) if isinstance(value, _Part) else value[index] for value in values))


@dataclass(frozen=True)
class _Leaving(_Part):
    """Items that may leave: of which list, its number among those looked at and its column, and what it loses."""

    of: Tensor
    column: Tensor
    profile: Tensor
    worth: Tensor
    item: Tensor


@dataclass(frozen=True)
class _Swaps(_Part):
    """What leaves, the profile and the item that enter, what it and the one after it are worth, and what the swap gains."""

    leaving: _Leaving
    entering: Tensor
    item: Tensor
    worth: Tensor
    following: Tensor
    gain: Tensor
