"""Requests that come together are answered together."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

Wish = TypeVar("Wish")
Answer = TypeVar("Answer")


_TURNS = 3
"""Turns of the event loop that a request takes at most, from bytes at a socket to a wish."""


class TooMany(Exception):
    """As many requests are waiting as may wait."""


class TooSlow(Exception):
    """A request was not answered in its time."""


class Together(Generic[Wish, Answer]):
    """Answers in one thread, as many wishes at a time as have come while it was at work.

    Nobody waits for others to come: one wish alone is answered at once. But requests that are here already are all read first:
    the thread would get few of them, and the two would take Python's lock from each other. A wish whose time is over before its
    turn is not looked at.
    """

    def __init__(self, answer: Callable[[list[Wish]], list[Answer]], most: int, waiting: int):
        """
        Args:
            answer: an answer for each wish, in their order.
            most: wishes that it gets at a time.
            waiting: wishes that may wait.
        """
        self._answer, self._most, self._limit = answer, most, waiting
        self._waiting: deque[tuple[Wish, asyncio.Future[Answer]]] = deque()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="answers")
        self._work: asyncio.Task[None] | None = None

    async def ask(self, wish: Wish, seconds: float) -> Answer:
        """The answer; TooMany or TooSlow if there is none."""
        if len(self._waiting) >= self._limit:
            raise TooMany
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((wish, future))
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._answer_all())
        try:
            async with asyncio.timeout(seconds):
                return await future
        except TimeoutError:
            raise TooSlow from None

    async def _answer_all(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            await self._read_all()
            taken = [self._waiting.popleft() for _ in range(min(self._most, len(self._waiting)))]
            taken = [(wish, future) for wish, future in taken if not future.done()]  # given up: cancelled
            if not taken:
                continue
            try:
                answers = await loop.run_in_executor(self._thread, self._answer, [wish for wish, _ in taken])
            except Exception as error:  # of whatever kind: who asked is told, and the next are answered
                for _, future in taken:
                    if not future.done():
                        future.set_exception(error)
                continue
            for (_, future), answer in zip(taken, answers, strict=True):
                if not future.done():
                    future.set_result(answer)

    async def _read_all(self) -> None:
        """Let the event loop read requests until there are no more, or enough."""
        before = 0
        while before < len(self._waiting) < self._most:
            before = len(self._waiting)
            for _ in range(_TURNS):
                await asyncio.sleep(0)
