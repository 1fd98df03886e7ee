"""The application: what is right is answered, and everything else gets a sentence and a code of its kind."""

import json
import time

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recbole_leaprec.recommend import Recommender
from recbole_leaprec.serve.app import make_app
from recbole_leaprec.serve.service import Service
from recbole_leaprec.serve.settings import Limits


@pytest.fixture
def client(service):
    with TestClient(make_app(service), raise_server_exceptions=False) as client:
        yield client


def test_a_history_is_answered_with_a_list(client):
    answer = client.post("/recommend", json={"history": ["i1", 7, "unheard"], "k": 3})
    assert answer.status_code == 200
    content = answer.json()
    assert {"items", "skl", "fallback", "unknown_items"} == content.keys()
    assert len(content["items"]) == 3
    assert content["unknown_items"] == 2  # a number is the text of it, and 7 is no item
    assert content["skl"] >= 0


def test_candidates_are_answered_with_a_list(client):
    candidates = [{"item": f"i{n}", "score": n} for n in range(10)]
    answer = client.post("/rerank", json={"candidates": candidates, "preference": {"Action": 2, "Drama": 1}, "k": 4})
    assert answer.status_code == 200
    assert len(answer.json()["items"]) == 4


def test_the_model_and_its_health_are_told(client):
    assert client.get("/health").json() == {"status": "ok"}
    info = client.get("/model").json()
    assert info["model"] == "SASRecCD"
    assert info["items"] == 40
    assert info["k"] == 5
    assert info["limits"]["batch"] == 64


def test_the_pages_come_from_the_service_itself(client):
    page = client.get("/docs").text
    assert "swagger" in page
    assert "https://" not in page.replace("https://fastapi.tiangolo.com", "")
    paths = client.get("/openapi.json").json()["paths"]
    assert {"/recommend", "/rerank", "/model", "/health"} <= paths.keys()
    assert "401" in paths["/recommend"]["post"]["responses"]


def test_a_token_is_asked_for_where_there_is_one(service):
    with TestClient(make_app(service, "secret-ä")) as client:
        assert client.get("/health").status_code == 200
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic c2VjcmV0"}):
            for answer in (
                client.get("/model", headers=headers),
                client.post("/recommend", json={"history": []}, headers=headers),
            ):
                assert answer.status_code == 401
                assert answer.headers["WWW-Authenticate"] == "Bearer"
                assert "bearer token" in answer.json()["error"]
        right = {"Authorization": "Bearer secret-ä".encode()}
        assert client.get("/model", headers=right).status_code == 200
        assert client.post("/recommend", json={"history": []}, headers=right).status_code == 200


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/recommend", b"{", "the body is no JSON"),
        ("/recommend", b"", "the body: field required"),
        ("/recommend", b"[]", "the body: input should be a valid dictionary"),
        ("/recommend", b"{}", "history: field required"),
        ("/recommend", b'{"history": "i1"}', "history: input should be a valid list"),
        ("/recommend", b'{"history": [true]}', "history.0: input should be a valid string"),
        ("/recommend", b'{"history": [], "k": 0}', "k: input should be greater than or equal to 1"),
        ("/recommend", b'{"history": [], "k": 2.0}', "k: input should be a valid integer"),
        ("/recommend", b'{"history": [], "k": 41}', "k must be at most 40, got 41"),
        ("/recommend", b'{"history": [], "lambda": 1}', "lambda: extra inputs are not permitted"),
        ("/recommend", b'{"history": [], "rerank_lambda": NaN}', "rerank_lambda: "),
        ("/recommend", b'{"history": [], "rerank_lambda": 1.5}', "rerank_lambda: input should be less than or equal to 1"),
        ("/rerank", b'{"candidates": [{"item": "i1", "score": 1e999}], "history": []}', "candidates.0.score: "),
        ("/rerank", b'{"candidates": [{"item": "i1"}], "history": []}', "candidates.0.score: field required"),
        ("/rerank", b'{"candidates": [], "preference": {"Action": -1}}', "preference.Action: input should be greater"),
    ],
)
def test_a_bad_body_is_answered_with_what_is_wrong(client, path, body, message):
    answer = client.post(path, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert answer.json().keys() == {"error"}
    assert answer.json()["error"].startswith(message)


def test_other_paths_and_methods_get_a_sentence_too(client):
    for answer, code in ((client.get("/nothing"), 404), (client.get("/recommend"), 405)):
        assert answer.status_code == code
        assert answer.json().keys() == {"error"}


def test_a_body_that_is_too_large_is_refused(checkpoint):
    service = Service(Recommender(checkpoint, k=5), Limits(body=1000))
    with TestClient(make_app(service)) as client:
        answer = client.post("/recommend", json={"history": ["i1"] * 500})
        assert answer.status_code == 413
        assert answer.json() == {"error": "the body must have at most 1000 bytes"}
        assert client.post("/recommend", json={"history": ["i1"]}).status_code == 200


def test_a_request_that_takes_too_long_is_given_up(checkpoint, monkeypatch):
    service = Service(Recommender(checkpoint, k=5), Limits(seconds=0.05))
    monkeypatch.setattr(service, "answer", lambda wishes: time.sleep(0.3))
    with TestClient(make_app(service)) as client:
        answer = client.post("/recommend", json={"history": ["i1"]})
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "1"
    assert "not answered in time" in answer.json()["error"]


def test_what_nobody_expected_is_no_traceback_to_the_client(service, monkeypatch):
    monkeypatch.setattr(service, "answer", lambda wishes: 1 / 0)
    with TestClient(make_app(service), raise_server_exceptions=False) as client:
        answer = client.post("/recommend", json={"history": ["i1"]})
    assert answer.status_code == 500
    assert answer.json() == {"error": "something went wrong here; the service's log says what"}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=8,
)
NAMES = ["history", "leave_out", "user", "k", "reranker", "rerank_lambda", "candidates", "preference", "item", "score"]
BODIES = st.dictionaries(st.sampled_from(NAMES), VALUES | st.just(["i1", "i2"]), max_size=6).map(
    lambda body: json.dumps(body).encode("utf-8", "surrogatepass")
)
MALFORMED = st.binary(max_size=80) | VALUES.map(lambda value: json.dumps(value).encode("utf-8", "surrogatepass")) | BODIES


@pytest.mark.slow
@settings(max_examples=1000, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.sampled_from(["/recommend", "/rerank"]),
    body=MALFORMED,
    kind=st.sampled_from(["application/json", "text/plain", ""]),
)
def test_whatever_is_sent_there_is_an_answer_or_a_sentence(client, path, body, kind):
    answer = client.post(path, content=body, headers={"Content-Type": kind} if kind else {})
    if answer.status_code == 200:
        assert {"items", "skl"} <= answer.json().keys()
    else:
        assert 400 <= answer.status_code < 500
        assert answer.json()["error"]
