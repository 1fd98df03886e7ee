"""The service on a Ray cluster: replicas of the same application, over Ray Serve."""

# No `from __future__ import annotations` here: Ray Serve reads the type of the builder's argument.

import os
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from ray import serve

from recbole_leaprec.common.defaults import LIST_LENGTH
from recbole_leaprec.serve.settings import TOKEN, Limits


class DeploymentSettings(BaseModel):
    """The arguments of `serve run recbole_leaprec.serve:deployment key=value ...`."""

    model_config = ConfigDict(extra="forbid")

    checkpoint: str = Field(description="the model.pth of a run, where all machines see it")
    replicas: int = Field(1, ge=1, description="processes that answer, with a CPU each")
    batch: int = Field(Limits.batch, ge=1, description="requests that a replica scores together, at most")
    seconds: float = Field(Limits.seconds, gt=0, description="how long a request may take")
    k: int = Field(LIST_LENGTH, ge=1, description="items per list, where a request does not say")
    reranker: str | None = Field(None, description="as for every other command")
    rerank_lambda: float | None = Field(None, description="as for every other command")
    allow: str | None = Field(None, description="as for `leaprec serve`, where all machines see it")
    deny: str | None = Field(None, description="as for `leaprec serve`, where all machines see it")
    items: str | None = Field(None, description="as for `leaprec serve`, where all machines see it")


def deployment(settings: DeploymentSettings) -> serve.Application:
    """An application for Ray Serve that answers like `leaprec serve`.

    If LEAPREC_TOKEN is set when this is called, requests must have that token.
    """
    token, folder = os.environ.get(TOKEN), Path.cwd()
    files = ("checkpoint", "allow", "deny", "items")
    given = {name: value for name, value in settings.model_dump().items() if value is not None}
    given |= {name: str(folder / given[name]) for name in files if name in given}  # a replica runs in its own folder

    def build() -> Any:
        return _app(given, token)

    made = serve.deployment(
        name="leaprec",
        num_replicas=settings.replicas,
        max_ongoing_requests=2 * settings.batch,  # one batch is scored while the next one gathers
    )
    return made(serve.ingress(build)()).bind()


def _app(given: dict[str, Any], token: str | None) -> Any:
    """The application of one replica."""
    from recbole_leaprec.serve.app import make_app
    from recbole_leaprec.serve.service import open_service

    limits = Limits(batch=given["batch"], waiting=2 * given["batch"], seconds=given["seconds"])
    changes: dict[str, Any] = {name: given[name] for name in ("reranker", "rerank_lambda") if name in given}
    rules: dict[str, Any] = {name: given[name] for name in ("allow", "deny", "items") if name in given}
    service = open_service(given["checkpoint"], changes, given["k"], limits=limits, **rules)
    service.keep_all()
    return make_app(service, token)
