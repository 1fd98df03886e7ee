"""Ctrl-C that cannot get lost, and that says what it leaves."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SECONDS = 0.05
"""From an interrupt that got lost until it is sent again: the callback that it fell into is over by then."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Send Ctrl-C again where Python throws it away.

    Python raises KeyboardInterrupt wherever the program happens to be. In a destructor or the callback of a weak reference,
    which torch and logging have many of, it is reported as "Exception ignored", and the program goes on.
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
    """Have a KeyboardInterrupt carry, as its last note, what is left and how to go on; `told` is asked when it comes.

    Of several, one inside the other, the outermost knows best, and is the last.
    """
    try:
        yield
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(told())
        raise


def _interrupt_main() -> None:
    main = threading.main_thread().ident
    if main is not None and hasattr(signal, "pthread_kill"):
        signal.pthread_kill(main, signal.SIGINT)  # ends a wait, too
    else:  # Windows
        _thread.interrupt_main()
