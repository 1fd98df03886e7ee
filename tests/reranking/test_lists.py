"""Lists against a brute-force greedy, and what every list must be."""

import logging

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from recbole_leaprec import ItemCategories, rerank
from recbole_leaprec.reranking import RERANKERS, rerank_sweep
from tests import reference
from tests.strategies import rerank_cases

WEIGHTS = {
    "none": lambda lam: lambda k: 0.0,
    "leaprec": lambda lam: lambda k: lam ** (1 / k),
    "calirec": lambda lam: lambda k: lam,
    "calirec_plus": lambda lam: lambda k: lam,
    "pr_reverse": lambda lam: lambda k: lam**k,
}
DTYPES = st.sampled_from([torch.float32, torch.float64])


@settings(max_examples=500)
@given(rerank_cases(), st.sampled_from(sorted(WEIGHTS)), DTYPES, st.data())
def test_lists_equal_the_brute_force_greedy(case, method, dtype, data):
    k = data.draw(st.integers(1, case.categories.n_items - 1))
    got = rerank(*case.tensors(dtype), k, method, case.lam)
    for row, (scores, p) in enumerate(zip(case.scores, case.p, strict=True)):
        assert got[row].tolist() == reference.greedy(scores, p, case.distributions, k, WEIGHTS[method](case.lam), 0.01)


def random_case(n_items, n_categories, users, seed, decimals=None):
    """A larger catalogue than hypothesis would draw, with profiles of one item and of many."""
    generator = torch.Generator().manual_seed(seed)
    common = [sorted(torch.randperm(n_categories, generator=generator)[: 1 + n % 3].tolist()) for n in range(5)]
    lists = [[]]
    for _ in range(n_items):
        if torch.rand((), generator=generator) < 0.7:
            own = common[int(torch.randint(5, (), generator=generator))]
        else:
            own = (torch.rand(n_categories, generator=generator) < 0.2).nonzero()[:, 0].tolist()
        lists.append([f"c{c:02d}" for c in own])
    categories = ItemCategories.from_lists(lists)
    scores = 2 * torch.randn(users, n_items + 1, generator=generator)
    scores = scores if decimals is None else scores.round(decimals=decimals)
    scores[torch.rand(scores.shape, generator=generator) < 0.2] = -torch.inf
    p = torch.rand(users, categories.n_categories, generator=generator) ** 4
    return scores, p / p.sum(1, keepdim=True), categories


@pytest.mark.parametrize("n_categories", [1, 6, 40])
@pytest.mark.parametrize("decimals", [0, 1, None])
def test_a_sweep_over_larger_catalogues_equals_the_brute_force_greedy(n_categories, decimals):
    scores, p, categories = random_case(60, n_categories, 4, seed=n_categories, decimals=decimals)
    lambdas = [0.0, 0.1, 0.5, 0.9, 1.0]
    got = rerank_sweep(scores, p, categories, 12, "leaprec", lambdas)
    for s, lam in enumerate(lambdas):
        for row in range(len(scores)):
            expected = reference.greedy(
                scores[row].tolist(), p[row].tolist(), reference.rows(categories).tolist(), 12, WEIGHTS["leaprec"](lam), 0.01
            )
            assert got[s, row].tolist() == expected, (lam, row)


@pytest.mark.parametrize("method", sorted(WEIGHTS))
def test_a_sweep_is_one_rerank_a_lambda_and_users_may_come_in_any_number(method):
    scores, p, categories = random_case(300, 9, 500, seed=1, decimals=1)
    lambdas = [0.0, 0.3, 0.7, 1.0] * 3  # more lists than are worked on at once
    sweep = rerank_sweep(scores, p, categories, 10, method, lambdas)
    for lam, lists in zip(lambdas[:4], sweep, strict=False):
        assert torch.equal(lists, rerank(scores, p, categories, 10, method, lam))
    assert torch.equal(sweep[:4], sweep[4:8])
    assert rerank_sweep(scores[:0], p[:0], categories, 10, method, lambdas).shape == (12, 0, 10)


@given(rerank_cases(), st.sampled_from(sorted(WEIGHTS)), st.data())
def test_the_list_for_k_is_the_head_of_the_list_for_more(case, method, data):
    longest = case.categories.n_items - 1
    k = data.draw(st.integers(1, longest))
    short, whole = (rerank(*case.tensors(), n, method, case.lam) for n in (k, longest))
    assert torch.equal(short, whole[:, :k])


@settings(max_examples=60)
@given(rerank_cases(), st.sampled_from(sorted(RERANKERS)))
def test_lists_hold_each_allowed_item_at_most_once_and_nothing_else(case, method):
    k = case.categories.n_items - 1
    for got, scores in zip(rerank(*case.tensors(), k, method, case.lam).tolist(), case.scores, strict=True):
        allowed = [i for i in range(1, k + 1) if scores[i] > float("-inf")]
        assert sorted(got[: len(allowed)]) == allowed
        assert got[len(allowed) :] == [0] * (k - len(allowed))


@given(rerank_cases(), st.sampled_from(sorted(RERANKERS)))
def test_lambda_0_is_plain_top_k(case, method):
    k = case.categories.n_items - 1
    assert torch.equal(rerank(*case.tensors(), k, method, lam=0.0), rerank(*case.tensors(), k, "none"))


