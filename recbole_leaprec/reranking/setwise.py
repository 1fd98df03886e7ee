"""The best set of K items: S_KL@K and HR@K do not depend on the order, so calibrate the set and show it by relevance.

The set R maximises `(1 - lambda) sum_{i in R} g(r_i) - lambda S_KL(R)`. g is the user's softmax probability: what leaving an
item out costs is a chance of a hit, not a difference of logits. Two lists, the greedy one with weight lambda at every place and
plain top-K, are improved by the best single swap, again and again, until none helps; the better of the two is it.

As in the greedy engine, only the best unpicked item of a profile can enter, and only its worst picked item can leave; swaps
are compared in float32, and in float64 where that cannot tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from recbole_leaprec.calibration import kl_divergence
from recbole_leaprec.categories import ItemCategories, divergence_saved
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
        # Every profile that a list has, once: `place[n]` of the list in `columns[of[n]]`.
        place, of = self._first_of_profile(self.profiles[:, columns]).nonzero().unbind(1)
        column = columns[of]
        leaving = self.profiles[place, column]
        gain = self._gains(column, leaving)
        largest, margin = gain.amax(0), 2 * self.margin()[columns]
        best = torch.full_like(margin, -torch.inf).scatter_reduce(0, of, largest, "amax")
        enough = (best - margin).where(best > -margin, torch.inf)[of]  # what a swap must gain to come into question
        some = (largest >= enough).nonzero()[:, 0]
        entering, number = (gain.index_select(1, some) >= enough[some]).nonzero().unbind(1)
        number = some[number]
        return self._decide_swap(columns, of[number], leaving[number], entering)

    @staticmethod
    def _first_of_profile(profiles: Tensor) -> Tensor:
        """`[k, N]`: whether no place before has the same profile."""
        same = profiles[:, None] == profiles[None]
        return ~(same & same.new_ones(same.shape[:2]).tril(-1)[..., None]).any(1)

    def _gains(self, column: Tensor, leaving: Tensor) -> Tensor:
        """`[P+1, n]` in float32: by how much the objective rises when the best unpicked item of each profile replaces `leaving`."""
        weight = self.weight[column].float()
        relevance_weight = (1 - weight).clamp_min_(SMALLEST_WEIGHT)
        rest = (self.picked.index_select(1, column) - self.categories.profiles[leaving].T).float()
        p_of_pair = self.p_of_pair.index_select(1, column)
        of_pair = self.categories.saved_by_pair(p_of_pair, rest, self.shape[0], self.beta)
        saved = self.categories.sum_by_profile(of_pair.mul_(weight))
        worth, _ = self._worst_picked(column, leaving)
        stays = saved.gather(0, leaving[None])[0] + relevance_weight * worth.float()
        return saved.addcmul_(self.best.index_select(1, column), relevance_weight).sub_(stays)

    def _worst_picked(self, column: Tensor, profile: Tensor) -> tuple[Tensor, Tensor]:
        """`(worth, item)` of what would leave."""
        row = self.heads.rows(self.user[column], profile)
        last = self._taken(profile, column, self.shape[0] + 1) - 1
        return self.heads.values[row, last], self.heads.items[row, last]

    def _decide_swap(self, columns: Tensor, of: Tensor, leaving: Tensor, entering: Tensor) -> Tensor:
        """Decide in float64 between swaps, and make those that help; a swap is of the list in `columns[of[n]]`."""
        k, column = self.shape[0], columns[of]
        user, weight = self.user[column], self.weight[column]
        self.heads.find(user, entering, position=1)
        row, taken = self.heads.rows(user, entering), self._taken(entering, column, k + 1)
        worth, item = self.heads.values[row, taken], self.heads.items[row, taken]
        worth_left, item_left = self._worst_picked(column, leaving)
        rest = self.picked.T[column] - self.categories.profiles[leaving]
        saved = self._saved(entering, column, rest) - self._saved(leaving, column, rest)
        gain = torch.where(weight == 1, 0, (1 - weight) * (worth - worth_left)) + weight * saved
        gain.masked_fill_(item == 0, -torch.inf)
        kept = best_by_rule(of, len(columns), gain, worth, -item, -worth_left, item_left)
        kept &= gain > TIE
        column, leaving, entering, item, item_left = (x[kept] for x in (column, leaving, entering, item, item_left))
        place = (self.items[:, column] == item_left).int().argmax(0)
        self.items[place, column], self.profiles[place, column] = item, entering
        self.picked[:, column] += (self.categories.profiles[entering] - self.categories.profiles[leaving]).T
        self.best[leaving, column] = worth_left[kept].float()
        self.best[entering, column] = self.heads.values[row[kept], taken[kept] + 1].float().clamp_min_(CLOSED)
        return column

    def _saved(self, profile: Tensor, column: Tensor, rest: Tensor) -> Tensor:
        """How much an item of the profile saves of S_KL beside the `rest [n, C]` of its list, in float64."""
        members, shares = self.categories.profile_categories[profile], self.categories.profile_shares[profile]
        p, before = self.p.T[column].gather(1, members), rest.gather(1, members).clamp_min_(0)
        return divergence_saved(p, before, shares, self.beta, self.shape[0]).sum(1)
