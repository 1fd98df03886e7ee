"""The defaults of commands. Their functions and their `--help` read them here."""

SMALLEST_BETA = 1e-15
"""With a smaller beta, a division by it and by the smallest share of a preference that counts would overflow float32."""

LAMBDAS = tuple(step / 10 for step in range(11))
"""The lambdas of a trade-off curve, and of the search for a model's best lambda."""

TRADEOFF_RERANKERS = ("leaprec", "calirec", "calirec_plus")

REPORT_RERANKERS = ("leaprec", "calirec", "calirec_plus", "setwise")
"""The rerankers for a run that has not been measured yet."""

REPORT_LAMBDAS = (*LAMBDAS[:-1], 0.95, 0.98, 0.99, 0.995, 1.0)
"""Finer near 1, because methods are compared between neighbouring lambdas.

There, methods with the same weight at all places change from little calibration to only calibration.
"""

USERS_LAMBDAS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9)

RESAMPLES = 1000
"""How often users are resampled for a 95 % interval."""

EXPLORED_USERS = 50
"""How many users the user explorer of a report's page has."""

SHIFT_WINDOW, SHIFT_LONGEST, SHIFT_STEP = 20, 200, 10
"""Items per window; the longest interval between two windows, and the step from one interval to the next."""

LIST_LENGTH = 10
"""Items per recommended list."""

TRIALS = 20
"""The number of trials of a search."""

SEARCHES = ("random", "tpe")
"""How a search draws its samples."""

ENGINES = ("local", "ray")
"""Where recommended lists are made: in this process, or with Ray Data."""

MAX_BAD_LINES = 1000
"""How many unreadable lines a file may have before a converter stops."""

NO_CATEGORY = "(no genres listed)"
"""The text that MovieLens writes for an item without a category."""
