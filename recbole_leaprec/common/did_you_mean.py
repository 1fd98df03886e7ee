"""Error messages that give the most similar known name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def unknown_name(what: str, name: str, known: Iterable[str]) -> str:
    """The error message for an unknown name.

    Example:
        >>> unknown_name("reranker", "leaprek", ["none", "leaprec"])
        "unknown reranker 'leaprek'; did you mean 'leaprec'? Known: leaprec, none"
        >>> unknown_name("reranker", "xyz", ["none", "leaprec"])
        "unknown reranker 'xyz'. Known: leaprec, none"
    """
    return f"unknown {what} {name!r}{did_you_mean(name, known)} Known: {', '.join(sorted(known))}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or a full stop if no name is similar. Case is ignored."""
    by_folded = {candidate.lower(): candidate for candidate in known}
    near = get_close_matches(str(name).lower(), by_folded, n=1)
    return f"; did you mean {by_folded[near[0]]!r}?" if near else "."
