"""Names of what batches and collectors hold for metrics, beside RecBole's own."""

CATEGORIES = "data.categories"
"""The items' `ItemCategories`."""

SEQUENTIAL_PREFERENCE, STATIC_PREFERENCE = "rec.sequential_preference", "rec.static_preference"
"""`[B, C]`: every user's recent category mix (Eq. 2), and the plain mean over the history."""

PREFERENCES = {"sequential": SEQUENTIAL_PREFERENCE, "static": STATIC_PREFERENCE}
"""By what a reranker calls the preference that it calibrates to."""

LISTS, HITS = "rec.items", "rec.topk"
"""RecBole's names for the lists, and for which of their places are hits."""

RANKS, USER_METRICS, USER_PREFERENCES = "rec.ranks", "rec.user_metrics", "rec.user_preferences"
"""Where a list's items stand in the model's own ranking, from 1; `user_metrics`; and the sequential preferences as a sparse `[U, C]`,
since a user has few of many categories. All are collected on request."""
