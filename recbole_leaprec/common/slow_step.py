"""A step that takes longer than a second says what it does, so that no long step is silent."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 1.0
"""Seconds after which a step says what it does."""


def on_terminal(message: str) -> None:
    """Print a message to the terminal, for use without the log of a run."""
    print(f"{time.strftime('%H:%M:%S')}  {message}", file=sys.stderr)


def in_log(logger: logging.Logger) -> Callable[[str], None]:
    """A function that writes a message to the log of a run, or to the terminal if there is no log."""
    return logger.info if logger.hasHandlers() else on_terminal


@contextmanager
def slow_step(message: str, say: Callable[[str], None] = on_terminal) -> Iterator[None]:
    """Say the message if the step inside takes longer than a second."""
    timer = threading.Timer(PATIENCE, say, [message])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
