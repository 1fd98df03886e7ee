"""Wishes to answers: the lists of `recommend` and of `rerank`, whatever comes together."""

import random

import pandas as pd
import pytest
import torch

from recbole_leaprec import miscalibration, rerank, sequential_preference
from recbole_leaprec.recommend import Recommender
from recbole_leaprec.serve.bodies import Candidate, RecommendBody, RerankBody
from recbole_leaprec.serve.service import SERVED, Refused, Service, open_service
from recbole_leaprec.serve.settings import Limits

ITEMS = [f"i{n}" for n in range(40)]


def histories(users, seed=0):
    draw = random.Random(seed)
    return [draw.sample(ITEMS, draw.choice([1, 3, 12])) for _ in range(users)]


def items(answer):
    return [one.item for one in answer.items]


@pytest.mark.parametrize("reranker", SERVED)
def test_lists_are_those_of_recommend(checkpoint, service, reranker):
    past = histories(20)
    table = Recommender(checkpoint, {"reranker": reranker, "rerank_lambda": 0.4}, 5)(
        pd.DataFrame({"user": [str(n) for n in range(20)], "items": past})
    )
    bodies = [RecommendBody(history=own, reranker=reranker, rerank_lambda=0.4) for own in past]
    answers = service.answer([service.recommend_wish(body) for body in bodies])
    for n, answer in enumerate(answers):
        rows = table[table["user"] == str(n)]
        assert items(answer) == rows["item"].tolist()
        assert [one.score for one in answer.items] == pytest.approx(rows["score"].tolist())
        assert answer.skl == pytest.approx(rows["skl"].iloc[0])
        assert not answer.fallback
        assert not answer.unknown_items


def test_what_comes_together_does_not_matter(service):
    past, draw = histories(30), random.Random(1)
    wishes = []
    for own in past:
        wanted = {"k": draw.choice([1, 5, 9]), "reranker": draw.choice(SERVED), "rerank_lambda": draw.random()}
        if draw.random() < 0.5:
            wishes.append(service.recommend_wish(RecommendBody(history=draw.choice([own, []]), **wanted)))
        else:
            given = [Candidate(item=item, score=draw.gauss(0, 1)) for item in draw.sample(ITEMS, 20)]
            wishes.append(service.rerank_wish(RerankBody(candidates=given, history=own, **wanted)))
    together, alone = service.answer(wishes), [service.answer([wish])[0] for wish in wishes]
    assert [items(answer) for answer in together] == [items(answer) for answer in alone]
    assert [answer.skl for answer in together] == pytest.approx([answer.skl for answer in alone])


@pytest.mark.parametrize("reranker", SERVED)
@pytest.mark.parametrize("by", ["history", "preference"])
def test_candidates_are_reranked_as_tensors_are(checkpoint, service, reranker, by):
    own = Recommender(checkpoint, k=5)
    draw = random.Random(2)
    past, chosen = draw.sample(ITEMS, 6), draw.sample(ITEMS, 25)
    values = {item: draw.gauss(0, 1) for item in chosen}
    p = sequential_preference([own.ids(past)], own.categories, 0.9)
    to = sequential_preference([own.ids(past)], own.categories, 1.0) if reranker == "calirec" and by == "history" else p
    given = (
        {"history": past}
        if by == "history"
        else {"preference": {name: 7 * share for name, share in zip(own.categories.names, p[0].tolist(), strict=True)}}
    )
    body = RerankBody(
        candidates=[Candidate(item=item, score=score) for item, score in values.items()],
        reranker=reranker, rerank_lambda=0.5, **given,
    )  # fmt: skip
    answer = service.answer([service.rerank_wish(body)])[0]
    scores = torch.full((1, own.dataset.item_num), -torch.inf, dtype=torch.float64)
    for item, score in values.items():
        scores[0, own.ids([item])[0]] = score
    expected = rerank(scores, to, own.categories, 5, reranker, 0.5)
    assert items(answer) == [own.dataset.items[item] for item in expected[0].tolist()]
    assert answer.skl == pytest.approx(miscalibration(p, expected, own.categories).item(), abs=1e-6)


def test_a_request_to_a_service_of_plain_lists_is_calibrated_with_the_configured_lambda(checkpoint):
    service = Service(Recommender(checkpoint, {"reranker": "none"}, 5), Limits())
    history = histories(1)[0]
    bodies = [RecommendBody(history=history, reranker="leaprec", **given) for given in ({}, {"rerank_lambda": 0.3})]
    default, told = service.answer([service.recommend_wish(body) for body in bodies])
    plain = service.answer([service.recommend_wish(RecommendBody(history=history))])[0]
    assert items(default) == items(told) != items(plain)
    assert service.info.rerank_lambda == 0.3


