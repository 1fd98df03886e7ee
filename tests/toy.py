"""Made-up data, and settings for small models of it."""

from __future__ import annotations

from pathlib import Path

import pytest

GENRES = ["Action", "Comedy", "Drama", "Horror"]


def write_dataset(folder: Path, inter: list[tuple], items: dict[str, str], header: str | None = None) -> Path:
    """Atomic files `toy.inter` and `toy.item` in `folder/toy`; returns `folder`, the data_path."""
    (folder / "toy").mkdir(parents=True, exist_ok=True)
    lines = [header or "user_id:token\titem_id:token\ttimestamp:float", *("\t".join(map(str, row)) for row in inter)]
    (folder / "toy" / "toy.inter").write_text("\n".join(lines) + "\n")
    rows = ["item_id:token\tgenre:token_seq", *(f"{item}\t{genres}" for item, genres in items.items())]
    (folder / "toy" / "toy.item").write_text("\n".join(rows) + "\n")
    return folder


SMALL = {
    "category_field": "genre", "MAX_ITEM_LIST_LENGTH": 8, "hidden_size": 8, "inner_size": 8, "train_batch_size": 16,
    "epochs": 2, "topk": [5, 10], "show_progress": False,
}  # fmt: skip


stock_recbole = pytest.mark.filterwarnings(
    "ignore:A value is being set on a copy:pandas.errors.ChainedAssignmentError",
    "ignore:The given NumPy array is not writable:UserWarning",
    "ignore:__array_wrap__ must accept context:DeprecationWarning",
)
"""For a test that loads data with RecBole's own dataset, which warns on pandas 3."""
