"""The FastAPI application: paths, checks, and one sentence for every error."""

# No `from __future__ import annotations` here: FastAPI reads the types of nested functions.

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from fastapi_offline import FastAPIOffline
from starlette.exceptions import HTTPException as StarletteHTTPException

import recbole_leaprec
from recbole_leaprec.serve.batching import Together, TooMany, TooSlow
from recbole_leaprec.serve.bodies import Answer, Health, ModelInfo, Problem, RecommendBody, RerankBody
from recbole_leaprec.serve.service import Refused, Service, Wish
from recbole_leaprec.serve.settings import TOKEN

Receive = Callable[[], Awaitable[Any]]

PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {"model": Problem, "description": meaning}
    for code, meaning in {
        401: f"a bearer token is needed ({TOKEN})",
        408: "the body did not come in time",
        413: "the body is too large",
        422: "the body is not what is asked for",
        503: "too many requests are waiting, or this one has waited too long",
    }.items()
}


def make_app(service: Service, token: str | None = None) -> FastAPI:
    """The application. If there is a token, requests must have it."""
    together = Together(service.answer, service.limits.batch, service.limits.waiting)
    app = FastAPIOffline(
        title="recbole-leaprec", version=recbole_leaprec.__version__, description="Calibrated lists of recommendations."
    )
    app.add_middleware(WholeBody, most=service.limits.body, seconds=service.limits.seconds)
    _answer_in_sentences(app)
    guarded: dict[str, Any] = {"dependencies": [Depends(_guard(token))], "responses": PROBLEMS}

    async def ask(wish: Wish) -> Response:
        answer = await together.ask(wish, service.limits.seconds)
        return Response(answer.model_dump_json(), media_type="application/json")

    @app.post("/recommend", response_model=Answer, **guarded)
    async def recommend(body: RecommendBody) -> Response:
        """A calibrated list for a history."""
        return await ask(service.recommend_wish(body))

    @app.post("/rerank", response_model=Answer, **guarded)
    async def rerank(body: RerankBody) -> Response:
        """A calibrated list from candidates with scores."""
        return await ask(service.rerank_wish(body))

    @app.get("/model", **guarded)
    async def model() -> ModelInfo:
        """The model and settings of this service, and the limits of requests."""
        return service.info

    @app.get("/health")
    async def health() -> Health:
        """Whether requests are answered."""
        return Health()

    return app


def _guard(token: str | None) -> Callable[..., Awaitable[None]]:
    """A dependency that accepts only requests with the token, or all requests if there is no token."""
    bearer = HTTPBearer(auto_error=False, description=f"the value of {TOKEN} where the service was started")

    # Headers are bytes, which Starlette reads as latin-1.
    async def check(given: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]) -> None:
        if token and not (given and secrets.compare_digest(given.credentials.encode("latin-1"), token.encode())):
            raise HTTPException(401, "a bearer token is needed: Authorization: Bearer ...", {"WWW-Authenticate": "Bearer"})

    return check


def _answer_in_sentences(app: FastAPI) -> None:
    """Answer every error as `{"error": a sentence}`. The server's log has the traceback of unexpected errors."""

    def problem(code: int, sentence: str, headers: Any = None) -> JSONResponse:
        return JSONResponse(Problem(error=sentence).model_dump(), code, headers)

    @app.exception_handler(StarletteHTTPException)
    async def http(request: Request, error: StarletteHTTPException) -> JSONResponse:
        return problem(error.status_code, str(error.detail), error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part != "body")
        if first["type"] == "json_invalid":
            return problem(422, f"the body is no JSON: {first.get('ctx', {}).get('error', first['msg'])}")
        return problem(422, f"{where or 'the body'}: {first['msg'][0].lower()}{first['msg'][1:]}")

    @app.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> JSONResponse:
        return problem(422, str(error))

    @app.exception_handler(TooMany)
    async def busy(request: Request, error: TooMany) -> JSONResponse:
        return problem(503, "too many requests are waiting; try again", {"Retry-After": "1"})

    @app.exception_handler(TooSlow)
    async def slow(request: Request, error: TooSlow) -> JSONResponse:
        return problem(503, "the request was not answered in time; try again", {"Retry-After": "1"})

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> JSONResponse:
        return problem(500, "something went wrong here; the service's log says what")


class WholeBody:
    """Reads a request's body before the application does, and ends requests whose body is too large or too slow."""

    def __init__(self, app: Any, most: int, seconds: float):
        self._app, self._most, self._seconds = app, most, seconds

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Callable[[Any], Awaitable[None]]) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(self._seconds):
                body = await self._read(receive)
        except TimeoutError:
            await _ended(408, f"the body did not come within {self._seconds:g} seconds")(scope, receive, send)
            return
        if body is None:
            await _ended(413, f"the body must have at most {self._most} bytes")(scope, receive, send)
            return
        waiting: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]

        async def read_again() -> Any:
            return waiting.pop() if waiting else await receive()

        await self._app(scope, read_again, send)

    async def _read(self, receive: Receive) -> bytes | None:
        """The body; None if it is too large. If the client disconnects, the part that came: nobody needs an answer then."""
        parts, size = [], 0
        while True:
            message = await receive()
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._most:
                return None
            if not message.get("more_body", False):
                return b"".join(parts)


def _ended(code: int, sentence: str) -> JSONResponse:
    return JSONResponse(Problem(error=sentence).model_dump(), code, {"Connection": "close"})
