"""Reads plain or gzip files, with a progress bar over their bytes."""

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
"""Bytes that are read at a time."""

LONGEST = 2**24
"""Bytes of the longest line. If a line is longer, the file does not have one record per line."""


def find_file(raw: str | Path, names: list[str], where: str) -> Path:
    """The path of the first of these files that the folder has, packed or not; ValueError if it has none.

    Args:
        where: a text for the error: where to get the file, and where to put it.
    """
    for name in names:
        for candidate in (Path(raw) / name, Path(raw) / name.removesuffix(".gz")):
            if candidate.is_file():
                return candidate
    raise ValueError(f"{raw} holds no {' or '.join(names)} (--raw). {where}")


@contextmanager
def open_bytes(path: str | Path, show_progress: bool = True) -> Iterator[IO[bytes]]:
    """An open file, unpacked while it is read if it is gzip. The progress bar counts the bytes on disk.

    Raises:
        ValueError: there is no such file, it is empty, it is called .gz and is not gzip, or it was cut short.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"there is no file {str(path)!r}")
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
    """`(number, line)` of a file's lines, numbered from 1 and without line ends. Empty lines are left out.

    Raises:
        ValueError: a line is too long, for example because the whole file is one JSON list.
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
