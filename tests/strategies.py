"""Random cases: catalogues with shared, single-category and uncategorised items, histories, scores with ties and masks."""

from __future__ import annotations

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


@st.composite
def rerank_cases(draw):
    """`(categories, distributions, scores, p, lam)`; few distinct scores, so that ties are common, some masked."""
    names, lists = draw(catalogues())
    score = st.one_of(st.sampled_from([-1.0, 0.0, 0.5, 2.0]), st.floats(-5, 5, width=32), st.just(float("-inf")))
    scores = [0.0, *draw(st.lists(score, min_size=len(lists) - 1, max_size=len(lists) - 1))]
    lam = draw(st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.9, 1.0]))
    distributions = [reference.distribution(categories, names) for categories in lists]
    return ItemCategories.from_lists(lists), distributions, scores, draw(preferences(lists, names)), lam
