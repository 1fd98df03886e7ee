"""What all fuzzers share: cases by number until the time is over, what each must hold, and damage to files.

`LEAPREC_FUZZ_SECONDS` is for all of tests/fuzz together; `LEAPREC_FUZZ_FIRST` is the number of the first case. With 0 seconds, a
fuzzer runs that one case and leaves its folder.
"""

from __future__ import annotations

import os
import random
import re
import shlex
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from recbole_leaprec.data.cache import FOLDER as CACHE
from recbole_leaprec.settings.keys import known_keys
from tests.fuzz.forks import Forks, Outcome

SECONDS = float(os.environ.get("LEAPREC_FUZZ_SECONDS", "90"))
FIRST = int(os.environ.get("LEAPREC_FUZZ_FIRST", "0"))
MOST_TOLD = 30
ERROR = "leaprec: error: "


class Broken(AssertionError):
    """What a case did that it must not do."""


@dataclass
class Tally:
    """What was run of one kind."""

    cases: int = 0
    succeeded: int = 0
    killed: int = 0
    cpu: float = 0.0
    slowest: float = 0.0
    broken: dict[str, list[tuple[int, str]]] = field(default_factory=dict)

    def told(self) -> str:
        per_minute = f", {60 * self.cases / self.cpu:,.0f} per minute of CPU" if self.cpu else ""
        kills = f", {self.killed:,} kills" if self.killed else ""
        return f"{self.cases:,} cases, {self.succeeded:,} of them succeeded{kills}{per_minute}, the slowest {self.slowest:.1f} s"


TALLIES: dict[str, Tally] = {}
"""By kind, of the test that runs."""

FUZZED = "fuzzed"
"""The property of a test's report that holds what was run."""


class Bench:
    """A folder of its own for each case, with copies of what it needs, and commands in it."""

    def __init__(self, forks: Forks, folder: Path, tally: Tally):
        self.forks, self.folder, self._tally = forks, folder, tally

    def run(self, *words: str, made: tuple[str, ...] = ()) -> Outcome:
        """Run a command that may fail in one sentence, and leaves nothing but what is in `made` then; Broken if it does otherwise."""
        before = self._all()
        outcome = self.forks.run(words, self.folder)
        self.count(outcome.code == 0, outcome.cpu)
        check_told(outcome)
        new = {name for name in self._all() - before if not name.startswith(made)}
        if outcome.code == 2 and new:
            raise Broken(f"leaves {sorted(new)[:3]} behind: {outcome.err.splitlines()[-1]}")
        if scratch := [name for name in new if name.endswith(".part")]:
            raise Broken(f"leaves {scratch} behind after success")
        return outcome

    def count(self, succeeded: bool, seconds: float, killed: bool = False) -> None:
        self._tally.cpu += seconds
        self._tally.slowest = max(self._tally.slowest, seconds)
        self._tally.succeeded += succeeded
        self._tally.killed += killed

    def _all(self) -> set[str]:
        return {
            str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if CACHE not in path.parts
        }  # the cache checks what it reads


def check_told(outcome: Outcome) -> None:
    """Broken unless it ended well, or in one sentence that names something."""
    if outcome.code < 0:
        raise Broken(f"ended by signal {-outcome.code} after {outcome.seconds:.0f} s, {outcome.cpu:.0f} s of CPU")
    told = outcome.out + outcome.err
    if "Traceback (most recent" in told or outcome.code not in (0, 2):
        raise Broken(f"exit code {outcome.code}: {_last_of_traceback(told)}")
    if outcome.code == 2:
        if outcome.err.count(ERROR) != 1:
            raise Broken(f"{outcome.err.count(ERROR)} errors told: {outcome.err[-300:]!r}")
        sentence = outcome.err.partition(ERROR)[2].rstrip("\n")
        if "\n" in sentence or not names_something(sentence, outcome.words):
            raise Broken(f"not one sentence that names a file, a key or a value: {sentence[:300]!r}")


def names_something(sentence: str, words: Sequence[str]) -> bool:
    """Whether a file, a key, an option or a value is in it."""
    sentence = re.sub(r"\[Errno \d+\]", "", sentence)
    given = {word.partition("=")[2] for word in words} - {""}
    options = {word.partition("=")[0].removeprefix("--") for word in words if word.startswith("--")}
    known = set(re.findall(r"\w+", sentence)) & (known_keys() | options)
    return bool(known or re.search(r"['\"/\d]|--\w|\w\.\w", sentence) or any(value in sentence for value in given))


def _last_of_traceback(text: str) -> str:
    """The place of ours or RecBole's where it was raised, and what was."""
    places = re.findall(r'File ".*?((?:recbole|recbole_leaprec)/[^"]+)", line (\d+)', text)
    lines = [line for line in text.rpartition("Traceback (most recent")[2].splitlines() if line and not line.startswith(" ")]
    return f"{':'.join(places[-1]) if places else '?'} {lines[-1][:200] if lines else text[-200:]!r}"


