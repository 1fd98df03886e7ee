"""Files as they are read: plain or gzip, with a bar over their bytes."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from tqdm import tqdm

GZIP = b"\x1f\x8b"

BLOCK = 2**22
"""Bytes that are worked on at a time."""

LONGEST = 2**24
"""Bytes of a line; in a file with a longer one lines are no records."""


def find_file(raw: str | Path, names: list[str], where: str) -> Path:
    """The first of these files that is in a folder, packed or not; ValueError that says where to get it.

    Args:
        where: whence the file comes, and where to put it.
    """
    for name in names:
        for candidate in (Path(raw) / name, Path(raw) / name.removesuffix(".gz")):
            if candidate.is_file():
                return candidate
    raise ValueError(f"{raw} holds no {' or '.join(names)} (--raw). {where}")


@contextmanager
def open_bytes(path: str | Path, show_progress: bool = True) -> Iterator[IO[bytes]]:
    """A file to read from, unpacked if it is gzip; the bar counts the bytes on disk.

    Raises:
        ValueError: no such file, an empty one, one that is called .gz and is not, or one that was cut short.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    size = path.stat().st_size
    if not size:
        raise ValueError(f"{path} is empty")
    with (
        open(path, "rb") as file,
        tqdm.wrapattr(
            file, "read", total=size, desc=path.name, unit="B", unit_scale=True, leave=False, disable=not show_progress
        ) as counted,
    ):
        packed = file.read(2) == GZIP
        file.seek(0)
        if path.suffix == ".gz" and not packed:
            raise ValueError(f"{path} is not gzip, whatever its name says: unpack it again, or name it without .gz")
        source: Any = counted
        reader: Any = gzip.GzipFile(fileobj=source, mode="rb") if packed else source
        try:
            yield reader
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path} is damaged or was cut short ({error}): get it again") from error


def read_lines(path: str | Path, show_progress: bool = True) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers, from 1, without their ends; empty ones are left out.

    Raises:
        ValueError: a line never ends, as where a whole file is one list.
    """
    with open_bytes(path, show_progress) as file:
        rest, number = b"", 0
        while block := file.read(BLOCK):
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                number += 1
                if line.strip():
                    yield number, line.rstrip(b"\r")
            if len(rest) > LONGEST:
                raise ValueError(
                    f"{path}, line {number + 1:,} is longer than {LONGEST:,} bytes: there must be a record per line"
                )
        if rest.strip():
            yield number + 1, rest.rstrip(b"\r")
