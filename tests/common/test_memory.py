"""What was freed goes back to the system."""

from __future__ import annotations

import ctypes
import sys

import pytest

from recbole_leaprec.common import memory


def test_batches_are_the_same_and_memory_is_given_back_every_tenth(monkeypatch):
    seen = []
    monkeypatch.setattr(memory, "give_back", lambda: seen.append("gave back"))
    for batch in memory.giving_back(range(25)):
        seen.append(batch)
    assert seen == [*range(10), "gave back", *range(10, 20), "gave back", *range(20, 25)]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_was_freed_is_given_back():
    def held() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    if not memory._malloc_trim():
        pytest.skip("not glibc")
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    # Blocks too small for pages of their own, the last one kept: what lies before it stays in the heap.
    blocks = [libc.malloc(100_000) for _ in range(2000)]
    for block in blocks:
        ctypes.memset(block, 1, 100_000)
    for block in blocks[:-1]:
        libc.free(block)
    before = held()
    memory.give_back()
    assert held() < before - 100_000_000
    libc.free(blocks[-1])


def test_without_glibc_nothing_happens(monkeypatch):
    monkeypatch.setattr(memory, "_malloc_trim", lambda: None)
    memory.give_back()
