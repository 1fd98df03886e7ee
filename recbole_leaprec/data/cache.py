"""A prepared dataset on disk: flat arrays that are mapped into memory, and plain values beside them.

`<data_path>/<dataset>/.leaprec-cache/<key>/` holds `content.json` and the arrays as .npy files. The key is a digest of all that
the content was made of: the files, the settings, and the versions of the code. A folder is written under another name and then
renamed, so that it is there as a whole or not at all, and it is used only if it was made of just what there is now and every
array is as it was written.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import tempfile
import time
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

_logger = logging.getLogger(__name__)

FOLDER = ".leaprec-cache"
CONTENT = "content.json"

KEPT = 4
"""Prepared datasets that one folder of atomic files may have, for as many settings."""

HASHED = 2**26
"""Files up to so many bytes count by their content, too; larger ones by name, size and time of change alone."""

_DAY = 24 * 3600
_PIECE = 2**20


class Cache:
    """Where what was made of these files, settings and versions is kept."""

    def __init__(self, folder: Path, files: Iterable[Path], settings: Mapping[str, Any]):
        """
        Args:
            folder: of the atomic files.
            files: what is read; those that do not exist count as missing.
            settings: plain values that shape what is made, versions among them.
        """
        self._folder, self._files, self._settings = folder / FOLDER, list(files), dict(settings)
        self._made_of = self._now()
        self._path = self._folder / hashlib.sha256(json.dumps(self._made_of).encode()).hexdigest()[:32]

    def _now(self) -> dict[str, Any]:
        settings = json.loads(json.dumps(self._settings, sort_keys=True, default=repr))
        return {"files": [_state_of(path) for path in self._files], "settings": settings}

    def load(self) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """`(values, arrays)` as they were saved, the arrays mapped into memory; None if there is nothing that fits and is whole."""
        if not self._path.is_dir():
            return None
        try:
            content = json.loads((self._path / CONTENT).read_text(encoding="utf-8"))
            if content["made_of"] != self._made_of:
                raise ValueError("it was made of something else")
            arrays = {name: _mapped(self._path / file, digest) for name, (file, digest) in content["arrays"].items()}
            return content["values"], arrays
        except (OSError, ValueError, KeyError, TypeError) as error:
            _logger.warning("%s is damaged, and the data is prepared anew: %s", self._path, error)
            shutil.rmtree(self._path, ignore_errors=True)
            return None

    def save(self, values: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Keep plain values and arrays; not if a file has changed since, or the folder cannot be written, which is told."""
        if self._now() != self._made_of:
            _logger.warning("%s has changed while it was read, and what was made of it is not kept", self._folder.parent)
            return
        try:
            if not self._folder.parent.stat().st_mode & 0o222:  # which would not stop the superuser
                raise PermissionError(f"{self._folder.parent} is read-only")
            self._folder.mkdir(exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self._folder, suffix=".part", ignore_cleanup_errors=True) as name:
                scratch = Path(name) / "whole"
                scratch.mkdir()
                files = {}
                for number, (array, content) in enumerate(arrays.items()):
                    np.save(scratch / f"{number}.npy", content, allow_pickle=False)
                    files[array] = (f"{number}.npy", _checksum(scratch / f"{number}.npy"))
                told = {"made_of": self._made_of, "values": values, "arrays": files}
                (scratch / CONTENT).write_text(json.dumps(told), encoding="utf-8")
                if not self._path.exists():  # another process may have been quicker
                    os.rename(scratch, self._path)
            self._tidy()
        except OSError as error:
            _logger.info("the prepared data is not kept for the next start: %s", error)

    def _tidy(self) -> None:
        """Remove what was made of other files, what is old beyond `KEPT`, and what a process left behind that was killed."""
        whole = []
        for path in self._folder.iterdir():
            if path.suffix == ".part":
                if path.stat().st_mtime < time.time() - _DAY:
                    shutil.rmtree(path, ignore_errors=True)
            elif path != self._path:
                whole.append(path)
        whole.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for number, path in enumerate(whole):
            if number >= KEPT - 1 or _files_of(path) != self._made_of["files"]:
                shutil.rmtree(path, ignore_errors=True)


def _state_of(path: Path) -> list[Any]:
    """Name, size, time of change and, of a file that is not large, a digest of the content."""
    try:
        state = path.stat()
    except FileNotFoundError:
        return [path.name, None]
    content = hashlib.sha256(path.read_bytes()).hexdigest() if state.st_size <= HASHED else None
    return [path.name, state.st_size, state.st_mtime_ns, content]


def _files_of(path: Path) -> Any:
    try:
        return json.loads((path / CONTENT).read_text(encoding="utf-8"))["made_of"]["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _mapped(path: Path, checksum: int) -> np.ndarray:
    """The array of a file; ValueError if the file is not as it was written.

    It is mapped so that a write changes memory and not the file: torch has no tensors that cannot be written.
    """
    if _checksum(path) != checksum:
        raise ValueError(f"{path.name} is not as it was written")
    array = (
        np.load(path, allow_pickle=False)
        if path.stat().st_size < _PIECE
        else np.load(path, mmap_mode="c", allow_pickle=False)
    )
    return np.asarray(array)


def _checksum(path: Path) -> int:
    total = 0
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            total = zlib.crc32(piece, total)
    return total
