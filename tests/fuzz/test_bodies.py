"""Bodies of requests that are odd or damaged: each is answered with a list, or refused in a sentence."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import pytest
from fastapi.testclient import TestClient

from recbole_leaprec.serve.app import make_app
from recbole_leaprec.serve.service import SERVED, open_service
from recbole_leaprec.serve.settings import Limits
from tests.fuzz.cases import Bench, Broken, damaged, fuzz, odd_text

pytestmark = pytest.mark.slow
ODD = (
    None, True, False, -1, 0, 1, 3, 5, 100, 10**30, -(2**63), 0.5, 1e308, -1e308, 1e-320, math.nan, math.inf, "", "i1", "Action", "none",
    [], {}, [[]], [None], ["i1", 2, "i1"], {"i1": 1}, {"Action": 1}, {"Action": 0}, {"Action": 1e308, "Drama": 1e308}, {"Action": 1e-320},
)  # fmt: skip
NAMES = (
    "history",
    "leave_out",
    "user",
    "k",
    "reranker",
    "rerank_lambda",
    "candidates",
    "preference",
    "item",
    "score",
    "k ",
    "K",
)


def body(draw: random.Random) -> tuple[str, Any]:
    """A right request with up to three changes."""
    path = draw.choice(["/recommend", "/rerank"])
    items = [f"i{draw.randrange(22)}" for _ in range(draw.choice([0, 1, 3, 20, 300]))]
    content: dict[str, Any] = {"history": items}
    if path == "/rerank":
        content["candidates"] = [{"item": item, "score": draw.choice([draw.random(), 0, 1e308, -1e308])} for item in items]
        content["history"] = items[:3]
        if draw.random() < 0.4:
            del content["history"]
            content["preference"] = {"Action": draw.choice([1, 0.3, 1e-300, 1e300]), "Drama": draw.random()}
    if draw.random() < 0.6:
        content |= {
            "k": draw.choice([1, 3, 19, 20]),
            "reranker": draw.choice(SERVED),
            "rerank_lambda": draw.choice([0, 0.5, 1]),
        }
    for _ in range(draw.choice([0, 1, 1, 2, 3])):
        where: Any = (
            draw.choice(content["candidates"] or [content]) if "candidates" in content and draw.random() < 0.3 else content
        )
        if not isinstance(where, dict):
            continue
        name = draw.choice(NAMES)
        if draw.random() < 0.2:
            where.pop(name, None)
        else:
            where[name] = draw.choice(ODD) if draw.random() < 0.8 else [odd_text(draw)]
        if not isinstance(content.get("candidates"), list):
            break
    return path, content if draw.random() < 0.97 else draw.choice(ODD)


def check_answer(code: int, answer: Any, asked: Any) -> None:
    if code == 200:
        items = [one["item"] for one in answer["items"]]
        finite = all(isinstance(one["score"], int | float) and math.isfinite(one["score"]) for one in answer["items"])
        skl = answer["skl"]
        if (
            len({*items}) < len(items)
            or not finite
            or not (skl is None or 0 <= skl < math.inf)
            or len(items) > (asked.get("k") or 5)
        ):
            raise Broken(f"no list that can be right: {str(answer)[:300]}")
    elif not (
        400 <= code < 500 and isinstance(answer.get("error"), str) and answer["error"] and "\n" not in answer["error"]
    ):
        raise Broken(f"code {code}: {str(answer)[:300]}")


@pytest.fixture
def client(shop, forks):
    with TestClient(
        make_app(open_service(shop / "run" / "model.pth", k=5, limits=Limits(seconds=600))), raise_server_exceptions=False
    ) as client:
        yield client


def test_bodies_are_answered_with_a_list_or_a_sentence(client, forks, tmp_path):
    def case(draw: random.Random, bench: Bench) -> None:
        path, asked = body(draw)
        content = json.dumps(asked).encode()
        if draw.random() < 0.2:
            content, asked = damaged(content, draw), {"k": 100}
        answer = client.post(path, content=content, headers={"Content-Type": "application/json"})
        bench.count(answer.status_code == 200, answer.elapsed.total_seconds())
        check_answer(answer.status_code, answer.json(), asked)

    fuzz("request bodies", 0.03, forks, tmp_path, case)
