"""Item categories: profiles, and the closed form of the KL divergence in the loss, the rerankers and the metrics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

# A category with a smaller share of a preference adds less than 1e-18 to any divergence. Dividing by a smaller
# number would overflow float32: with alpha = 0.9 a category last seen 800 steps ago has a share of 1e-37.
_SMALLEST_SHARE = 1e-20

_AT_ONCE = 2**22
"""How many terms of a divergence are held at a time."""


def divergence_saved(
    p: Tensor, before: Tensor | None, added: Tensor, beta: float, k: int = 1, out: Tensor | None = None
) -> Tensor:
    """By how much KL(p || q~) falls in each category when a list of k items gets `added` on top of `before`.

    This is `p log(q~_after / q~_before)` with `q~ = (1-beta) q + beta p` (Eq. 4), where q is the category's sum over the
    list divided by k. It equals `p log(1 + added / (before + k beta / (1-beta) p))`, and is 0 where p is 0. An empty list
    has `KL(p || beta p) = log(1/beta)`, so every divergence here is that number minus a sum of these terms.

    Args:
        before, added: sums of p(c|i) over items, not means; None for an empty list.
        out: where to write the result; may be `before`.
    """
    smoothing = k * beta / (1 - beta)
    smoothed = torch.mul(p, smoothing, out=out) if before is None else torch.add(before, p, alpha=smoothing, out=out)
    smoothed.clamp_min_(smoothing * _SMALLEST_SHARE)
    return torch.div(added, smoothed, out=out).add_(1).log_().mul_(p)


def _begin(count: Tensor) -> Tensor:
    """The begin of each of several consecutive runs with these lengths; the last entry is the end of the last run."""
    return torch.cat([count.new_zeros(1), count.cumsum(0)])


class ItemCategories:
    """p(c|i) of every item, and the few distinct category *profiles* of the items.

    Item 0 is padding and has no category. An item without categories belongs to all of them in equal shares. Items with
    the same set of categories share a profile; profile 0 is only for the padding. The memory grows with the total number of
    categories of the profiles, and not with items times categories.

    Attributes:
        names: the C category names.
        profile_of_item: `[I]`, the profile of each item.
        members: `[M]`, the categories of profile 0, then those of profile 1, and so on, rising within a profile.
        member_begin: `[P+2]`; the categories of profile j are `members[member_begin[j]:member_begin[j+1]]`.
        profile_begin, items_by_profile: `[P+2]`, `[I]`, in the same way the items of each profile, by rising id.
        pair_category, pair_share: the (category, p(c|i)) pairs that occur, by category and rising number of categories.
            `pair_of_member [M]` is the pair of each member. The pairs of category c are those from `category_begin[c]`
            to `category_begin[c+1]`.
        pair_begin, profile_by_pair: `[pairs+1]`, `[M]`, in the same way the profiles that have each pair.

    Example:
        >>> categories = ItemCategories.from_lists([[], ["Action", "Drama"], ["Comedy"], ["Drama", "Action"]])
        >>> categories.names
        ['Action', 'Comedy', 'Drama']
        >>> categories.shares(torch.tensor([1, 2])).tolist()
        [[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]]
        >>> categories.profile_of_item.tolist()
        [0, 1, 2, 1]
    """

    def __init__(self, names: Sequence[str], members: Sequence[Iterable[int]]):
        """`members[i]` holds the category indices of item i. `members[0]` is for the padding and must be empty."""
        self.names = list(names)
        if not self.names:
            raise ValueError("no item has any category: there is nothing to calibrate")
        sets = [tuple(sorted(set(categories))) for categories in members]
        if not sets or sets[0]:
            raise ValueError("item 0 is padding and must have no categories")
        self._bare = torch.tensor([not categories for categories in sets])
        everything = tuple(range(len(self.names)))
        known = {*sets[1:]} - {()} | ({everything} if self.uncategorised else set())
        profiles = [(), *sorted(known)]
        if any(profile[0] < 0 or profile[-1] >= len(self.names) for profile in profiles[1:]):
            raise ValueError(f"a category index is not from 0 to {len(self.names) - 1}, the last of the categories")
        index = {profile: number for number, profile in enumerate(profiles)}
        index[()] = index.get(everything, 0)
        self.profile_of_item = torch.tensor([0, *(index[categories] for categories in sets[1:])])

        size = torch.tensor([len(profile) for profile in profiles])
        self._index(size, torch.tensor([c for profile in profiles for c in profile], dtype=torch.long))

    def _index(self, size: Tensor, members: Tensor) -> None:
        """Fill the tables from `profile_of_item`, the number of categories per profile and their `members`."""
        self.members, self.member_begin = members, _begin(size)
        self._largest = int(size.max())
        self.items_by_profile = self.profile_of_item.argsort(stable=True)
        self.profile_begin = _begin(torch.bincount(self.profile_of_item, minlength=len(size)))
        # A pair as one number: logs are computed only for pairs that occur.
        base = len(self.names) + 1
        pairs, self.pair_of_member = torch.unique(
            self.members * base + torch.repeat_interleave(size, size), return_inverse=True
        )
        self.pair_category, self.pair_share = pairs // base, 1 / (pairs % base).double()
        self.category_begin = _begin(torch.bincount(self.pair_category, minlength=len(self.names)))
        self.pair_begin = _begin(torch.bincount(self.pair_of_member, minlength=len(pairs)))
        self.profile_by_pair = torch.repeat_interleave(size)[self.pair_of_member.argsort(stable=True)]

    @classmethod
    def from_lists(cls, lists: Sequence[Iterable[str]]) -> ItemCategories:
        """The categories of items from a list of category names per item id. Entry 0, the padding, is empty."""
        names = sorted({name for categories in lists for name in categories})
        index = {name: c for c, name in enumerate(names)}
        return cls(names, [[index[name] for name in categories] for categories in lists])

    def only(self, items: Tensor) -> ItemCategories:
        """The categories of only these items `[N]`, which get the ids 1 to N. Profiles that none of them has are dropped.

        Example:
            >>> categories = ItemCategories.from_lists([[], ["Action", "Drama"], ["Comedy"], ["Drama"]])
            >>> categories.only(torch.tensor([3, 2])).shares(torch.tensor([1, 2])).tolist()
            [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
        """
        items = torch.cat([items.new_zeros(1), items])
        part = object.__new__(ItemCategories)
        part.names, part._bare = self.names, self._bare[items]
        profiles, part.profile_of_item = torch.unique(self.profile_of_item[items], return_inverse=True)
        size = self.member_begin[profiles + 1] - self.member_begin[profiles]
        part._index(size, self.members[self._members_of(profiles)[1]])
        return part

    @property
    def uncategorised(self) -> int:
        """How many items had no category."""
        return int(self._bare[1:].sum())

    @property
    def n_items(self) -> int:
        """Number of item ids, padding included."""
        return len(self.profile_of_item)

    @property
    def n_categories(self) -> int:
        return len(self.names)

    @property
    def n_profiles(self) -> int:
        """Number of profiles, without that of the padding."""
        return len(self.profile_begin) - 2

    @property
    def device(self) -> torch.device:
        return self.members.device

    def to(self, device: torch.device | str) -> ItemCategories:
        """The same categories with every tensor on `device`."""
        if self.device == torch.device(device):
            return self

        moved = object.__new__(ItemCategories)
        for name, value in self.__dict__.items():
            setattr(moved, name, value.to(device) if isinstance(value, Tensor) else value)
        return moved

    def _members_of(self, profile: Tensor) -> tuple[Tensor, Tensor]:
        """For each category of profiles `[N]`: the index of the profile among the N, and the index in `members`."""
        size = self.member_begin[profile + 1] - self.member_begin[profile]
        of = torch.repeat_interleave(size)
        return of, torch.arange(len(of), device=of.device) - (size.cumsum(0) - size - self.member_begin[profile])[of]

    def entries(self, items: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """`(which, category, share)` of every category of the items `[N]`: p(c|i) without its zeros, item after item.

        `which` is the index of the item among the N.

        Example:
            >>> categories = ItemCategories.from_lists([[], ["Action", "Drama"], ["Drama"]])
            >>> [part.tolist() for part in categories.entries(torch.tensor([2, 1]))]
            [[0, 1, 1], [1, 0, 1], [1.0, 0.5, 0.5]]
        """
        of, member = self._members_of(self.profile_of_item[items])
        return of, self.members[member], self.pair_share[self.pair_of_member[member]]

    def add_shares(self, sums: Tensor, items: Tensor, rows: Tensor | None = None, weights: Tensor | None = None) -> Tensor:
        """Add p(.|i) of items `[N, ...]` to the rows `[R, C]` of `sums`, in place.

        Args:
            rows: `[N]`, the row of `sums` for each of the N entries of `items`; None if entry n belongs to row n.
            weights: `[N]`, a factor for the shares of each entry; None for 1.

        Example:
            >>> categories = ItemCategories.from_lists([[], ["Action", "Drama"], ["Drama"]])
            >>> categories.add_shares(torch.zeros(1, 2), torch.tensor([[1, 2, 2]]))
            tensor([[0.5000, 2.5000]])
        """
        flat, width = items.flatten(), items[0].numel() if len(items) else 1
        for some in self._pieces(flat):
            of, category, share = self.entries(flat[some])
            of = (of + some.start) // width
            if weights is not None:
                share = share * weights[of]
            row = of if rows is None else rows[of]
            sums.view(-1).index_add_(0, row * self.n_categories + category, share.to(sums.dtype))
        return sums

    def _pieces(self, items: Tensor) -> list[slice]:
        """Slices of items `[N]`, each with few enough categories to be held at a time.

        A few items can have many categories, because an item without one belongs to all.
        """
        if len(items) * self._largest <= _AT_ONCE:  # a check that does not wait for a device
            return [slice(0, len(items))]
        profile = self.profile_of_item[items]
        before = (self.member_begin[profile + 1] - self.member_begin[profile]).cumsum(0).cpu()
        edges = torch.searchsorted(before, _AT_ONCE * torch.arange(1, int(before[-1]) // _AT_ONCE + 1)).unique().tolist()
        return [slice(begin, end) for begin, end in zip([0, *edges], [*edges, len(items)], strict=True) if begin < end]

    def shares(self, items: Tensor) -> Tensor:
        """p(.|i) of items `[...]`, `[..., C]` float64: 1/n_i for each of the n_i categories of the item, else 0."""
        rows = torch.zeros(items.numel(), self.n_categories, dtype=torch.float64, device=self.device)
        return self.add_shares(rows, items.flatten()).view(*items.shape, self.n_categories)

    def kl(self, p: Tensor, items: Tensor, beta: float = 0.01) -> Tensor:
        """KL(p || p~_i) for one item per preference, the miscalibration in Eq. 10.

        `log(1/beta) - sum_{c in i} p_c log(1 + (1-beta) / (n_i beta p_c))`

        Args:
            p: `[..., C]`, each row sums to one.
            items: `[...]`, or `[..., M]` for M items per preference.

        Example:
            >>> categories = ItemCategories.from_lists([[], ["Action"], ["Drama"]])
            >>> categories.kl(torch.tensor([[0.7, 0.3]]), torch.tensor([[1, 2]])).round(decimals=4)
            tensor([[1.1340, 2.8645]])
        """
        of, category, share = self.entries(items.flatten())
        row = of // items.shape[-1] if items.dim() == p.dim() else of
        p_of_member = p.reshape(-1)[row * self.n_categories + category]
        saved = torch.zeros(items.numel(), dtype=p.dtype, device=p.device)
        saved.index_add_(0, of, divergence_saved(p_of_member, None, share.to(p.dtype), beta))
        return math.log(1 / beta) - saved.view(items.shape)

    def kl_of_shared(self, p: Tensor, items: Tensor, beta: float = 0.01) -> Tensor:
        """KL(p || p~_i) of the same M items for N preferences `[N, C]`, as `[N, M]`.

        It is computed once per profile, and logs once per (category, share) pair.

        Example:
            >>> categories = ItemCategories.from_lists([[], ["Action"], ["Drama"]])
            >>> categories.kl_of_shared(torch.tensor([[0.7, 0.3], [1.0, 0.0]]), torch.tensor([1, 2])).round(decimals=4)
            tensor([[1.1340, 2.8645],
                    [0.0000, 4.6052]])
        """
        profiles, profile = self.profile_of_item[items].unique(return_inverse=True)
        of, member = self._members_of(profiles)
        pairs, column = self.pair_of_member[member].unique(return_inverse=True)
        category, share = self.pair_category[pairs], self.pair_share[pairs].to(p.dtype)
        has = torch.zeros(len(profiles), len(pairs), dtype=p.dtype, device=p.device)
        has[of, column] = 1
        kl = p.new_empty(len(p), len(items))
        some = max(1, _AT_ONCE // max(1, len(pairs)))  # with many categories, the terms of all rows would fill the memory
        for rows, out in zip(p.split(some), kl.split(some), strict=True):
            by_profile = divergence_saved(rows[:, category], None, share, beta) @ has.T
            torch.index_select(by_profile.neg_().add_(math.log(1 / beta)), 1, profile, out=out)
        return kl

    def saved_by_pair(self, p_of_pair: Tensor, picked: Tensor, k: int, beta: float) -> Tensor:
        """By how much each (category, share) pair of the k-th item lowers the S_KL of a list, `[M, N]`.

        `sum_by_profile` adds these terms up to the savings of items. A larger saving is better:
        `S_KL(picked + i) = constant - saved`, where the constant (the divergence of only the picked items, spread over k
        places) is the same for every i.

        Args:
            p_of_pair: `[M, N]`, p of each pair's category, one column per list.
            picked: `[C, N]`, the sum of p(.|i) over the k-1 items picked so far.
        """
        before = picked[self.pair_category]
        return divergence_saved(p_of_pair, before, self.pair_share.to(before.dtype)[:, None], beta, k, out=before)

    def sum_by_profile(self, of_pair: Tensor) -> Tensor:
        """For each profile, the sum of the terms `[M, N]` of its pairs, `[P+1, N]`."""
        if not of_pair.shape[1]:  # embedding_bag fails on an empty float32 tensor with two threads
            return of_pair.new_zeros(self.n_profiles + 1, 0)
        return embedding_bag(self.pair_of_member, of_pair, self.member_begin[:-1], mode="sum")
