"""The ends of what is allowed, against float64 references; docs/guides/protocol.md states the tolerances."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from recbole_leaprec import ItemCategories, miscalibration, rerank, sequential_preference
from recbole_leaprec.common.defaults import SMALLEST_BETA
from recbole_leaprec.reranking import RERANKERS
from tests import reference
from tests.reranking.test_lists import WEIGHTS

pytestmark = pytest.mark.slow

BELOW_1 = float(np.nextafter(1.0, 0.0))
ALPHAS = [5e-324, 1e-12, 0.5, BELOW_1, 1.0]
BETAS = [SMALLEST_BETA, 1e-6, 0.01, BELOW_1]
SHAPES = [(4, 1), (9, 3), (30_000, 20_000)]
"""Items and categories."""
TYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def catalogue(items: int, categories: int) -> ItemCategories:
    """Items with one category, with two, and some with none, which stands for all."""
    lists = [[f"c{n % categories}", f"c{7 * n % categories}"][: 1 + n % 2] if n % 997 != 1 else [] for n in range(1, items)]
    return ItemCategories.from_lists([[], *lists, *([f"c{c}"] for c in range(categories))])


def eq_2(history: list[int], rows: dict[int, dict[int, float]], alpha: float) -> dict[int, float]:
    """The sequential preference by its sums, exactly rounded; without zeros."""
    weights = [alpha ** (len(history) - 1 - t) for t in range(len(history))]
    terms: dict[int, list[float]] = {}
    for weight, item in zip(weights, history, strict=True):
        for category, share in rows[item].items():
            terms.setdefault(category, []).append(weight * share)
    total = math.fsum(weights)
    return {category: math.fsum(own) / total for category, own in terms.items()}


def eq_4(p: dict[int, float], q: dict[int, float], beta: float) -> float:
    """KL(p || q~), with the logarithm of a quotient as a difference: the quotient of the smallest beta is beyond a float."""
    mixed = {c: math.log((1 - beta) * q.get(c, 0.0) + beta * share) for c, share in p.items() if share}
    return math.fsum(p[c] * (math.log(p[c]) - logarithm) for c, logarithm in mixed.items())


def sparse(categories: ItemCategories, items: list[int]) -> dict[int, dict[int, float]]:
    of, category, share = (part.tolist() for part in categories.entries(torch.tensor(items)))
    rows: dict[int, dict[int, float]] = {item: {} for item in items}
    for place, c, s in zip(of, category, share, strict=True):
        rows[items[place]][c] = s
    return rows


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("length", [1, 2, 50_000])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_preferences(shape, length, alpha):
    categories = catalogue(*shape)
    history = [1 + (31 * n + n // 7) % (categories.n_items - 1) for n in range(length)]
    expected = eq_2(history, sparse(categories, sorted({*history})), alpha)
    got = sequential_preference([history], categories, alpha)[0]
    dense = torch.zeros(categories.n_categories, dtype=torch.float64)
    dense[list(expected)] = torch.tensor(list(expected.values()), dtype=torch.float64)
    assert torch.allclose(got.double(), dense, rtol=1e-6, atol=1e-19)
    assert float(got.double().sum()) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("beta", BETAS)
def test_divergences(shape, beta):
    categories = catalogue(*shape)
    items = list(range(1, min(categories.n_items, 40)))
    rows = sparse(categories, items)
    p = eq_2(items[::-1], rows, 0.5)
    dense = torch.zeros(1, categories.n_categories, dtype=torch.float64)
    dense[0, list(p)] = torch.tensor(list(p.values()), dtype=torch.float64)
    exact = {item: eq_4(p, rows[item], beta) for item in items}
    expected = torch.tensor([list(exact.values())], dtype=torch.float64)
    worst = -math.log(beta)
    # An item without a category is a sum over all of them, and every term of it is rounded.
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-6 + 1e-8 * categories.n_categories)):
        for got in (
            categories.kl(dense.to(dtype), torch.tensor([items]), beta),
            categories.kl_of_shared(dense.to(dtype), torch.tensor(items), beta),
        ):
            assert torch.isfinite(got).all()
            assert float((got.double() - expected).abs().max()) <= tolerance * max(1.0, worst)
    lists = torch.tensor([items])
    q: dict[int, float] = {}
    for item in items:
        for c, share in rows[item].items():
            q[c] = q.get(c, 0.0) + share / len(items)
    assert float(miscalibration(dense, lists, categories, beta)[0]) == pytest.approx(
        eq_4(p, q, beta), abs=1e-12 * max(1, worst)
    )


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("lam", [0.0, 5e-324, 0.5, BELOW_1, 1.0])
@pytest.mark.parametrize("method", sorted(WEIGHTS))
@pytest.mark.parametrize("values", ["equal", "1e8", "finfo.min", "plain"])
def test_greedy_lists(method, lam, beta, values):
    """Every legal end against Eq. 12 tried item by item, for lists of all items (K = I - 1)."""
    categories = catalogue(9, 3)
    plain = torch.linspace(-2, 2, categories.n_items, dtype=torch.float64)[torch.randperm(categories.n_items)]
    scores = {
        "equal": torch.zeros_like(plain),
        "1e8": 1e8 + 16 * plain.round(),
        "finfo.min": torch.where(plain < 0, torch.finfo(torch.float32).min, plain),
        "plain": plain,
    }[values].float()[None]
    rows = reference.rows(categories).tolist()
    p = reference.preference([rows[1], rows[2], rows[5]], 0.9)
    k = categories.n_items - 1
    got = rerank(scores, torch.tensor([p], dtype=torch.float64), categories, k, method, lam, beta)[0].tolist()
    assert sorted(got) == list(range(1, categories.n_items))
    assert got == reference.greedy(scores[0].tolist(), p, rows, k, WEIGHTS[method](lam), beta)


@pytest.mark.parametrize("method", sorted(RERANKERS))
def test_scores_whose_differences_are_no_numbers(method):
    """Scores of 1e308: their difference is infinite, and setwise_raw took it times 0."""
    categories = catalogue(22, 3)
    draw = np.random.default_rng(0)
    for _ in range(100):
        scores = torch.tensor(draw.choice([-1e308, 1e308, 0.0, 0.3, 0.9, -np.inf], (4, categories.n_items)))
        p = torch.tensor(draw.dirichlet([0.3] * 3, 4))
        for lam in (0.0, 0.5, 1.0):
            got = rerank(scores, p, categories, 5, method, lam)
            for row, own in zip(got.tolist(), scores, strict=True):
                listed = [item for item in row if item]
                assert len({*listed}) == len(listed) == min(5, int((own[1:] > -np.inf).sum()))
                assert (own[listed] > -np.inf).all()
            if method == "setwise_raw":
                assert torch.equal(
                    got, rerank(scores.clamp(-1e300, 1e300).where(scores > -np.inf, -np.inf), p, categories, 5, method, lam)
                )


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("method", sorted(RERANKERS))
def test_every_floating_type_and_20000_categories(method, dtype):
    """Whatever the type and the method, a list holds allowed items alone, each once; the float64 list is that of the same scores."""
    categories = catalogue(30_000, 20_000)
    generator = torch.Generator().manual_seed(3)
    scores = torch.randn(2, categories.n_items, generator=generator).to(dtype)
    scores[:, 100:200] = -torch.inf
    p = sequential_preference([[1, 2, 3, 4], list(range(1, 40_000))], categories)
    candidates = 50 if method == "mip" else None  # a solver over 1,000 takes minutes
    got = rerank(scores, p, categories, 5, method, 0.3, candidates=candidates)
    for row in got.tolist():
        assert len({*row}) == 5
        assert not {*row} & {0, *range(100, 200)}
    assert got.tolist() == rerank(scores.double(), p, categories, 5, method, 0.3, candidates=candidates).tolist()
