"""The settings of a service: its address, its token, and the limits of requests."""

from __future__ import annotations

from dataclasses import dataclass

TOKEN = "LEAPREC_TOKEN"
"""The environment variable with the bearer token that requests must have. If it is not set, no token is needed."""

HOST, PORT = "127.0.0.1", 8000


@dataclass(frozen=True)
class Limits:
    """How much a request may ask for, and how long it may take.

    Attributes:
        batch: the largest number of requests that are scored together.
        waiting: the largest number of requests that wait for their turn; one more is refused.
        seconds: the longest time from a request's arrival to its answer; after that it is given up.
        k: items per list.
        items: items per history, list of candidates, or list of items to leave out.
        body: bytes per request.
    """

    batch: int = 64
    waiting: int = 1_000
    seconds: float = 10.0
    k: int = 100
    items: int = 10_000
    body: int = 2_000_000

    def check_default(self, k: int) -> None:
        """Raise ValueError if the default list length `k` of requests is above the limit."""
        if k > self.k:
            raise ValueError(
                f"k must be at most max_k, {self.k}: requests that do not say how many items they want would all be refused; got {k}"
            )
