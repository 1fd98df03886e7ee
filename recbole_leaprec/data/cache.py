"""Keeps a prepared dataset on disk: flat arrays that are mapped into memory, and plain values beside them.

`<data_path>/<dataset>/.leaprec-cache/<key>/` holds `content.json` and the arrays as .npy files. The key is a digest of
everything that the content depends on: the files, the settings, and the versions of the code. A folder is written under
another name and then renamed, so it is never there in part. It is used only if files, settings and versions are still the
same, and every array is as it was written.
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
"""How many prepared datasets are kept per folder of atomic files, each for other settings."""

HASHED = 2**26
"""Up to this many bytes, a file's content counts for the key, too; of larger files only name, size and time of change."""

_DAY = 24 * 3600
_PIECE = 2**20


class Cache:
    """The place for the dataset that is prepared from these files, settings and versions."""

    def __init__(self, folder: Path, files: Iterable[Path], settings: Mapping[str, Any]):
        """
        Args:
            folder: the folder of the atomic files.
            files: the files that are read. A file that does not exist counts as missing.
            settings: plain values that the prepared dataset depends on, with the versions among them.
        """
        self._folder, self._files, self._settings = folder / FOLDER, list(files), dict(settings)
        self._made_of = self._now()
        self._path = self._folder / hashlib.sha256(json.dumps(self._made_of).encode()).hexdigest()[:32]

    def _now(self) -> dict[str, Any]:
        settings = json.loads(json.dumps(self._settings, sort_keys=True, default=repr))
        return {"files": [_state_of(path) for path in self._files], "settings": settings}

    def load(self) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """`(values, arrays)` as saved, with the arrays mapped into memory; None if there is no match or it is damaged."""
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
        """Keep plain values and arrays. If a file has changed since, or the folder is not writable, log that and skip it."""
        if self._now() != self._made_of:
            _logger.warning("%s has changed while it was read, and what was made of it is not kept", self._folder.parent)
            return
        try:
            if not self._folder.parent.stat().st_mode & 0o222:  # the superuser could still write
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
        """Remove datasets made from other files, the oldest beyond `KEPT`, and old remains of killed processes."""
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
    """Name, size and time of change of a file; and a digest of its content, unless it is large."""
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

    A write to the array changes only memory, not the file. It must be writable because torch has no read-only tensors.
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
