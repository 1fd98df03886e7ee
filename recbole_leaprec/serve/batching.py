"""Answers requests together that come together."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

Wish = TypeVar("Wish")
Answer = TypeVar("Answer")


_TURNS = 3
"""The largest number of event loop turns that a request takes, from bytes at a socket to a wish."""


class TooMany(Exception):
    """The largest allowed number of requests is already waiting."""


class TooSlow(Exception):
    """A request was not answered in its time."""


class Together(Generic[Wish, Answer]):
    """Answers wishes in one thread: each time, all the wishes that came while it was busy, up to a limit.

    A wish does not wait for others to come: a single one is answered at once. But all requests that are already here are
    read first. Otherwise the thread would get only few of them, and reading and answering would compete for Python's lock
    (GIL). A wish whose time is over before its turn is skipped.
    """

    def __init__(self, answer: Callable[[list[Wish]], list[Answer]], most: int, waiting: int):
        """
        Args:
            answer: a function that returns one answer per wish, in the same order.
            most: the largest number of wishes that it gets at a time.
            waiting: the largest number of wishes that wait.
        """
        self._answer, self._most, self._limit = answer, most, waiting
        self._waiting: deque[tuple[Wish, asyncio.Future[Answer]]] = deque()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="answers")
        self._work: asyncio.Task[None] | None = None

    async def ask(self, wish: Wish, seconds: float) -> Answer:
        """The answer to a wish. Raises TooMany or TooSlow if there is none."""
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
            taken = [(wish, future) for wish, future in taken if not future.done()]  # done means cancelled
            if not taken:
                continue
            try:
                answers = await loop.run_in_executor(self._thread, self._answer, [wish for wish, _ in taken])
            except Exception as error:  # any error goes to those who asked; the next wishes are answered
                for _, future in taken:
                    if not future.done():
                        future.set_exception(error)
                continue
            for (_, future), answer in zip(taken, answers, strict=True):
                if not future.done():
                    future.set_result(answer)

    async def _read_all(self) -> None:
        """Let the event loop read requests until there are no more, or enough for one batch."""
        before = 0
        while before < len(self._waiting) < self._most:
            before = len(self._waiting)
            for _ in range(_TURNS):
                await asyncio.sleep(0)
