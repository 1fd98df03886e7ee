"""RePlay's SASRec with cross-entropy over all items, in RePlay's own environment: see peers.py.

RePlay's model, loss, optimiser and Lightning module; batches in its format, of sequences of like length, without the columns
that would be padding in all rows. Its positions count from the end of a sequence, so that these columns change nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import lightning
import numpy as np
import torch
from exchange import BATCH, Choice, EpochEnds, LikeLengths, Task, left_padded
from replay.data import FeatureHint, FeatureType
from replay.data.nn import TensorFeatureInfo, TensorSchema
from replay.nn.lightning import LightningModule
from replay.nn.sequential import SasRec
from torch import Tensor

WIDTH, BLOCKS = 128, 2
ITEM = "item_id"


class End(EpochEnds, lightning.Callback):
    def __init__(self, choice: Choice):
        self.choice = choice


class Batches:
    """From items, by our ids, to the batches that RePlay takes: its items begin at 0, and padding comes after the last."""

    def __init__(self, task: Task):
        self.length, self.padding = task.length, task.n_items - 1

    def inputs(self, rows: Sequence[np.ndarray]) -> dict[str, Tensor | dict[str, Tensor]]:
        items = left_padded([row - 1 for row in rows], self.length, self.padding)
        return {"feature_tensors": {ITEM: items}, "padding_mask": items != self.padding}

    def training(self, rows: Sequence[np.ndarray]) -> dict[str, Tensor | dict[str, Tensor]]:
        labels = left_padded([row[1:] - 1 for row in rows], self.length, self.padding)[..., None]
        inputs = self.inputs([row[:-1] for row in rows])
        return {**inputs, "positive_labels": labels, "target_padding_mask": labels != self.padding}


def main() -> None:
    task, _ = Task.read(__doc__)
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)  # it tells of devices, and of products
    batches, windows = Batches(task), task.windows()
    feature = TensorFeatureInfo(
        ITEM,
        FeatureType.CATEGORICAL,
        is_seq=True,
        feature_hint=FeatureHint.ITEM_ID,
        cardinality=batches.padding,
        padding_value=batches.padding,
        embedding_dim=WIDTH,
    )
    model = SasRec.from_params(
        TensorSchema([feature]), embedding_dim=WIDTH, num_blocks=BLOCKS, max_sequence_length=task.length
    )  # the rest as it comes: 4 heads, dropout 0.3, cross-entropy over all items

    def score(histories: Sequence[np.ndarray]) -> Tensor:
        logits = model(**batches.inputs(histories))["logits"]
        return torch.cat([torch.full((len(logits), 1), -torch.inf), logits], dim=1)

    loader = torch.utils.data.DataLoader(
        windows,
        batch_sampler=LikeLengths([len(window) for window in windows], BATCH, task.seed),
        collate_fn=batches.training,
    )
    choice = Choice(task, model, score)
    trainer = lightning.Trainer(
        max_epochs=-1, accelerator="cpu", callbacks=[End(choice)], logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, use_distributed_sampler=False,
    )  # fmt: skip
    trainer.fit(LightningModule(model), loader)
    choice.write(
        f"width {WIDTH}, {BLOCKS} blocks, 4 heads, dropout 0.3, batches of {BATCH}, Adam at 0.001, cross-entropy over all items",
        ["replay-rec", "lightning"],
    )


if __name__ == "__main__":
    main()
