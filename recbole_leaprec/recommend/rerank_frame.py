"""Makes calibrated lists from the candidates of any recommender: tables of users, items and scores."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recbole_leaprec.common.defaults import LIST_LENGTH
from recbole_leaprec.recommend.catalogue import ITEM, Catalogue, ItemIds, check_columns, coded, text_of
from recbole_leaprec.recommend.histories import ITEMS, USER, split_items
from recbole_leaprec.recommend.rerank_part import PREFERENCE, Candidates, Counts, PartReranker, Wanted
from recbole_leaprec.recommend.tastes import Histories, Shares, Tastes, category_ids
from recbole_leaprec.reranking.reranking import Reranking

SCORE, TIME, CATEGORY, SHARE = "score", "timestamp", "category", "share"


def rerank_frame(
    candidates: pd.DataFrame,
    items: pd.DataFrame,
    histories: pd.DataFrame | None = None,
    reranking: Reranking | None = None,
    k: int = LIST_LENGTH,
    alpha: float = 0.9,
    beta: float = 0.01,
    counts: Counts | None = None,
    *,
    preferences: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Lists of k items that balance the candidates' scores and calibration to each user's history or preference.

    Args:
        candidates: `user`, `item` and `score`, one row per candidate; a larger score means a more relevant item.
        items: `item` and `categories`, a list of names.
        histories: `user` and `items`, a list or a text with spaces, oldest first; or `user`, `item` and `timestamp`,
            one row per event. Several rows of a user are joined.
        reranking: a method with its settings; None for `leaprec` with lambda 0.3.
        alpha, beta: the parameters of the preference and of the divergence.
        counts: an object that counts what was found in the tables, such as unknown items.
        preferences: instead of histories, `user`, `category` and `share` (0 or more); a user's shares are scaled to sum
            to 1. Methods with a static preference use it, too.

    Returns:
        One row per item of each list: `user`, `rank`, `item`, `score` and `skl`. Users are in the order of the
        candidates. Items with equal scores are in the order of `items`.

    Raises:
        ValueError: a column is missing; not exactly one of histories and preferences is given; no item has a category
            that is in a preference; or the settings are out of range.

    Example:
        >>> candidates = pd.DataFrame({"user": ["u"] * 3, "item": ["a", "b", "c"], "score": [3.0, 2.0, 1.0]})
        >>> items = pd.DataFrame({"item": ["a", "b", "c"], "categories": [["Action"], ["Action"], ["Drama"]]})
        >>> histories = pd.DataFrame({"user": ["u"], "items": ["a c"]})
        >>> rerank_frame(candidates, items, histories, Reranking("leaprec", 0.5), k=2)["item"].tolist()
        ['a', 'c']
        >>> preferences = pd.DataFrame({"user": ["u", "u"], "category": ["Action", "Drama"], "share": [1, 1]})
        >>> rerank_frame(candidates, items, reranking=Reranking("leaprec", 0.5), k=2, preferences=preferences)["item"].tolist()
        ['a', 'c']
    """
    check_one(histories, preferences)
    check_columns(candidates, (USER, ITEM, SCORE), "candidates")
    counts = Counts() if counts is None else counts
    ids = ItemIds(Catalogue.of(items))
    user, names = coded(text_of(candidates[USER]))
    item = ids.of_all(text_of(candidates[ITEM]))
    whole, score = (user >= 0) & (item > 0), numbers_of(candidates[SCORE])
    counts.incomplete += int((~whole).sum())
    counts.unknown_items.update(ids.unknown)
    own = Candidates(names, user[whole], item[whole], score[whole], counts)
    if histories is not None:
        tastes = _histories(histories, names, ids, counts)
    else:
        tastes = _shares(preferences, names, ids.catalogue(), counts)
    wanted = Wanted(reranking or Wanted().reranking, k, alpha, beta)
    return PartReranker(ids.catalogue(), wanted).lists(own, tastes, counts).to_pandas()


def check_one(histories: object, preferences: object) -> None:
    """ValueError unless exactly one of the two is given."""
    if (histories is None) == (preferences is None):
        given = "none of them" if histories is None else "both"
        raise ValueError(
            f"histories or preferences: lists are calibrated to one of the two (--histories, --preferences), got {given}"
        )


def _histories(histories: pd.DataFrame, names: pa.Array, ids: ItemIds, counts: Counts) -> Tastes:
    """The histories of the users with these names."""
    if ITEMS in histories:
        check_columns(histories, (USER, ITEMS), "histories")
        lists = [split_items(value) for value in histories[ITEMS]]
        of = np.repeat(np.arange(len(lists)), [len(own) for own in lists])
        tokens = pa.array([token for own in lists for token in own], pa.string())
    else:
        check_columns(histories, (USER, ITEM, TIME), "histories")
        dated = histories[histories[TIME].notna() & histories[ITEM].notna()]
        counts.incomplete += len(histories) - len(dated)
        histories = dated.sort_values(TIME, kind="stable")
        of, tokens = np.arange(len(histories)), text_of(histories[ITEM])
    users = text_of(histories[USER])
    counts.incomplete += users.null_count
    item = ids.of(tokens)
    counts.unknown_events += int((item == 0).sum())
    user = number_of(users, names)[of]
    return Histories(user[item > 0], item[item > 0], len(names))


def _shares(preferences: pd.DataFrame, names: pa.Array, catalogue: Catalogue, counts: Counts) -> Tastes:
    check_columns(preferences, (USER, CATEGORY, SHARE), "preferences")
    users, share = text_of(preferences[USER]), numbers_of(preferences[SHARE])
    category = category_ids(users, text_of(preferences[CATEGORY]), share, catalogue.names, "preferences")
    counts.incomplete += users.null_count
    counts.source = PREFERENCE
    shares = Shares(number_of(users, names), category, share, len(names))
    counts.repeated_shares += shares.repeated
    return shares


def number_of(users: pa.Array, names: pa.Array) -> np.ndarray:
    """The index of each user in `names`; -1 for a user who is not in them."""
    return pc.index_in(users, value_set=names).fill_null(-1).to_numpy()


def numbers_of(values: pd.Series) -> np.ndarray:
    """The values as floats; nan for a value that is no number."""
    return pd.to_numeric(values, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
