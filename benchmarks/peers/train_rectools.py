"""RecTools' SASRec, or its LiGR variant, with a softmax over all items, in RecTools' own environment: see peers.py.

RecTools' model, `fit` and Lightning module. Its data preparator is given batches of sequences of like length, without the
columns that are padding in all rows. Its positions count from the end of a sequence, and `use_key_padding_mask` keeps attention
off what padding is left, so that this changes nothing but the time.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from exchange import BATCH, Choice, EpochEnds, LikeLengths, Task, left_padded
from pytorch_lightning import Callback, Trainer
from rectools import Columns
from rectools.dataset import Dataset
from rectools.models import SASRecModel
from rectools.models.nn.transformers.data_preparator import SequenceDataset
from rectools.models.nn.transformers.ligr import LiGRLayers
from rectools.models.nn.transformers.sasrec import SASRecDataPreparator, SASRecTransformerLayers
from torch import Tensor
from torch.utils.data import DataLoader

LAYERS = {"sasrec": SASRecTransformerLayers, "ligr": LiGRLayers}
WIDTH, BLOCKS = 128, 2


class LikeLengthsPreparator(SASRecDataPreparator):
    """RecTools' batches, without their padding."""

    def __init__(self, seed: int, **settings: Any):
        super().__init__(**settings)
        self._seed = seed

    def get_dataloader_train(self) -> DataLoader:
        sessions = SequenceDataset.from_interactions(self.train_dataset.interactions.df)
        batches = LikeLengths([len(session) for session in sessions.sessions], self.batch_size, self._seed)
        return DataLoader(sessions, batch_sampler=batches, collate_fn=self._collate_fn_train)

    def _collate_fn_train(self, batch: list) -> dict[str, Tensor]:
        longest = max(len(session) for session, _, _ in batch) - 1
        return {name: tensor[:, -longest:].contiguous() for name, tensor in super()._collate_fn_train(batch).items()}


class End(EpochEnds, Callback):
    """RecTools copies its callbacks before a training, and makes its model then."""

    def __init__(self, task: Task):
        self._task = task

    def on_train_start(self, trainer: Trainer, module: Any) -> None:
        model = module.torch_model
        known = module.data_preparator.get_known_item_ids().astype(int)  # RecTools' items are 1, 2, .. in this order
        of_ours = np.zeros(self._task.n_items, dtype=np.int64)
        of_ours[known] = np.arange(1, len(known) + 1)

        def score(histories: Sequence[np.ndarray]) -> Tensor:
            rows = [of_ours[history] for history in histories]
            batch = {"x": left_padded([row[row > 0] for row in rows], self._task.length, 0)}
            items = model.item_model.get_all_embeddings()
            last = model.encode_sessions(batch, items)[:, -1]
            scores = torch.full((len(rows), self._task.n_items), -torch.inf)
            scores[:, known] = model.similarity_module(last, items)[:, 1:]
            return scores

        self.choice = Choice(self._task, model, score)


def interactions(windows: Sequence[np.ndarray]) -> pd.DataFrame:
    """One row per item; each training sequence is a user to RecTools."""
    lengths = [len(window) for window in windows]
    return pd.DataFrame(
        {
            Columns.User: np.repeat(np.arange(len(windows)), lengths),
            Columns.Item: np.concatenate(windows),
            Columns.Weight: 1.0,
            Columns.Datetime: pd.to_datetime(np.concatenate([np.arange(length) for length in lengths]), unit="s"),
        }
    )


def main() -> None:
    task, asked = Task.read(__doc__, variant={"choices": LAYERS, "required": True})
    logging.getLogger("pytorch_lightning").setLevel(logging.WARNING)  # it tells of devices
    model = SASRecModel(
        n_blocks=BLOCKS,
        n_factors=WIDTH,
        session_max_len=task.length,
        batch_size=BATCH,
        use_key_padding_mask=True,
        transformer_layers_type=LAYERS[asked.variant],
        data_preparator_type=LikeLengthsPreparator,
        data_preparator_kwargs={"seed": task.seed},
        get_trainer_func=lambda: Trainer(
            max_epochs=-1, accelerator="cpu", callbacks=[End(task)], logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False, use_distributed_sampler=False,
        ),
    )  # fmt: skip
    # The rest as it comes: 4 heads, dropout 0.2, softmax over all items, Adam at 0.001.
    model.fit(Dataset.construct(interactions(task.windows())))
    end = next(callback for callback in model.fit_trainer.callbacks if isinstance(callback, End))
    end.choice.write(
        f"width {WIDTH}, {BLOCKS} blocks, 4 heads, dropout 0.2, batches of {BATCH}, Adam at 0.001, softmax over all items",
        ["rectools", "pytorch-lightning"],
    )


if __name__ == "__main__":
    main()
