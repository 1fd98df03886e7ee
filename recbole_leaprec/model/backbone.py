"""What the mixins of this package expect of the RecBole class that stands after them: RecBole has no types to say it with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, nn

    class Backbone:
        """A sequential model of RecBole's, as far as the mixins use it. For type checking only: the class beside them has it all."""

        ITEM_SEQ: str
        ITEM_SEQ_LEN: str
        POS_ITEM_ID: str
        NEG_ITEM_ID: str
        item_embedding: Any  # items' vectors by their ids: nn.Embedding, or a module of the model's own
        _modules: dict[str, nn.Module | None]

        def __init__(self, config: Any, dataset: Any) -> None: ...

        def forward(self, *inputs: Tensor) -> Tensor: ...

        def gather_indexes(self, output: Tensor, gather_index: Tensor) -> Tensor: ...

        def calculate_loss(self, interaction: Any) -> Tensor: ...

        def full_sort_predict(self, interaction: Any) -> Tensor: ...
else:
    Backbone = object
