"""Calibrated lists out of anybody's candidates: tables of users, items and scores, as any recommender gives them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import torch

from recbole_leaprec.core.calibration import miscalibration
from recbole_leaprec.core.categories import ItemCategories
from recbole_leaprec.core.preference import sequential_preference
from recbole_leaprec.defaults import LIST_LENGTH
from recbole_leaprec.recommend.histories import ITEMS, USER, split_items
from recbole_leaprec.reranking.reranking import Reranking

ITEM, SCORE, TIME, CATEGORIES = "item", "score", "timestamp", "categories"
USERS = 512
"""Reranked at a time."""


@dataclass
class Counts:
    """What was found on the way: nothing of it stops the work, and all of it is told."""

    users: int = 0
    repeated: int = 0
    without_score: int = 0
    unknown_items: set[str] = field(default_factory=set)
    without_history: int = 0

    def told(self) -> list[str]:
        """A sentence for each thing that somebody should know."""
        lines = [
            (self.repeated, "candidates repeat a user and an item; the one with the highest score counts"),
            (self.without_score, "candidates have no score and were left out"),
            (len(self.unknown_items), "items have no row among the items and count as items without a category"),
            (self.without_history, "users have no history of known items and got the highest scores, without an S_KL"),
        ]
        return [f"{count:,} {text}" for count, text in lines if count]


def rerank_frame(
    candidates: pd.DataFrame,
    items: pd.DataFrame,
    histories: pd.DataFrame,
    reranking: Reranking | None = None,
    k: int = LIST_LENGTH,
    alpha: float = 0.9,
    beta: float = 0.01,
    counts: Counts | None = None,
) -> pd.DataFrame:
    """Lists of k items that trade the candidates' scores against calibration to each user's history.

    Args:
        candidates: `user`, `item` and `score`, one row per candidate; the more relevant, the larger.
        items: `item` and `categories`, a list of names.
        histories: `user` and `items`, a list or a text with spaces, oldest first; or `user`, `item` and `timestamp`, one row per event.
        reranking: a method with its settings; None for `leaprec` with lambda 0.3.
        alpha, beta: of the preference and of the divergence.
        counts: where to count what was found on the way.

    Returns:
        `user`, `rank`, `item`, `score` and `skl`, a row for each place of each list; users in the order of the candidates.

    Raises:
        ValueError: a column is missing, or the settings are out of range.

    Example:
        >>> candidates = pd.DataFrame({"user": ["u"] * 3, "item": ["a", "b", "c"], "score": [3.0, 2.0, 1.0]})
        >>> items = pd.DataFrame({"item": ["a", "b", "c"], "categories": [["Action"], ["Action"], ["Drama"]]})
        >>> histories = pd.DataFrame({"user": ["u"], "items": ["a c"]})
        >>> rerank_frame(candidates, items, histories, Reranking("leaprec", 0.5), k=2)["item"].tolist()
        ['a', 'c']
    """
    catalogue = Catalogue.of(items)
    return rerank_with(
        candidates, catalogue, history_table(histories), reranking or Reranking("leaprec", 0.3), k, alpha, beta, counts
    )


@dataclass(frozen=True)
class Catalogue:
    """The categories of items, by token."""

    names: list[str]
    members: Mapping[str, list[int]]

    @classmethod
    def of(cls, items: pd.DataFrame) -> Catalogue:
        """ValueError without the columns, or if no item has a category."""
        _check_columns(items, (ITEM, CATEGORIES), "items")
        lists = [[] if value is None or isinstance(value, float) else list(value) for value in items[CATEGORIES]]
        names = sorted({str(name) for own in lists for name in own})
        if not names:
            raise ValueError("items: no item has any category, and there is nothing to calibrate")
        index = {name: number for number, name in enumerate(names)}
        members: dict[str, list[int]] = {}
        for item, own in zip(items[ITEM].astype(str), lists, strict=True):
            members.setdefault(item, []).extend(index[str(name)] for name in own)
        return cls(names, members)

    def of_items(self, tokens: Sequence[str]) -> ItemCategories:
        """Of these items, which get the ids 1, 2, ..."""
        return ItemCategories(self.names, [[], *(self.members.get(token, []) for token in tokens)])


def _check_columns(frame: pd.DataFrame, columns: Sequence[str], what: str) -> None:
    missing = [column for column in columns if column not in frame]
    if missing:
        raise ValueError(
            f"{what} needs the columns {', '.join(columns)}, and lacks {', '.join(missing)}; it has {', '.join(map(str, frame))}"
        )


def history_table(histories: pd.DataFrame) -> dict[str, list[str]]:
    """The items of each user, oldest first, of either form."""
    if ITEMS in histories:
        _check_columns(histories, (USER, ITEMS), "histories")
        return {str(user): split_items(value) for user, value in zip(histories[USER], histories[ITEMS], strict=True)}
    _check_columns(histories, (USER, ITEM, TIME), "histories")
    ordered = histories.sort_values(TIME, kind="stable")
    return {
        str(user): rows.astype(str).tolist() for user, rows in ordered.groupby(ordered[USER].astype(str), sort=False)[ITEM]
    }


def rerank_with(
    candidates: pd.DataFrame,
    catalogue: Catalogue,
    histories: Mapping[str, list[str]],
    reranking: Reranking,
    k: int,
    alpha: float,
    beta: float,
    counts: Counts | None = None,
) -> pd.DataFrame:
    """`rerank_frame` with what does not change between tables of candidates."""
    counts = Counts() if counts is None else counts
    frames = [
        _lists(part, catalogue, histories, reranking, k, alpha, beta, counts)
        for part in _by_users(_clean(candidates, counts))
    ]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=[USER, "rank", ITEM, SCORE, "skl"])


def _clean(candidates: pd.DataFrame, counts: Counts) -> pd.DataFrame:
    """One row per user and item, each with a score."""
    _check_columns(candidates, (USER, ITEM, SCORE), "candidates")
    scores = pd.to_numeric(candidates[SCORE], errors="coerce").astype(np.float64)
    frame = pd.DataFrame({USER: candidates[USER].astype(str), ITEM: candidates[ITEM].astype(str), SCORE: scores})
    good = np.isfinite(frame[SCORE])
    counts.without_score += int((~good).sum())
    frame = frame[good]
    best = frame.sort_values(SCORE, ascending=False, kind="stable").drop_duplicates([USER, ITEM])
    counts.repeated += len(frame) - len(best)
    return best.sort_index(kind="stable")


def _by_users(candidates: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Rows of some users at a time, in the order in which users come first."""
    user = pd.factorize(candidates[USER])[0]
    order = np.argsort(user, kind="stable")
    ends = np.searchsorted(user[order], np.arange(USERS, user.max(initial=0) + 1 + USERS, USERS))
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        if end > start:
            yield candidates.iloc[order[start:end]]


