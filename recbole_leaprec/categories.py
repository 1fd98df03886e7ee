"""Item categories: profiles and the closed-form KL divergence that the loss, the rerankers and the metrics share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

# Below this, a category's share of a preference adds less than 1e-18 to any divergence. Dividing by something
# smaller would overflow float32: with alpha = 0.9 a category last seen 800 steps ago has a share of 1e-37.
_SMALLEST_SHARE = 1e-20


def divergence_saved(
    p: Tensor, before: Tensor | None, added: Tensor, beta: float, k: int = 1, out: Tensor | None = None
) -> Tensor:
    """How much KL(p || q~) falls in each category when a list of k items gets `added` on top of `before`.

    `p log(q~_after / q~_before)` with `q~ = (1-beta) q + beta p` (Eq. 4) and q the category's sum over the list divided by
    k; that is `p log(1 + added / (before + k beta / (1-beta) p))`, 0 where p is 0. An empty list has
    `KL(p || beta p) = log(1/beta)`, so every divergence here is that figure less a sum of these terms.

    Args:
        before, added: sums of p(c|i) over items, not means; None for an empty list.
        out: where to write the result; may be `before`.
    """
    smoothing = k * beta / (1 - beta)
    smoothed = torch.mul(p, smoothing, out=out) if before is None else torch.add(before, p, alpha=smoothing, out=out)
    smoothed.clamp_min_(smoothing * _SMALLEST_SHARE)
    return torch.div(added, smoothed, out=out).add_(1).log_().mul_(p)


class ItemCategories:
    """p(c|i) of every item, and the few distinct category *profiles* that the items fall into.

    Item 0 is padding and has no category. An item without categories spreads over all of them. Items with the same
    set of categories share a profile; profile 0 is the padding's alone.

    Attributes:
        names: the C category names.
        distribution: `[I, C]` float64, p(c|i) = 1/n_i for each of the n_i categories of item i.
        profile_of_item: `[I]`, the profile of each item.
        profiles: `[P+1, C]` float64, p(c|profile).
        profile_categories, profile_shares: `[P+1, n]` the categories of each profile and p(c|profile) of each, the
            smaller profiles filled up with share 0.
        items_by_profile: `[I]` item ids, those of a profile side by side, by rising id; profile j has `profile_size[j]` of
            them from `profile_begin[j]` on.
        pair_category, pair_share: `[M]` the (category, share) pairs that occur.
        uncategorised: how many items had no category.

    Example:
        >>> categories = ItemCategories.from_lists([[], ["Action", "Drama"], ["Comedy"], ["Drama", "Action"]])
        >>> categories.names
        ['Action', 'Comedy', 'Drama']
        >>> categories.distribution[1].tolist()
        [0.5, 0.0, 0.5]
        >>> categories.profile_of_item.tolist()
        [0, 1, 2, 1]
    """

    def __init__(self, names: Sequence[str], members: Sequence[Iterable[int]]):
        """`members[i]` holds the category indices of item i; `members[0]`, the padding's, must be empty."""
        self.names = list(names)
        if not self.names:
            raise ValueError("no item has any category: there is nothing to calibrate")
        sets = [tuple(sorted(set(categories))) for categories in members]
        if not sets or sets[0]:
            raise ValueError("item 0 is padding and must have no categories")
        everything = tuple(range(len(self.names)))
        self.uncategorised = sum(not categories for categories in sets[1:])
        sets[1:] = [categories or everything for categories in sets[1:]]

        profiles = [(), *sorted(set(sets[1:]))]
        if any(profile[-1] >= len(self.names) for profile in profiles[1:]):
            raise ValueError(f"a category index is not below the number of categories ({len(self.names)})")
        index = {profile: number for number, profile in enumerate(profiles)}
        self.profile_of_item = torch.tensor([index[categories] for categories in sets])

        # The categories of each profile, filled up with category 0 at share 0.
        size = torch.tensor([[len(profile)] for profile in profiles])
        width = int(size.max())
        self.profile_categories = torch.tensor([[*profile, *[0] * (width - len(profile))] for profile in profiles])
        self.profile_shares = (torch.arange(width) < size).double() / size.clamp_min(1)
        self.profiles = torch.zeros(len(profiles), len(self.names), dtype=torch.float64)
        self.profiles.scatter_add_(1, self.profile_categories, self.profile_shares)
        self.distribution = self.profiles[self.profile_of_item]

        self.items_by_profile = self.profile_of_item.argsort(stable=True)
        self.profile_size = torch.bincount(self.profile_of_item)
        self.profile_begin = self.profile_size.cumsum(0) - self.profile_size
        self.pair_category, self.pair_share, pair_of = self._pairs()
        # The pairs of profile 0, then those of profile 1, and so on.
        self._pairs_by_profile = pair_of[torch.arange(width) < size]
        self._pairs_begin = size[:, 0].cumsum(0) - size[:, 0]

    @classmethod
    def from_lists(cls, lists: Sequence[Iterable[str]]) -> ItemCategories:
        """From the category names of each item; the index is the item id and entry 0, the padding, is empty."""
        names = sorted({name for categories in lists for name in categories})
        index = {name: c for c, name in enumerate(names)}
        return cls(names, [[index[name] for name in categories] for categories in lists])

    def _pairs(self) -> tuple[Tensor, Tensor, Tensor]:
        """The (category, share) pairs that occur, and which of them each profile has: logs are taken for these alone."""
        keys = torch.stack([self.profile_categories.double(), self.profile_shares], dim=-1)
        pairs, inverse = torch.unique(keys.flatten(0, 1), dim=0, return_inverse=True)
        return pairs[:, 0].long(), pairs[:, 1], inverse.view_as(self.profile_categories)

    @property
    def n_items(self) -> int:
        """Number of item ids, padding included."""
        return len(self.profile_of_item)

    @property
    def n_categories(self) -> int:
        return len(self.names)

    @property
    def n_profiles(self) -> int:
        """Number of profiles, the padding's not included."""
        return len(self.profiles) - 1

    def to(self, device: torch.device | str) -> ItemCategories:
        """The same categories with every tensor on `device`."""
        if self.distribution.device == torch.device(device):
            return self

        moved = object.__new__(ItemCategories)
        for name, value in self.__dict__.items():
            setattr(moved, name, value.to(device) if isinstance(value, Tensor) else value)
        return moved

    def kl(self, p: Tensor, items: Tensor, beta: float = 0.01) -> Tensor:
        """KL(p || p~_i) for one item a preference, the miscalibration in Eq. 10.

        `log(1/beta) - sum_{c in i} p_c log(1 + (1-beta) / (n_i beta p_c))`

        Args:
            p: `[..., C]`, each row sums to one.
            items: `[...]`, or `[..., M]` for M items a preference.

        Example:
            >>> categories = ItemCategories.from_lists([[], ["Action"], ["Drama"]])
            >>> categories.kl(torch.tensor([[0.7, 0.3]]), torch.tensor([[1, 2]])).round(decimals=4)
            tensor([[1.1340, 2.8645]])
        """
        profile = self.profile_of_item[items]
        index, share = self.profile_categories[profile], self.profile_shares[profile].to(p.dtype)
        several = items.dim() == p.dim()
        of_item = p.gather(-1, index.flatten(-2) if several else index).view(index.shape)
        return math.log(1 / beta) - divergence_saved(of_item, None, share, beta).sum(-1)

    def kl_of_shared(self, p: Tensor, items: Tensor, beta: float = 0.01) -> Tensor:
        """`[N, M]`: KL(p || p~_i) of the same M items for N preferences `[N, C]`; logs are taken once a (category, share) pair.

        Example:
            >>> categories = ItemCategories.from_lists([[], ["Action"], ["Drama"]])
            >>> categories.kl_of_shared(torch.tensor([[0.7, 0.3], [1.0, 0.0]]), torch.tensor([1, 2])).round(decimals=4)
            tensor([[1.1340, 2.8645],
                    [0.0000, 4.6052]])
        """
        share = self.pair_share.to(p.dtype)
        saved = divergence_saved(p[:, self.pair_category], None, share, beta)
        pairs_of = self.sum_by_profile(torch.eye(len(share), dtype=p.dtype, device=p.device))[self.profile_of_item[items]]
        return math.log(1 / beta) - saved @ pairs_of.T

    def saved_by_pair(self, p_of_pair: Tensor, picked: Tensor, k: int, beta: float, out: Tensor | None = None) -> Tensor:
        """`[M, N]`: what each (category, share) pair saves of S_KL at place k; the terms of `saved_by_profile`.

        Args:
            p_of_pair: `[M, N]`, p of each pair's category.
            picked: `[C, N]`.
        """
        before = torch.index_select(picked, 0, self.pair_category, out=out)
        return divergence_saved(p_of_pair, before, self.pair_share.to(before.dtype)[:, None], beta, k, out=before)

    def sum_by_profile(self, of_pair: Tensor) -> Tensor:
        """`[P+1, N]`: for each profile, the sum of the terms `[M, N]` of the pairs that it has."""
        return embedding_bag(self._pairs_by_profile, of_pair, self._pairs_begin, mode="sum")

    def saved_by_profile(self, p: Tensor, picked: Tensor, k: int, beta: float = 0.01) -> Tensor:
        """`[P+1, N]`: how much of S_KL an item of each profile saves as the k-th of a list; what a greedy step ranks by.

        Less is better in S_KL and more is better here: `S_KL(picked + i) = constant - saved`, where the constant (the
        divergence of the picked items alone, spread over k places) is the same for every i.

        Args:
            p: `[C, N]`, a column a list.
            picked: `[C, N]`, the sum of p(.|i) over the k-1 items picked so far.
        """
        return self.sum_by_profile(self.saved_by_pair(p[self.pair_category], picked, k, beta))
