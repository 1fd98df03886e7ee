"""Names of the values that batches and collectors hold for metrics, beside RecBole's own."""

CATEGORIES = "data.categories"
"""The items' `ItemCategories`."""

SEQUENTIAL_PREFERENCE, STATIC_PREFERENCE = "rec.sequential_preference", "rec.static_preference"
"""Each user's sequential preference (Eq. 2) and static preference, `[B, C]`."""

PREFERENCES = {"sequential": SEQUENTIAL_PREFERENCE, "static": STATIC_PREFERENCE}
"""The names by the `preference` of a reranker."""

LISTS, HITS = "rec.items", "rec.topk"
"""RecBole's names for the lists, and for the places in them that are hits."""

RANKS, USER_METRICS, USER_PREFERENCES = "rec.ranks", "rec.user_metrics", "rec.user_preferences"
"""The places of a list's items in the model's own ranking, from 1; `user_metrics`; and the sequential preferences `[U, C]`.

The preferences are sparse because a user has few of many categories. All three are collected only on request.
"""
