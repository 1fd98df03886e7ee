"""Random cases: catalogues with shared, single-category and uncategorised items, histories, scores with ties and masks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from hypothesis import strategies as st

from recbole_leaprec import ItemCategories
from tests import reference


@st.composite
def catalogues(draw, max_items: int = 12, max_categories: int = 5):
    """`(names, lists)`: category names of each item, item 0 being padding."""
    names = [f"c{i}" for i in range(draw(st.integers(1, max_categories)))]
    item = st.lists(st.sampled_from(names), max_size=len(names))
    lists = [[], *draw(st.lists(item, min_size=1, max_size=max_items))]
    used = sorted({name for categories in lists for name in categories})
    return (used, lists) if used else (["c0"], [[], ["c0"], *lists[2:]])


@st.composite
def histories(draw, n_items: int, max_length: int = 15):
    return draw(st.lists(st.integers(1, n_items - 1), min_size=1, max_size=max_length))


@st.composite
def preferences(draw, lists, names):
    """A preference as users have them: of a history, with an alpha."""
    history = draw(histories(len(lists)))
    alpha = draw(st.sampled_from([0.1, 0.5, 0.9, 1.0]))
    return reference.preference([reference.distribution(lists[i], names) for i in history], alpha)


@dataclass
class RerankCase:
    """A catalogue and some users; few distinct scores, so that ties are common, some of them masked."""

    categories: ItemCategories
    distributions: list[list[float]]
    scores: list[list[float]]
    p: list[list[float]]
    lam: float

    def tensors(self, dtype=torch.float32) -> tuple[torch.Tensor, torch.Tensor, ItemCategories]:
        return torch.tensor(self.scores, dtype=dtype), torch.tensor(self.p, dtype=torch.float64), self.categories


@st.composite
def rerank_cases(draw, max_users: int = 6) -> RerankCase:
    names, lists = draw(catalogues())
    score = st.one_of(st.sampled_from([-1.0, 0.0, 0.5, 2.0]), st.floats(-5, 5, width=32), st.just(float("-inf")))
    row = st.lists(score, min_size=len(lists) - 1, max_size=len(lists) - 1)
    users = draw(st.integers(1, max_users))
    return RerankCase(
        categories=ItemCategories.from_lists(lists),
        distributions=[reference.distribution(categories, names) for categories in lists],
        scores=[[0.0, *draw(row)] for _ in range(users)],
        p=[draw(preferences(lists, names)) for _ in range(users)],
        lam=draw(st.sampled_from([step / 10 for step in range(11)])),
    )
