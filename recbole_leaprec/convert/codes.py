"""Numbers texts in the order in which they come."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa


class Codes:
    """A number for each text.

    Example:
        >>> codes = Codes()
        >>> codes.of(["b", "a", None, "b"]).tolist(), codes.texts
        ([0, 1, -1, 0], ['b', 'a'])
    """

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    @property
    def texts(self) -> list[str]:
        """All texts; the index of a text is its number."""
        return list(self._codes)

    def __len__(self) -> int:
        return len(self._codes)

    def of(self, values: pa.Array | Iterable[str | None]) -> np.ndarray:
        """The number of each text; a new text gets a new number, a missing one -1."""
        array = values if isinstance(values, pa.Array) else pa.array(values, pa.string())
        encoded = array.dictionary_encode()
        numbers = [self._codes.setdefault(text, len(self._codes)) for text in encoded.dictionary.to_pylist()]
        places = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return np.where(places < 0, -1, np.array([*numbers, -1], dtype=np.int64)[places])
