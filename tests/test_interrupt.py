"""Ctrl-C wherever it falls."""

import signal
import sys
import time
import weakref

import pytest

from recbole_leaprec.interrupt import interruptible


class Target:
    pass


class InterruptedWhenDeleted:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)


def lose_in_a_weak_reference():
    target = Target()
    reference = weakref.ref(target, lambda _: signal.raise_signal(signal.SIGINT))
    del target
    assert reference() is None


def lose_in_a_destructor():
    InterruptedWhenDeleted()


@pytest.mark.parametrize("lose", [lose_in_a_weak_reference, lose_in_a_destructor])
def test_an_interrupt_that_python_throws_away_comes_again(lose):
    went_on = False
    with pytest.raises(KeyboardInterrupt), interruptible():  # noqa: PT012
        lose()
        went_on = True
        time.sleep(30)
    assert went_on


def test_what_else_is_thrown_away_is_reported_as_before(monkeypatch):
    class Broken:
        def __del__(self):
            raise RuntimeError("in the destructor")

    reported = []
    monkeypatch.setattr(sys, "unraisablehook", lambda lost: reported.append(str(lost.exc_value)))
    before = sys.unraisablehook
    with interruptible():
        Broken()
    assert reported == ["in the destructor"]
    assert sys.unraisablehook is before
