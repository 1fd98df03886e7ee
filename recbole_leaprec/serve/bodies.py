"""The bodies of requests and answers."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


def _text(value: Any) -> Any:
    """An id as text. A whole number becomes its text."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Id = Annotated[str, BeforeValidator(_text)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Wanted(Body):
    """Settings of a list. By default they are those of the service."""

    k: int | None = Field(default=None, ge=1, strict=True, description="items per list")
    reranker: str | None = Field(default=None, description="how the list is made, such as leaprec, setwise or none")
    rerank_lambda: float | None = Field(
        default=None, ge=0, le=1, description="weight of calibration: 0 is none, 1 is nothing else"
    )


class RecommendBody(Wanted):
    """A user's history, from which the model makes a list."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"history": ["50", "181", "172"], "k": 5}]})

    history: list[Id] = Field(description="item ids, oldest first; may be empty")
    leave_out: list[Id] = Field(default=[], description="ids of items that the list must not hold")
    user: Id | None = Field(default=None, description="for models that embed users (Caser, FPMC, ...); may be unknown")


class Candidate(Body):
    item: Id
    score: Finite = Field(description="the more relevant, the larger")


class RerankBody(Wanted):
    """Candidates with scores of any recommender, and a history or a preference to calibrate to."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"candidates": [{"item": "50", "score": 4.2}, {"item": "181", "score": 4.1}], "history": ["172"], "k": 1}
            ]
        }
    )

    candidates: list[Candidate]
    history: list[Id] | None = Field(default=None, description="item ids, oldest first")
    preference: dict[str, Share] | None = Field(
        default=None, description="category names and their shares, which are made to sum to 1"
    )


class Listed(BaseModel):
    item: str
    title: str | None = Field(default=None, description="where the model has titles")
    score: float = Field(description="the model's; of a fallback, how often the item occurs in training")


class Answer(BaseModel):
    items: list[Listed]
    skl: float | None = Field(description="how far the list is from the preference; null where there is none")
    fallback: bool = Field(description="whether there was nothing to calibrate to: the list is by popularity, or by score")
    unknown_items: int = Field(description="items of the request that the model does not know; they were skipped")


class Health(BaseModel):
    status: str = "ok"


class ModelInfo(BaseModel):
    """The model and settings of a service."""

    model: str
    dataset: str
    version: str
    items: int
    categories: list[str]
    titles: bool
    k: int
    reranker: str
    rerank_lambda: float
    rerankers: list[str] = Field(description="what `reranker` may be")
    limits: dict[str, int | float]


class Problem(BaseModel):
    error: str