def _lists(
    part: pd.DataFrame, catalogue: Catalogue, histories: Mapping[str, list[str]], reranking: Reranking, k: int, alpha: float,
    beta: float, counts: Counts,
) -> pd.DataFrame:  # fmt: skip
    """The lists of some users: their candidates and histories are the whole catalogue."""
    row, users = pd.factorize(part[USER])
    past = [[item for item in histories.get(user, ()) if item in catalogue.members] for user in users]
    column, tokens = pd.factorize(
        pd.concat([part[ITEM], pd.Series([item for own in past for item in own], dtype=object)], ignore_index=True)
    )
    counts.users += len(users)
    counts.without_history += sum(not own for own in past)
    counts.unknown_items.update(token for token in tokens if token not in catalogue.members)
    categories = catalogue.of_items(list(tokens))
    scores = torch.full((len(users), len(tokens) + 1), -torch.inf, dtype=torch.float64)
    scores[row, column[: len(part)] + 1] = torch.from_numpy(part[SCORE].to_numpy(copy=True))
    ids = {token: number for number, token in enumerate(tokens, 1)}
    numbered = [[ids[item] for item in own] for own in past]
    p = sequential_preference(numbered, categories, alpha)
    to = sequential_preference(numbered, categories, 1.0) if reranking.preference == "static" else p
    length = min(k, len(tokens))
    lists = reranking.lists(scores, to, categories, length, beta)[0]
    skl = miscalibration(p, lists, categories, beta)
    skl[torch.tensor([not own for own in past])] = torch.nan
    place = (lists != 0).nonzero(as_tuple=True)
    return pd.DataFrame(
        {
            USER: np.asarray(users, dtype=object)[place[0].numpy()],
            "rank": (place[1] + 1).numpy(),
            ITEM: np.asarray(tokens, dtype=object)[lists[place].numpy() - 1],
            SCORE: scores.gather(1, lists)[place].numpy(),
            "skl": skl[place[0]].numpy(),
        }
    )