def test_a_user_without_a_known_item_gets_what_is_popular(service):
    first, second = service.answer(
        [
            service.recommend_wish(RecommendBody(history=[])),
            service.recommend_wish(RecommendBody(history=["nothing", "known"], leave_out=["i3"], k=3)),
        ]
    )
    assert first.fallback
    assert first.skl is None
    assert [one.score for one in first.items] == sorted((one.score for one in first.items), reverse=True)
    assert second.unknown_items == 2
    assert "i3" not in items(second)
    assert len(second.items) == 3


def test_candidates_without_anything_to_calibrate_to_come_by_score(service):
    given = [Candidate(item=f"i{n}", score=n) for n in (3, 9, 5)]
    answer = service.answer([service.rerank_wish(RerankBody(candidates=given, history=["unheard"]))])[0]
    assert items(answer) == ["i9", "i5", "i3"]
    assert answer.fallback
    assert answer.skl is None
    assert answer.unknown_items == 1


def test_of_a_candidate_that_comes_twice_the_highest_score_counts_and_unknown_ones_are_counted(service):
    given = [Candidate(item=item, score=score) for item, score in [("i1", 1), ("i2", 2), ("i1", 3), ("new", 9), ("new", 8)]]
    answer = service.answer([service.rerank_wish(RerankBody(candidates=given, history=["i1"], reranker="none"))])[0]
    assert [(one.item, one.score) for one in answer.items] == [("i1", 3.0), ("i2", 2.0)]
    assert answer.unknown_items == 2


def test_what_is_left_out_and_what_was_seen_are_in_no_list(service):
    body = RecommendBody(history=["i1", "i2"], leave_out=["i3", "unheard"], k=37)
    assert set(items(service.answer([service.recommend_wish(body)])[0])) == set(ITEMS) - {"i1", "i2", "i3"}


def test_rules_and_new_categories_hold(checkpoint, tmp_path):
    (tmp_path / "deny.txt").write_text("i1\ni2\n")
    (tmp_path / "items.csv").write_text(
        "item,categories\n" + "".join(f"i{n},{'New|Old' if n % 2 else 'Old'}\n" for n in range(40))
    )
    service = open_service(checkpoint, deny=tmp_path / "deny.txt", items=tmp_path / "items.csv")
    assert service.info.categories == ["New", "Old"]
    answer = service.answer([service.recommend_wish(RecommendBody(history=["i5"], k=37))])[0]
    assert set(items(answer)) == set(ITEMS) - {"i1", "i2", "i5"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (RecommendBody(history=["i1"], k=6), "k must be at most 5, got 6"),
        (RecommendBody(history=["i1"] * 9), "history must have at most 8 entries, got 9"),
        (RecommendBody(history=["i1"], leave_out=["i1"] * 9), "leave_out must have at most 8 entries, got 9"),
        (RecommendBody(history=["i1"], reranker="leaprek"), "unknown reranker 'leaprek'; did you mean 'leaprec'"),
        (RecommendBody(history=["i1"], reranker="mip"), "'mip' is not served: it solves a program per list"),
        (RerankBody(candidates=[], history=[], preference={"Action": 1}), "a history or a preference"),
        (RerankBody(candidates=[]), "a history or a preference"),
        (RerankBody(candidates=[], preference={"Akcion": 1}), "unknown category 'Akcion'; did you mean 'Action'"),
        (RerankBody(candidates=[], preference={}), "the shares must have a sum above 0, got 0"),
        (RerankBody(candidates=[], preference={"Action": 1e308, "Drama": 1e308}), "sum above 0, got inf"),
        (RerankBody(candidates=[Candidate(item="i1", score=1)] * 9, history=[]), "candidates must have at most 8 entries"),
    ],
)
def test_what_is_beyond_the_limits_or_not_known_is_refused(checkpoint, body, message):
    service = Service(Recommender(checkpoint, k=5), Limits(k=5, items=8))
    with pytest.raises(Refused, match=message):
        (service.recommend_wish if isinstance(body, RecommendBody) else service.rerank_wish)(body)


def test_a_model_whose_reranker_is_too_slow_is_refused_at_once(checkpoint):
    with pytest.raises(ValueError, match="'mcf' is not served"):
        open_service(checkpoint, {"reranker": "mcf"})


def test_lists_that_are_longer_than_requests_may_have_them_are_refused_at_once(checkpoint):
    with pytest.raises(ValueError, match=r"k must be at most max_k, 5: .* would all be refused; got 6"):
        open_service(checkpoint, k=6, limits=Limits(k=5))
