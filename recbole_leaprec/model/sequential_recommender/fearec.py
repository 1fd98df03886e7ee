"""FEARec, which looks up other sequences with the same target in the training data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import recbole.model.sequential_recommender as recbole_models
from torch import Tensor

if TYPE_CHECKING:
    from recbole_leaprec.data import SequenceDataset


class FEARec(recbole_models.FEARec):
    """RecBole's FEARec on sequences that are kept once. The rows are made when the model reads them."""

    def __init__(self, config, dataset):
        super().__init__(config, _PrefixRows(dataset))


class _PrefixRows:
    """A training split in the form that FEARec reads: `inter_feat[field][n]`, one row per prefix."""

    def __init__(self, split: SequenceDataset):
        self._split = split
        self.inter_feat = self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # an unfinished copy has no _split yet
            raise AttributeError(name)
        return getattr(self._split, name)

    def __getitem__(self, field: str) -> Tensor | _Column:
        if field == self._split.iid_field:
            return self._split.sequences.items[self._split.targets]
        return _Column(self._split, field)


class _Column:
    def __init__(self, split: SequenceDataset, field: str):
        self._split, self._field = split, field

    def __getitem__(self, index: int) -> Tensor:
        return self._split[[index]][self._field][0]
