"""Greedy reranking, Eq. 12 of the paper: exact over the whole catalogue, at nearly the price of top-K.

What an item saves of the divergence depends on its profile alone, so at each position only the best unpicked item of each
profile can win. The engine finds the best score of every profile once (one pass over the scores), picks among the profiles
(a few hundred instead of all items), and looks into a profile only when it wins: its best k items are then found, once for
each user, whatever the number of positions and lambdas that ask for them.

Profiles are compared in float32. Where two come closer than float32 can tell apart, the few that are near are compared again
in float64; so the list is the same as that of trying every item in float64, with ties decided by rule and not by rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from recbole_leaprec.categories import ItemCategories, divergence_saved
from recbole_leaprec.reranking.topk import best_of_rows, top_items
from recbole_leaprec.reranking.workspace import Workspace

# Objectives closer than this are equal, and go to the more relevant item. Without it the winner between two items
# that gain the same would be decided by the last bit of a sum, which no two devices agree on.
TIE = 1e-9

# An objective in float32 is a sum of one term a category of the profile, each of them rounded a few times.
_FLOAT32_STEP = 2.0**-24
_ROUNDINGS = 8

# Stands for -inf in float32: it stays below every objective, and does not become nan where relevance has no weight.
CLOSED = -3e38
SMALLEST_WEIGHT = 1e-28

# Lists (users times settings) and scores worked on at once: what fits into a processor's cache.
COLUMNS = 3072
_SCORES = 2**22

# Profiles are looked into in groups of like size, up to each of these numbers of items.
_SIZES = (64, 512, 4096)


def greedy(scores: Tensor, p: Tensor, categories: ItemCategories, k: int, weights: Tensor, beta: float) -> Tensor:
    """Pick, at each position, the unpicked item that maximises `(1 - w) r_i - w dS_KL(i | picked)`.

    Args:
        scores: `[B, I]` relevance r, -inf for items that are not allowed.
        p: `[B, C]` the preference to calibrate to.
        weights: `[S, k]` float64, the weight w at position 1, 2, ..., k of each of S settings.

    Returns:
        `[S, B, k]` item ids, 0 where a user has no allowed item left.
    """

    def make(some_scores: Tensor, some_p: Tensor, calibrating: Tensor) -> Tensor:
        return GreedyLists(some_scores, some_p, categories, k, calibrating, beta).make()

    return lists_in_chunks(make, scores, p, k, weights)


def lists_in_chunks(
    make: Callable[[Tensor, Tensor, Tensor], Tensor], scores: Tensor, p: Tensor, k: int, weights: Tensor
) -> Tensor:
    """`make(scores, p, weights)` for some users at a time; plain top-k, `make` or no, where relevance alone has weight."""
    weights = weights.to(scores.device)
    calibrated = (weights > 0).any(1)
    if not calibrated.all():
        lists = torch.empty(len(weights), len(scores), k, dtype=torch.long, device=scores.device)
        lists[~calibrated] = top_items(scores, k)
        if calibrated.any():
            lists[calibrated] = lists_in_chunks(make, scores, p, k, weights[calibrated])
        return lists
    users = max(1, min(COLUMNS // len(weights), _SCORES // scores.shape[1]))
    chunks = zip(scores.split(users), p.split(users), strict=True)
    return torch.cat([make(some_scores, some_p, weights) for some_scores, some_p in chunks], 1)


_workspace = Workspace()

Gain = Callable[[Tensor, Tensor], Tensor]
"""What scores of users are worth, `(scores, users) -> worth`; where a score rises, its worth does not fall."""


class _Heads:
    """The best items of each profile for each user.

    Attributes:
        best: `[B, P+1]` the worth of each profile's best score, -inf where a profile has no allowed item.
        values, items: `[., depth+1]` worth and ids of the best items of (user, profile) pairs, best first, then -inf and 0;
            a pair gets a row when it is first asked for.
    """

    def __init__(self, scores: Tensor, categories: ItemCategories, depth: int, gain: Gain | None):
        self.categories, self.depth, self._gain = categories, depth, gain
        profiles = categories.profile_of_item.expand_as(scores)
        self.best = torch.full((len(scores), len(categories.profiles)), -torch.inf, dtype=scores.dtype, device=scores.device)
        self.best.scatter_reduce_(1, profiles, scores, "amax")
        self.best[:, 0] = -torch.inf  # padding
        self.best = self._worth(self.best, torch.arange(len(scores), device=scores.device)[:, None])
        # Items of a profile side by side, so that a pair's scores are one run of memory; a run may be read past the end.
        size = scores.numel() + int(categories.profile_size.max())
        self._runs = _workspace.take("runs", (size,), scores.dtype, scores.device)
        torch.index_select(scores, 1, categories.items_by_profile, out=self._runs[: scores.numel()].view_as(scores))
        self._row = torch.full((self.best.numel(),), -1, dtype=torch.long, device=scores.device)
        self._filled = 0
        shape = (len(scores) * depth, depth + 1)
        self.values = torch.full(shape, -torch.inf, dtype=self.best.dtype, device=scores.device)
        self.items = torch.zeros(shape, dtype=torch.long, device=scores.device)

    def _worth(self, values: Tensor, user: Tensor) -> Tensor:
        return values if self._gain is None else self._gain(values, user).masked_fill_(values == -torch.inf, -torch.inf)

    def rows(self, user: Tensor, profile: Tensor) -> Tensor:
        """Where in `values` and `items` the pairs stand that `find` was asked for."""
        return self._row[user * len(self.categories.profiles) + profile]

    def find(self, user: Tensor, profile: Tensor, position: int) -> None:
        """Give a row to every pair that has none.

        A pair that is first asked for at `position` can give a list no more items than the list has places left, as long as
        items stay where they are; `position` 1 finds as many as there may ever be.
        """
        pair = user * len(self.categories.profiles) + profile
        missing = (self._row[pair] < 0).nonzero()[:, 0]
        if len(missing):
            pair = pair[missing]
            number = torch.arange(len(pair), device=pair.device)
            self._row[pair] = number  # one of those that ask for the same pair stands for all
            missing = missing[self._row[pair] == number]
            self._find(user[missing], profile[missing], self.depth - position + 1)

    def _find(self, user: Tensor, profile: Tensor, depth: int) -> None:
        size = self.categories.profile_size[profile]
        order = size.argsort()
        # Profiles of like size together: a small one is not padded to the largest.
        cuts = torch.searchsorted(size[order], torch.tensor(_SIZES, device=size.device), right=True).tolist()
        for some in order.tensor_split(cuts):
            if len(some):
                self._find_padded(user[some], profile[some], size[some], depth)

    def _find_padded(self, user: Tensor, profile: Tensor, size: Tensor, depth: int) -> None:
        width, first = int(size[-1]), self.categories.profile_begin[profile]
        runs = self._runs.as_strided((len(self._runs) - width + 1, width), (1, 1))
        values = runs[user * self.categories.n_items + first]
        values.masked_fill_(torch.arange(width, device=user.device) >= size[:, None], -torch.inf)
        column, values = best_of_rows(values, min(depth, width))
        place = (first[:, None] + column).clamp_max_(self.categories.n_items - 1)
        items = self.categories.items_by_profile[place].masked_fill_(values == -torch.inf, 0)
        row = torch.arange(self._filled, self._filled + len(user), device=user.device)
        self._filled += len(user)
        while self._filled > len(self.values):
            self.values = torch.cat([self.values, torch.full_like(self.values, -torch.inf)])
            self.items = torch.cat([self.items, torch.zeros_like(self.items)])
        self._row[user * len(self.categories.profiles) + profile] = row
        self.values[row, : column.shape[1]] = self._worth(values, user[:, None])
        self.items[row, : column.shape[1]] = items


class GreedyLists:
    """Lists in the making: S settings times B users, side by side in the last dimension, `[..., S*B]`.

    Args:
        gain: what stands for relevance in the objective; None for the scores.
        items_stay: whether what is on a list stays there.
    """

    def __init__(
        self,
        scores: Tensor,
        p: Tensor,
        categories: ItemCategories,
        k: int,
        weights: Tensor,
        beta: float,
        gain: Gain | None = None,
        items_stay: bool = True,
    ):
        settings, users = len(weights), len(p)
        self.heads, self.categories, self.beta = _Heads(scores, categories, k, gain), categories, beta
        self.items_stay = items_stay
        self.shape = (k, settings, users)
        self.user = torch.arange(users, device=p.device).repeat(settings)
        self.weights = weights.T.repeat_interleave(users, dim=1)
        self.p = p.double().T.repeat(1, settings)
        self.p_of_pair = self.p.float()[categories.pair_category]
        self.picked = torch.zeros_like(self.p)
        # What the best unpicked item of each profile is worth, in float32.
        best = self.heads.best.T.float().clamp_min_(CLOSED)
        self.best = best.repeat(1, settings)
        self.largest = best.where(best > CLOSED, 0).abs().amax(0).repeat(settings)
        self.profiles = torch.zeros(k, settings * users, dtype=torch.long, device=p.device)
        self.items = torch.zeros_like(self.profiles)
        # How far off an objective in float32 may be, as a share of the largest numbers in it.
        self.error = _FLOAT32_STEP * (categories.profile_categories.shape[1] + _ROUNDINGS)
        self.worst = math.log(1 / beta)
        self.count_and_index = torch.stack([torch.ones(len(self.best)), torch.arange(len(self.best))]).to(p.device)

    def make(self) -> Tensor:
        for position in range(1, self.shape[0] + 1):
            self.extend(position)
        return self.lists()

    def lists(self) -> Tensor:
        """`[S, B, k]` item ids."""
        return self.items.view(self.shape).permute(1, 2, 0)

    def margin(self) -> Tensor:
        """`[S*B]`: how far apart two objectives in float32 may be that are equal."""
        return 2 * self.error * (self.largest + self.worst)

    def extend(self, position: int) -> None:
        """Put the item that wins at `position` on every list."""
        weight = self.weights[position - 1]
        objective = self._objective(weight, position)
        near = objective.ge_(objective.amax(0) - self.margin())  # 1 for the profiles that may win, 0 for the rest
        count, index = self.count_and_index @ near
        profile = index.long()
        unsure = (count > 1).nonzero()[:, 0]
        first = position if self.items_stay else 1
        if len(unsure):
            candidate, of = near[:, unsure].nonzero().unbind(1)
            profile[unsure[of]] = candidate  # any of them, for now
            self.heads.find(torch.cat([self.user, self.user[unsure[of]]]), torch.cat([profile, candidate]), first)
            profile[unsure] = self._decide(candidate, unsure, of, weight, position)
        else:
            self.heads.find(self.user, profile, first)

        columns = torch.arange(len(profile), device=profile.device)
        row, taken = self.heads.rows(self.user, profile), self._taken(profile, columns, position)
        self.items[position - 1] = self.heads.items[row, taken]
        self.profiles[position - 1] = profile
        self.picked += self.categories.profiles.index_select(0, profile).T
        following = self.heads.values[row, taken + 1].float().clamp_min_(CLOSED)
        self.best.scatter_(0, profile[None], following[None])
        self.largest = torch.maximum(self.largest, following.where(following > CLOSED, 0).abs())

    def _objective(self, weight: Tensor, position: int) -> Tensor:
        """`[P+1, S*B]` in float32: what the best unpicked item of each profile is worth."""
        weight = weight.float()
        relevance_weight = (1 - weight).clamp_min_(SMALLEST_WEIGHT)
        if position == 1:  # all lists are empty: a profile saves the same under every setting
            _, settings, users = self.shape
            saved = self.categories.saved_by_profile(self.p[:, :users].float(), self.picked[:, :users].float(), 1, self.beta)
            saved = (saved[:, None] * weight.view(settings, users)).flatten(1)
        else:
            out = _workspace.take("pairs", self.p_of_pair.shape, torch.float32, self.p.device)
            of_pair = self.categories.saved_by_pair(self.p_of_pair, self.picked.float(), position, self.beta, out)
            saved = self.categories.sum_by_profile(of_pair.mul_(weight))
        return saved.addcmul_(self.best, relevance_weight)

    def _taken(self, profile: Tensor, column: Tensor, position: int) -> Tensor:
        """How many items of the profile the list in this column has before `position`; at most those that there are."""
        taken = (self.profiles[: position - 1, column] == profile) & (self.items[: position - 1, column] != 0)
        return taken.sum(0)

    def _saved(self, profile: Tensor, column: Tensor, before: Tensor, places: int) -> Tensor:
        """How much an item of the profile saves of S_KL in a list that has `before [n, C]` in its other places, in float64."""
        members, shares = self.categories.profile_categories[profile], self.categories.profile_shares[profile]
        p, before = self.p.T[column].gather(1, members), before.gather(1, members)
        return divergence_saved(p, before, shares, self.beta, places).sum(1)

    def _decide(self, profile: Tensor, columns: Tensor, of: Tensor, weight: Tensor, position: int) -> Tensor:
        """The winning profile of each of `columns`, in float64 and by the rule for ties.

        Candidates come as a flat list: `profile[n]` stands for a place on the list in `columns[of[n]]`.
        """
        column = columns[of]
        row, taken = self.heads.rows(self.user[column], profile), self._taken(profile, column, position)
        relevance, item = self.heads.values[row, taken].double(), self.heads.items[row, taken]
        saved = self._saved(profile, column, self.picked.T[column], position)
        w = weight[column]
        objective = torch.where(w == 1, 0, (1 - w) * relevance) + w * saved
        objective.masked_fill_(relevance == -torch.inf, -torch.inf)
        winner = torch.zeros(len(columns), dtype=torch.long, device=profile.device)
        kept = best_by_rule(of, len(columns), objective, relevance, -item)
        winner[of[kept]] = profile[kept]
        return winner


def best_by_rule(of: Tensor, count: int, objective: Tensor, *rules: Tensor) -> Tensor:
    """Which of some candidates wins: the largest objective, those within `TIE` by the first rule, then by the next.

    Args:
        of: which of `count` decisions a candidate belongs to; the other arguments have a figure for each candidate, too.
    """

    def largest(value: Tensor) -> Tensor:
        empty = torch.full((count,), -torch.inf, dtype=torch.float64, device=value.device)
        return empty.scatter_reduce(0, of, value, "amax")[of]

    kept = objective >= largest(objective) - TIE
    for rule in rules:
        value = rule.double().where(kept, -torch.inf)
        kept &= value == largest(value)
    return kept