@pytest.mark.parametrize("method", sorted(WEIGHTS))
def test_the_numbering_of_the_items_does_not_matter(method):
    scores, p, categories = random_case(200, 8, 20, seed=3)
    order = torch.cat(
        [torch.zeros(1, dtype=torch.long), 1 + torch.randperm(200, generator=torch.Generator().manual_seed(4))]
    )
    members = [reference.rows(categories)[i].nonzero()[:, 0].tolist() for i in order.tolist()]
    renumbered = rerank(scores[:, order], p, ItemCategories(categories.names, members), 10, method)
    assert torch.equal(order[renumbered], rerank(scores, p, categories, 10, method))


@pytest.mark.parametrize("method", sorted(RERANKERS))
def test_lists_do_not_depend_on_the_batch_or_the_threads(method):
    scores, p, categories = random_case(300, 9, 64, seed=0, decimals=1)
    whole = rerank(scores, p, categories, 10, method)
    one_by_one = torch.cat([rerank(scores[i : i + 1], p[i : i + 1], categories, 10, method) for i in range(64)])
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1 if threads > 1 else 2)
        other_threads = rerank(scores, p, categories, 10, method)
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(whole, one_by_one)
    assert torch.equal(whole, other_threads)


@pytest.mark.parametrize("method", sorted(RERANKERS))
def test_scores_may_come_straight_from_a_model_that_trains(method):
    scores, p, categories = random_case(30, 4, 3, seed=1)
    assert torch.equal(
        rerank(scores.requires_grad_(), p, categories, 5, method), rerank(scores.detach(), p, categories, 5, method)
    )


@pytest.mark.parametrize("method", sorted(RERANKERS))
def test_candidates_restrict_the_list_to_the_most_relevant(method):
    categories = ItemCategories.from_lists([[], *[["a"]] * 5, *[["b"]] * 5])
    scores = torch.arange(11.0, 0, -1)[None]
    p = torch.tensor([[0.0, 1.0]])
    assert set(rerank(scores, p, categories, 3, method, lam=1.0, candidates=4)[0].tolist()) <= {1, 2, 3, 4}


def test_users_with_too_few_items_are_counted_once(caplog):
    categories = ItemCategories.from_lists([[], ["a"], ["b"], ["b"]])
    scores = torch.tensor([[0.0, 1.0, 2.0, 3.0], [0.0, 1.0, float("-inf"), float("-inf")]])
    with caplog.at_level(logging.WARNING):
        lists = rerank(scores, torch.full((2, 2), 0.5), categories, 2)
    assert lists[1].tolist() == [1, 0]
    assert [record.getMessage() for record in caplog.records] == [
        "1 of 2 users have fewer than 2 items to recommend; their lists are shorter, with 0 at the end"
    ]


@pytest.mark.parametrize("first", ["a", "b"])
def test_what_differs_by_rounding_alone_is_a_tie_and_goes_to_the_lower_id(first):
    other = "b" if first == "a" else "a"
    categories = ItemCategories.from_lists([[], [first], [other], ["c"]])
    p = torch.tensor([[0.3, 0.1 + 0.2, 0.4]], dtype=torch.float64)  # a and b differ in the last bit
    assert p[0, 0] != p[0, 1]
    scores = torch.tensor([[0.0, 1.0, 1.0, -9.0]])
    assert rerank(scores, p, categories, 2, lam=0.5).tolist() == [[1, 2]]


@pytest.fixture
def good():
    categories = ItemCategories.from_lists([[], ["a"], ["b"], ["a", "b"]])
    return {"scores": torch.zeros(2, 4), "p": torch.full((2, 2), 0.5), "categories": categories, "k": 2}


def test_scores_are_left_as_they_were(good):
    before = good["scores"].clone()
    rerank(**good)
    assert torch.equal(good["scores"], before)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "leaprek"}, "unknown reranker 'leaprek'; did you mean 'leaprec'?"),
        ({"lam": 1.01}, r"lam must be in \[0, 1\], got 1.01"),
        ({"lam": -0.1}, r"lam must be in \[0, 1\]"),
        ({"beta": 0.0}, r"beta must be in \[1e-15, 1\), got 0\.0"),
        ({"k": 0}, "k must be from 1 to the number of items, 3, got 0"),
        ({"k": 4}, "k must be from 1 to the number of items, 3, got 4"),
        ({"candidates": 1}, "candidates must be at least k = 2, got 1"),
        ({"scores": torch.zeros(2, 5)}, r"scores must be \[B, 4\] for these categories, got \[2, 5\]"),
        ({"scores": torch.zeros(4)}, r"scores must be \[B, 4\]"),
        ({"p": torch.full((1, 2), 0.5)}, r"p must be \[2, 2\] for these scores, got \[1, 2\]"),
        ({"p": None}, "leaprec calibrates to p, and p is None"),
        (
            {"p": torch.tensor([[0.5, 0.5], [0.5, 0.6]])},
            "1 rows of p are not distributions that sum to one, nor all zero; the first is row 1, with the sum 1.1",
        ),
        (
            {"scores": torch.tensor([[0.0, 1, 2, 3], [0.0, float("nan"), float("inf"), 0]])},
            r"1 rows of scores hold nan or \+inf; the first is row 1, with 2",
        ),
    ],
)
def test_bad_input_is_refused(good, change, message):
    with pytest.raises(ValueError, match=message):
        rerank(**{**good, **change})
