"""Lists against a brute-force greedy, and what every list must be."""

import logging

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from recbole_leaprec import ItemCategories, rerank
from recbole_leaprec.reranking import RERANKERS
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


@settings(max_examples=1000)
@given(rerank_cases(), st.sampled_from(sorted(WEIGHTS)), DTYPES, st.data())
def test_lists_equal_the_brute_force_greedy(case, method, dtype, data):
    categories, distributions, scores, p, lam = case
    k = data.draw(st.integers(1, len(scores) - 1))
    got = rerank(torch.tensor([scores], dtype=dtype), torch.tensor([p], dtype=torch.float64), categories, k, method, lam)
    assert got[0].tolist() == reference.greedy(scores, p, distributions, k, WEIGHTS[method](lam), 0.01)


@given(rerank_cases(), st.sampled_from(sorted(RERANKERS)), st.data())
def test_the_list_for_k_is_the_head_of_the_list_for_more(case, method, data):
    categories, _, scores, p, lam = case
    longest = len(scores) - 1
    k = data.draw(st.integers(1, longest))
    lists = [rerank(torch.tensor([scores]), torch.tensor([p]), categories, n, method, lam)[0] for n in (k, longest)]
    assert lists[0].tolist() == lists[1][:k].tolist()


@given(rerank_cases(), st.sampled_from(sorted(RERANKERS)))
def test_lists_hold_each_allowed_item_at_most_once_and_nothing_else(case, method):
    categories, _, scores, p, lam = case
    got = rerank(torch.tensor([scores]), torch.tensor([p]), categories, len(scores) - 1, method, lam)[0].tolist()
    allowed = [i for i in range(1, len(scores)) if scores[i] > float("-inf")]
    assert sorted(got) == sorted([0] * (len(scores) - 1 - len(allowed)) + allowed)
    assert got[len(allowed) :] == [0] * (len(scores) - 1 - len(allowed))


@given(rerank_cases(), st.sampled_from(sorted(RERANKERS)))
def test_lambda_0_is_plain_top_k(case, method):
    categories, _, scores, p, _ = case
    k = len(scores) - 1
    lists = [rerank(torch.tensor([scores]), torch.tensor([p]), categories, k, name, lam=0.0) for name in (method, "none")]
    assert torch.equal(*lists)


@pytest.mark.parametrize("method", sorted(RERANKERS))
def test_lists_do_not_depend_on_the_batch_or_the_threads(method):
    generator = torch.Generator().manual_seed(0)
    lists = [[], *([f"c{c}" for c in range(9) if torch.rand((), generator=generator) < 0.3] for _ in range(300))]
    categories = ItemCategories.from_lists(lists)
    scores = torch.randn(64, 301, generator=generator).round(decimals=1)
    p = torch.rand(64, categories.n_categories, generator=generator)
    p /= p.sum(1, keepdim=True)
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
        "1 of 2 users have fewer than 2 items to recommend; their lists end in 0"
    ]


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
        ({"beta": 0.0}, r"beta must be in \(0, 1\)"),
        ({"k": 0}, "k must be from 1 to the number of items, 3, got 0"),
        ({"k": 4}, "k must be from 1 to the number of items, 3, got 4"),
        ({"candidates": 1}, "candidates must be at least k = 2, got 1"),
        ({"scores": torch.zeros(2, 5)}, r"scores must be \[B, 4\] for these categories, got \[2, 5\]"),
        ({"scores": torch.zeros(4)}, r"scores must be \[B, 4\]"),
        ({"p": torch.full((1, 2), 0.5)}, r"p must be \[2, 2\] for these scores, got \[1, 2\]"),
        ({"p": None}, "leaprec calibrates to p, and p is None"),
        (
            {"p": torch.tensor([[0.5, 0.5], [0.5, 0.6]])},
            "1 rows of p are not distributions that sum to one; the first is row 1, with the sum 1.1",
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
