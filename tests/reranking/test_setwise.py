"""The set-level reranker against exhaustive search, and against where it starts from."""

from itertools import combinations

import pytest
import torch

from recbole_leaprec import ItemCategories, miscalibration, rerank
from recbole_leaprec.reranking import rerank_sweep
from recbole_leaprec.reranking.topk import by_relevance

LAMBDAS = [0.0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0]
METHODS = ["setwise", "setwise_raw"]


def random_case(seed: int, users: int = 6):
    """`(scores, p, categories, k)`, small enough to try every set."""
    draw = torch.Generator().manual_seed(seed)
    n_categories, n_items, k = (int(torch.randint(low, high, (), generator=draw)) for low, high in ((2, 8), (6, 14), (2, 6)))
    members = torch.rand(n_items, n_categories, generator=draw) < 0.35
    categories = ItemCategories(
        [f"c{c}" for c in range(n_categories)], [(), *(row.nonzero()[:, 0].tolist() for row in members)]
    )
    scores = torch.randn(users, n_items + 1, generator=draw) * 3 * torch.rand((), generator=draw)
    p = torch._sample_dirichlet(torch.full((users, n_categories), 0.5), draw)
    return scores, p, categories, k


def objective(scores, p, categories, lists, lam, method):
    """`(1 - lambda) sum g - lambda S_KL` as written; lists `[B, k]` of items, none missing."""
    g = scores[:, 1:].double()
    if method == "setwise":
        g = g.softmax(1)
    return (1 - lam) * g.gather(1, lists - 1).sum(1) - lam * miscalibration(p, lists, categories)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_sets_are_the_best_of_all_nearly_always(method):
    missed = []
    for seed in range(100):
        scores, p, categories, k = random_case(seed)
        every = torch.tensor(list(combinations(range(1, categories.n_items), k)))
        worth = scores[:, 1:].double().softmax(1) if method == "setwise" else scores[:, 1:].double()
        gains = torch.stack([worth[:, one - 1].sum(1) for one in every])
        divergences = torch.stack([miscalibration(p, one.expand(len(p), -1), categories) for one in every])
        for lam, lists in zip(LAMBDAS, rerank_sweep(scores, p, categories, k, method, LAMBDAS), strict=True):
            values = (1 - lam) * gains - lam * divergences
            gap = values.amax(0) - objective(scores, p, categories, lists, lam, method)
            missed += (gap / (values.amax(0) - values.amin(0)).clamp_min(1e-12)).tolist()
    missed = torch.tensor(missed)  # as a share of what there is between the best set and the worst
    assert (missed <= 1e-7).double().mean() >= 0.995
    assert missed.max() <= 0.01


def larger_case(users: int = 40):
    draw = torch.Generator().manual_seed(1)
    members = [torch.randperm(6, generator=draw)[: 1 + n % 3].tolist() for n in range(80)]
    categories = ItemCategories(list("abcdef"), [(), *members])
    scores = torch.randn(users, 81, generator=draw).round(decimals=1)
    return scores, torch._sample_dirichlet(torch.full((users, 6), 0.4), draw), categories


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("lam", LAMBDAS)
def test_a_set_is_never_worse_than_greedy_lists_and_top_k(method, lam):
    scores, p, categories = larger_case()
    g = scores.double()
    if method == "setwise":
        g = torch.cat([g[:, :1], g[:, 1:].softmax(1)], 1)
    found = objective(scores, p, categories, rerank(scores, p, categories, 10, method, lam), lam, method)
    starts = [rerank(g, p, categories, 10, "calirec_plus", start) for start in (lam / (4 - 3 * lam), lam)]
    for start in (*starts, rerank(scores, p, categories, 10, "none")):
        assert (found >= objective(scores, p, categories, start, lam, method) - 1e-9).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [1e15, 1e30, 1e300, 1e308])
