"""Makes sure that Ctrl-C does not get lost, and says what an interrupted command leaves."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SECONDS = 0.05
"""Seconds after which a lost interrupt is sent again. The callback in which it was lost has ended by then."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Send Ctrl-C again if Python discards it.

    Python raises KeyboardInterrupt at any place in the program. In a destructor or the callback of a weak reference (torch
    and logging have many), Python only reports it as "Exception ignored", and the program goes on.
    """
    before = sys.unraisablehook

    def hook(lost: sys.UnraisableHookArgs) -> None:
        if issubclass(lost.exc_type, KeyboardInterrupt):
            threading.Timer(SECONDS, _interrupt_main).start()
        else:
            before(lost)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


@contextmanager
def leaving(told: Callable[[], str]) -> Iterator[None]:
    """Add to a KeyboardInterrupt a note on what is left and how to go on. `told` makes the note when the interrupt comes.

    If several are nested, the note of the outermost comes last, because it knows most.
    """
    try:
        yield
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(told())
        raise


def _interrupt_main() -> None:
    main = threading.main_thread().ident
    if main is not None and hasattr(signal, "pthread_kill"):
        signal.pthread_kill(main, signal.SIGINT)  # also ends a wait
    else:  # Windows
        _thread.interrupt_main()
