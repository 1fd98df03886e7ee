"""Ray Data's writing of files that are there already as bytes, a row each.

It imports little, and stands apart from what makes the lists for that reason: Ray Data writes in processes of its own, which would load
a recommender's packages for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import ray.data
from ray.data.block import Block

from recbole_leaprec.common.parquet_folder import Folder

NAME, CONTENT, ERROR = "name", "content", "error"


class ListSink(ray.data.Datasink[None]):
    """A file per row. What is written twice has the same name and the same content."""

    def __init__(self, folder: Folder):
        self._folder = folder

    def write(self, blocks: Iterable[Block], ctx: Any) -> None:
        """ValueError with the sentence of a row that has one in the place of a content."""
        for block in blocks:
            for name, content, error in zip(*(block.column(one) for one in (NAME, CONTENT, ERROR)), strict=True):
                if error.as_py():
                    raise ValueError(error.as_py())
                self._folder.write_whole(name.as_py(), content.as_buffer())
