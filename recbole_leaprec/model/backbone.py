"""Types of what this package's mixins expect from the RecBole class after them. RecBole itself has no such types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, nn

    class Backbone:
        """The parts of a sequential RecBole model that the mixins use. It exists only for type checking."""

        ITEM_SEQ: str
        ITEM_SEQ_LEN: str
        POS_ITEM_ID: str
        NEG_ITEM_ID: str
        item_embedding: Any  # items' vectors by their ids: nn.Embedding, or the model's own module
        _modules: dict[str, nn.Module | None]

        def __init__(self, config: Any, dataset: Any) -> None: ...

        def forward(self, *inputs: Tensor) -> Tensor: ...

        def gather_indexes(self, output: Tensor, gather_index: Tensor) -> Tensor: ...

        def calculate_loss(self, interaction: Any) -> Tensor: ...

        def full_sort_predict(self, interaction: Any) -> Tensor: ...
else:
    Backbone = object
