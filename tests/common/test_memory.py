"""What was freed goes back to the system."""

from __future__ import annotations

import ctypes
import sys

import pytest

from recbole_leaprec.common import memory

MIB = 2**20


def test_batches_are_the_same_and_memory_is_given_back_when_the_process_has_grown(monkeypatch):
    seen = []
    held = iter([10, 4, 60, 55, 60, 63])  # before and after what is given back, twice; then no growth
    monkeypatch.setattr(memory, "SLACK", 8 * MIB)
    monkeypatch.setattr(memory, "resident", lambda: next(held) * MIB)
    monkeypatch.setattr(memory, "_malloc_trim", lambda: lambda pad: seen.append("gave back"))
    for batch in memory.giving_back(range(4)):
        seen.append(batch)
    assert seen == [0, "gave back", 1, "gave back", 2, 3]
    assert list(held) == []


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_memory_that_a_process_holds():
    before = memory.resident()
    block = b"1" * (64 * MIB)
    assert len(block) * 0.9 < memory.resident() - before < len(block) * 1.5


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_was_freed_is_given_back():
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
    before = memory.resident()
    assert list(memory.giving_back([1])) == [1]
    assert memory.resident() < before - 100_000_000
    libc.free(blocks[-1])


def test_without_glibc_nothing_happens(monkeypatch):
    monkeypatch.setattr(memory, "_malloc_trim", lambda: None)
    assert list(memory.giving_back(range(3))) == [0, 1, 2]