def test_one_score_far_above_the_others_has_no_swap_go_on_for_ever(size, method):
    """Found by tests/fuzz: three items left and came back, since what they are worth together was lost in rounding."""
    categories = ItemCategories.from_lists([[], *([name] for name in ["Action", "Drama"] * 10)])
    p = torch.tensor([[1.0, 0.0], [0.3, 0.7]])
    few = torch.full((2, 21), -torch.inf, dtype=torch.float64)
    few[:, [9, 11, 1]] = torch.tensor([0.6, 0.0, size], dtype=torch.float64)
    assert rerank(few, p, categories, 3, method, 0.5).tolist() == [[1, 9, 11]] * 2
    scores = torch.randn(2, 21, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    scores[:, [3, 6]] = torch.tensor([size, -size], dtype=torch.float64)
    lists = rerank(scores, p, categories, 5, method, 0.5)
    assert (lists[:, 0] == 3).all()
    assert not (lists == 6).any()
    assert all(len(set(one)) == 5 for one in lists.tolist())


@pytest.mark.parametrize("size", [1e-30, 1e3, 1e6, 1e9, 1e12, 1e15, 1e30])
@pytest.mark.parametrize("method", METHODS)
def test_scores_of_any_size_come_to_an_end(method, size):
    scores, p, categories = larger_case(200)
    scores = scores.double() * size
    for lam, lists in zip(LAMBDAS, rerank_sweep(scores, p, categories, 10, method, LAMBDAS), strict=True):
        found = objective(scores, p, categories, lists, lam, method)
        top = objective(scores, p, categories, rerank(scores, None, categories, 10, "none"), lam, method)
        assert (found >= top - 1e-9 - 1e-11 * top.abs()).all()


@pytest.mark.parametrize("method", METHODS)
def test_lambda_1_is_more_calibrated_than_any_greedy_list(method):
    scores, p, categories = larger_case()
    found = miscalibration(p, rerank(scores, p, categories, 10, method, 1.0), categories)
    greedy = miscalibration(p, rerank(scores, p, categories, 10, "leaprec", 1.0), categories)
    assert (found <= greedy + 1e-9).all()
    assert (found < greedy - 1e-6).any()


@pytest.mark.parametrize("method", METHODS)
def test_sets_come_by_relevance_and_a_sweep_is_one_set_a_lambda(method):
    scores, p, categories = larger_case()
    sweep = rerank_sweep(scores, p, categories, 10, method, LAMBDAS)
    for lam, lists in zip(LAMBDAS, sweep, strict=True):
        assert torch.equal(lists, rerank(scores, p, categories, 10, method, lam))
        assert torch.equal(lists, by_relevance(lists, scores))


def test_order_by_relevance_keeps_the_items_and_equal_scores_go_by_id():
    scores, p, categories = larger_case()
    greedy = rerank(scores, p, categories, 10, "leaprec", 0.9)
    sorted_lists = rerank(scores, p, categories, 10, "leaprec", 0.9, order="relevance")
    for user, (one, other) in enumerate(zip(greedy.tolist(), sorted_lists.tolist(), strict=True)):
        assert other == sorted(one, key=lambda item: (-float(scores[user, item]), item))
    assert not torch.equal(greedy, sorted_lists)


def test_short_lists_end_in_0_in_order_of_relevance():
    scores = torch.tensor([[0.0, 1.0, 3.0, -torch.inf, 2.0]])
    categories = ItemCategories.from_lists([[], ["a"], ["a"], ["b"], ["b"]])
    p = torch.tensor([[0.2, 0.8]])
    for method, order in (("setwise", "greedy"), ("setwise_raw", "greedy"), ("leaprec", "relevance")):
        assert rerank(scores, p, categories, 4, method, 0.9, order=order).tolist() == [[2, 4, 1, 0]]


@pytest.mark.parametrize("method", ["leaprec", *METHODS])
def test_the_temperature_divides_the_scores(method):
    scores, p, categories = larger_case()
    cooler = rerank(scores, p, categories, 10, method, 0.5, temperature=2.0)
    assert torch.equal(cooler, rerank(scores / 2, p, categories, 10, method, 0.5))
    assert not torch.equal(cooler, rerank(scores, p, categories, 10, method, 0.5))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"order": "relevanc"}, "unknown order 'relevanc'.*relevance"),
        ({"temperature": 0.0}, "temperature must be above 0, got 0.0"),
    ],
)
def test_bad_options_are_refused(change, message):
    scores, p, categories = larger_case(2)
    with pytest.raises(ValueError, match=message):
        rerank(scores, p, categories, **change)
