"""Nothing that takes long is silent: a step that has gone on for a second says what it does."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 1.0
"""Seconds until a step says what it does."""


def on_terminal(message: str) -> None:
    """Say something where no run has a log."""
    print(f"{time.strftime('%H:%M:%S')}  {message}", file=sys.stderr)


def in_log(logger: logging.Logger) -> Callable[[str], None]:
    """Say something in the log of a run, or on the terminal where there is none."""
    return logger.info if logger.hasHandlers() else on_terminal


@contextmanager
def slow_step(message: str, say: Callable[[str], None] = on_terminal) -> Iterator[None]:
    """Say the message if the step inside is not over after a second."""
    timer = threading.Timer(PATIENCE, say, [message])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
