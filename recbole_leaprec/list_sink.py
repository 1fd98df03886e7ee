"""Writes files with Ray Data, from rows that already hold each file's bytes.

This module imports little, and is separate from the code that makes lists. Ray Data writes in its own processes, which would
otherwise load a recommender's packages for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import ray.data
from ray.data.block import Block

from recbole_leaprec.common.parquet_folder import Folder

NAME, CONTENT, ERROR = "name", "content", "error"


class ListSink(ray.data.Datasink[None]):
    """Writes one file per row. A row that is written twice gives the same name and the same content."""

    def __init__(self, folder: Folder):
        self._folder = folder

    def write(self, blocks: Iterable[Block], ctx: Any) -> None:
        """Write the rows of some blocks. If a row has an error message and no content, raise it as ValueError."""
        for block in blocks:
            for name, content, error in zip(*(block.column(one) for one in (NAME, CONTENT, ERROR)), strict=True):
                if error.as_py():
                    raise ValueError(error.as_py())
                self._folder.write_whole(name.as_py(), content.as_buffer())
