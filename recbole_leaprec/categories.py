"""Item categories: profiles and the closed-form KL divergence that the loss, the rerankers and the metrics share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

# Below this, a category's share of a preference adds less than 1e-18 to any divergence. Dividing by something
# smaller would overflow float32: with alpha = 0.9 a category last seen 800 steps ago has a share of 1e-37.
_SMALLEST_SHARE = 1e-20


def divergence_saved(p: Tensor, before: Tensor | float, added: Tensor | float, beta: float) -> Tensor:
    """How much KL(p || q~) falls in each category when `added` is put on top of the share `before` of q.

    `p log((q~ + (1-beta) added) / q~)` with `q~ = (1-beta) before + beta p` (Eq. 4), 0 where p is 0. An empty list has
    `KL(p || beta p) = log(1/beta)`, so every divergence here is that figure less a sum of these terms.
    """
    smoothed = (1 - beta) * before + beta * p
    return p * torch.log1p((1 - beta) * added / smoothed.clamp_min(beta * _SMALLEST_SHARE))


class ItemCategories:
    """p(c|i) of every item, and the few distinct category *profiles* that the items fall into.

    Item 0 is padding and has no category. An item without categories spreads over all of them. Items with the same
    set of categories share a profile; profile 0 is the padding's alone.

    Attributes:
        names: the C category names.
        distribution: `[I, C]` float64, p(c|i) = 1/n_i for each of the n_i categories of item i.
        profile_of_item: `[I]`, the profile of each item.
        profiles: `[P+1, C]` float64, p(c|profile).
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

        index: dict[tuple[int, ...], int] = {}
        self.profile_of_item = torch.tensor([index.setdefault(categories, len(index)) for categories in sets])
        profiles = list(index)
        width = max(map(len, profiles), default=0)
        if width and max(max(profile, default=0) for profile in profiles) >= len(self.names):
            raise ValueError(f"a category index is not below the number of categories ({len(self.names)})")

        # The categories of each profile, filled up with category 0 at weight 0.
        self._profile_categories = torch.tensor([[*profile, *[0] * (width - len(profile))] for profile in profiles])
        size = torch.tensor([[len(profile)] for profile in profiles])
        filled = torch.arange(width) < size
        self._profile_shares = filled.double() / size.clamp_min(1)
        self.profiles = torch.zeros(len(profiles), len(self.names), dtype=torch.float64)
        self.profiles.scatter_add_(1, self._profile_categories, self._profile_shares)
        self._pair_of_profile, self._pair_category, self._pair_share = self._pairs()
        self._item_categories = self._profile_categories[self.profile_of_item]
        self._item_shares = self._profile_shares[self.profile_of_item]
        self.distribution = self.profiles[self.profile_of_item]

    @classmethod
    def from_lists(cls, lists: Sequence[Iterable[str]]) -> ItemCategories:
        """From the category names of each item; the index is the item id and entry 0, the padding, is empty."""
        names = sorted({name for categories in lists for name in categories})
        index = {name: c for c, name in enumerate(names)}
        return cls(names, [[index[name] for name in categories] for categories in lists])

    def _pairs(self) -> tuple[Tensor, Tensor, Tensor]:
        """The (category, share) pairs that occur: logs are taken for these alone, then summed by profile."""
        keys = torch.stack([self._profile_categories.double(), self._profile_shares], dim=-1)
        pairs, inverse = torch.unique(keys.flatten(0, 1), dim=0, return_inverse=True)
        return inverse.view_as(self._profile_categories), pairs[:, 0].long(), pairs[:, 1]

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
        moved = object.__new__(ItemCategories)
        moved.__dict__.update({k: v.to(device) if isinstance(v, Tensor) else v for k, v in self.__dict__.items()})
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
        several = items.dim() == p.dim()
        index = self._item_categories[items]
        share = self._item_shares[items].to(p.dtype)
        of_item = p.gather(-1, index.flatten(-2) if several else index).view(index.shape)
        return math.log(1 / beta) - divergence_saved(of_item, 0.0, share, beta).sum(-1)

    def saved_by_profile(self, p: Tensor, picked: Tensor, k: int, beta: float = 0.01) -> Tensor:
        """`[B, P+1]`: how much of S_KL an item of each profile saves as the k-th of a list; what a greedy step ranks by.

        Less is better in S_KL and more is better here: `S_KL(picked + i) = constant - saved`, where the constant (the
        divergence of the picked items alone, spread over k places) is the same for every i.

        Args:
            p: `[B, C]`.
            picked: `[B, C]`, the sum of p(.|i) over the k-1 items picked so far.
        """
        of_pair = p[:, self._pair_category]
        before = picked[:, self._pair_category] / k
        saved = divergence_saved(of_pair, before, self._pair_share.to(p.dtype) / k, beta)
        # Summed column by column: the order of the additions, and so the last bit, is the same for any batch size.
        total = torch.zeros(len(p), len(self.profiles), dtype=p.dtype, device=p.device)
        for column in self._pair_of_profile.unbind(1):
            total += saved[:, column]
        return total
