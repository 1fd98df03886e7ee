"""Makes batches from atomic files."""

from __future__ import annotations

import recbole_leaprec.lighter_recbole  # isort: skip  # noqa: F401, before all imports from RecBole

from typing import TYPE_CHECKING, Any

from recbole.data.dataloader import TrainDataLoader
from recbole.sampler import RepeatableSampler

from recbole_leaprec.data.dataloader import AllPositionsDataLoader, HistoryEvalDataLoader
from recbole_leaprec.data.dataset import HISTORY_END, SequenceDataset

if TYPE_CHECKING:
    from recbole_leaprec.config import LeapRecConfig

__all__ = ["HISTORY_END", "SequenceDataset", "create_dataset", "data_preparation"]


def create_dataset(config: LeapRecConfig) -> SequenceDataset:
    """Load and filter the dataset that `config` names."""
    return SequenceDataset(config)


def data_preparation(config: LeapRecConfig, dataset: SequenceDataset) -> tuple[Any, Any, Any]:
    """Split by leave-one-out. Returns the loaders for training, validation and test."""
    train, valid, test = dataset.build()
    if config["train_positions"] == "all":
        train_data = AllPositionsDataLoader(config, train, shuffle=config["shuffle"])
    else:
        negatives = config["train_neg_sample_args"]
        sampler = None
        if negatives["distribution"] != "none":
            sampler = RepeatableSampler("train", dataset, negatives["distribution"], negatives["alpha"]).set_phase("train")
        train_data = TrainDataLoader(config, train, sampler, shuffle=config["shuffle"])
    return train_data, HistoryEvalDataLoader(config, valid, None), HistoryEvalDataLoader(config, test, None)
