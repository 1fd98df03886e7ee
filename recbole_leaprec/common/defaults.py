"""What commands do unless they are told otherwise. Their functions and their `--help` read it here."""

SMALLEST_BETA = 1e-15
"""What is divided by a smaller one, and by the smallest share of a preference that counts, is more than a float32 can hold."""

LAMBDAS = tuple(step / 10 for step in range(11))
"""What a trained model is reranked with for its trade-off curve, or to find its best lambda."""

TRADEOFF_RERANKERS = ("leaprec", "calirec", "calirec_plus")

REPORT_RERANKERS = ("leaprec", "calirec", "calirec_plus", "setwise")
"""What a run is reranked with that has not been measured yet."""

REPORT_LAMBDAS = (*LAMBDAS[:-1], 0.95, 0.98, 0.99, 0.995, 1.0)
"""Finer near 1: there a weight that is the same at all places goes from little calibration to nothing else, and methods are
compared between neighbouring lambdas."""

USERS_LAMBDAS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9)

RESAMPLES = 1000
"""How often users are drawn again for a 95 % interval."""

EXPLORED_USERS = 50
"""Users that a report's page lets one look at."""

SHIFT_WINDOW, SHIFT_LONGEST, SHIFT_STEP = 20, 200, 10
"""Items per window; the longest interval between two windows, and the step from one interval to the next."""

LIST_LENGTH = 10
"""Items per recommended list."""

TRIALS = 20
"""Trials of a search."""

SEARCHES = ("random", "tpe")
"""How a search draws its samples."""

ENGINES = ("local", "ray")
"""What makes recommended lists: this process, or Ray Data."""

MAX_BAD_LINES = 1000
"""Unreadable lines that a file may have before a converter stops."""

NO_CATEGORY = "(no genres listed)"
"""What MovieLens writes where an item has no category."""
