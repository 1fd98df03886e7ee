"""Requests that come together are answered together."""

import asyncio
import threading

import pytest

from recbole_leaprec.serve.batching import Together, TooMany, TooSlow


class Slow:
    """Answers with the wish and how many came with it, when it is let go."""

    def __init__(self, open_at_once=True):
        self.batches, self.gate = [], threading.Event()
        if open_at_once:
            self.gate.set()

    def __call__(self, wishes):
        assert self.gate.wait(10)
        self.batches.append(list(wishes))
        if "bad" in wishes:
            raise KeyError("bad")
        return [(wish, len(wishes)) for wish in wishes]


async def let_go_later(slow, seconds=0.05):
    await asyncio.sleep(seconds)
    slow.gate.set()


def test_one_alone_is_answered_at_once():
    slow = Slow()
    assert asyncio.run(Together(slow, 8, 100).ask("a", 5)) == ("a", 1)


def test_those_that_come_while_others_are_answered_go_together():
    slow = Slow(open_at_once=False)

    async def all_at_once():
        together = Together(slow, 4, 100)
        return await asyncio.gather(*(together.ask(n, 5) for n in range(10)), let_go_later(slow))

    answers = asyncio.run(all_at_once())[:-1]
    assert [wish for wish, _ in answers] == list(range(10))
    assert [len(batch) for batch in slow.batches] == [4, 4, 2]
    assert [wish for batch in slow.batches for wish in batch] == list(range(10))


def test_requests_that_are_here_already_are_read_before_the_first_is_answered():
    slow = Slow()

    async def as_a_server_reads_them():
        together = Together(slow, 8, 100)

        async def read_and_ask(number):
            for _ in range(number):  # each is read a turn of the event loop after the one before
                await asyncio.sleep(0)
            return await together.ask(number, 5)

        return await asyncio.gather(*map(read_and_ask, range(6)))

    assert asyncio.run(as_a_server_reads_them()) == [(number, 6) for number in range(6)]


def test_one_too_many_is_refused_and_the_others_are_answered():
    slow = Slow(open_at_once=False)

    async def all_at_once():
        together = Together(slow, 1, 3)
        asked = [asyncio.create_task(together.ask(n, 5)) for n in range(6)]
        return await asyncio.gather(*asked, let_go_later(slow), return_exceptions=True)

    answers = asyncio.run(all_at_once())[:-1]
    assert [type(answer) for answer in answers] == [tuple] * 3 + [TooMany] * 3


def test_what_waits_too_long_is_given_up_and_not_looked_at():
    slow = Slow(open_at_once=False)

    async def impatient():
        together = Together(slow, 1, 100)
        first = asyncio.create_task(together.ask("first", 5))
        await asyncio.sleep(0.01)
        with pytest.raises(TooSlow):
            await together.ask("second", 0.05)
        slow.gate.set()
        assert await first == ("first", 1)
        assert await together.ask("third", 5) == ("third", 1)

    asyncio.run(impatient())
    assert slow.batches == [["first"], ["third"]]


def test_an_error_is_told_to_who_asked_and_the_next_are_answered():
    slow = Slow()

    async def one_after_the_other():
        together = Together(slow, 8, 100)
        with pytest.raises(KeyError):
            await together.ask("bad", 5)
        return await together.ask("good", 5)

    assert asyncio.run(one_after_the_other()) == ("good", 1)