def fuzz(kind: str, share: float, forks: Forks, folder: Path, case: Callable[[random.Random, Bench], None]) -> None:
    """Run cases, each made of its number alone, for a share of the seconds; told together at the end, with how to run one again."""
    tally = TALLIES.setdefault(kind, Tally())
    started, number = time.monotonic(), FIRST
    while True:
        own = folder / f"case-{number}"
        own.mkdir()
        tally.cases += 1
        try:
            case(random.Random(f"{kind} {number}"), Bench(forks, own, tally))
        except Broken as error:
            tally.broken.setdefault(re.sub(r"\d+|'[^']*'", "#", str(error)), []).append((number, str(error)))
        if SECONDS:
            shutil.rmtree(own)
        number += 1
        if time.monotonic() - started >= share * SECONDS:
            break
    test = shlex.quote(os.environ["PYTEST_CURRENT_TEST"].rpartition(" (")[0])
    assert not tally.broken, "\n".join(
        [f"{len(tally.broken)} kinds of failures of {kind}; each with the line that runs it again, and keeps its folder:"]
        + [
            f"  {len(found)} such: {found[0][1]}\n    LEAPREC_FUZZ_SECONDS=0 LEAPREC_FUZZ_FIRST={found[0][0]} python -m pytest {test}"
            for found in list(tally.broken.values())[:MOST_TOLD]
        ]
    )


def alter_rows(rows: list[list[str]], headers: Sequence[str], draw: random.Random) -> None:
    """Change a table, the first row of which has the columns' names, in one way."""
    row = draw.randrange(1, len(rows))
    column = draw.randrange(len(rows[0]))

    def cells(count: int) -> None:
        for _ in range(count):
            one, place, text = rows[draw.randrange(1, len(rows))], draw.randrange(len(rows[0])), odd_text(draw)
            one[place : place + 1] = [text]  # a row that has fewer cells gets one more

    def a_column() -> None:
        value = odd_text(draw)
        for one in rows[1:]:
            one[column : column + 1] = [value]

    def header() -> None:
        rows[0][column] = draw.choice(headers)

    def another_column() -> None:
        rows[0].append(draw.choice(headers))
        for one in rows[1:]:
            one.append(odd_text(draw) if draw.random() < 0.5 or not one else one[0])

    draw.choice(
        [
            lambda: cells(1),
            lambda: cells(1),
            lambda: cells(5),
            lambda: cells(len(rows)),
            a_column,
            header,
            header,
            another_column,
            lambda: rows.insert(row, list(rows[row])),
            lambda: rows.insert(row, []),
            lambda: rows[row].__delitem__(slice(column, column + 1)),
            lambda: rows[row].append("more"),
            lambda: rows.pop(0),
            lambda: rows.insert(0, list(rows[0])),
            lambda: rows.__delitem__(slice(row, None)),
            lambda: rows.__delitem__(slice(1, row)),
            lambda: rows[row].reverse(),
            lambda: rows.sort(),
            lambda: [one.__delitem__(slice(column, column + 1)) for one in rows],
        ]
    )()


ODD_TEXTS = (
    "", " ", "nan", "inf", "-inf", "1e309", "-1", "0", "1e18", "1e-320", "NA", "None", "null", "True", "\x00", "\u200b", "a\u0301",
    "x" * 70_000, '"', '""', "'", "🎬", "=1+1", "[PAD]", "1,5", "2024-01-01", "2024-01-01T00:00:00Z", "a b", " u1 ", "i1", "u1", "\\t",
    "<script>", "../../x", "1_000", "٣", "0x10", "1.0", "9" * 30, "\ufeff", "\r", "a:token", "Action", "Action|Drama", "[1, 2]",
)  # fmt: skip
ODD_BYTES = (b"", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\x00", b"\n", b"\r\n", b"\t", b"\t\t", b'"', b"\x1a", b"\xef\xbb\xbf")


def odd_text(draw: random.Random) -> str:
    return draw.choice(ODD_TEXTS) if draw.random() < 0.9 else "".join(chr(draw.randrange(1, 0xD800)) for _ in range(5))


def damaged(content: bytes, draw: random.Random) -> bytes:
    """Bytes flipped, cut, doubled, put in between, or something else altogether."""
    at, to = sorted(draw.randrange(len(content) + 1) for _ in range(2))
    return draw.choice(
        [
            lambda: content[:at],
            lambda: content[at:],
            lambda: content[:at] + content[to:],
            lambda: content[:to] + content[at:],
            lambda: content[:at] + bytes(to - at) + content[to:],
            lambda: content[:at] + draw.randbytes(draw.choice([1, 4, 100])) + content[at:],
            lambda: content[:at] + draw.choice(ODD_BYTES) + content[at:],
            lambda: flipped(content, draw, 1),
            lambda: flipped(content, draw, 1),
            lambda: flipped(content, draw, 20),
            lambda: content + draw.randbytes(50),
            lambda: draw.choice(
                [b"", b"\n", b"root:x:0:0:root:/root:/bin/sh\n", draw.randbytes(500), b"PK\x03\x04", b"\x80\x02."]
            ),
        ]
    )()


def flipped(content: bytes, draw: random.Random, bits: int) -> bytes:
    if not content:
        return content
    changed = bytearray(content)
    for _ in range(bits):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)
