"""RecBole's own SASRec with its cross-entropy over all items, in RecBole's own environment: see peers.py.

RecBole's dataset, loader, model and training step as they come: one padded row per prefix. Anomaly detection, which RecBole
switches on for every model when it is imported, is off.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from exchange import Choice, Task
from recbole.config import Config
from recbole.data import create_dataset, data_preparation
from recbole.data.interaction import Interaction
from recbole.model.sequential_recommender import SASRec
from recbole.trainer import Trainer
from recbole.utils import init_seed
from torch import Tensor

WIDTH, BLOCKS = 128, 2
BATCH = 256
"""RecBole's 2,048 rows would take many GB at length 200, and eight times as few steps in the same time."""
NAME = "rows"


def write_atomic(task: Task) -> None:
    """Our rows as RecBole reads them; its own leave-one-out takes validation and test away again. Time is the place in the sequence."""
    folder = task.folder / "atomic" / NAME
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{NAME}.inter").open("w") as file:
        file.write("user_id:token\titem_id:token\ttimestamp:float\n")
        for user in task.users:
            items = task.items[task.offsets[user] : task.offsets[user + 1]]
            file.writelines(f"{user}\t{item}\t{place}\n" for place, item in enumerate(items))


class WhileTimeLasts:
    """RecBole's batches until the time of a `Choice` is over, and how many came; at least one."""

    def __init__(self, batches: Any, choice: Choice):
        self._batches, self._choice = batches, choice
        self.count = 0

    def __iter__(self) -> Iterator[Any]:
        for batch in self._batches:
            yield batch
            self.count += 1
            if self._choice.out_of_time:
                return


def main() -> None:
    task, _ = Task.read(__doc__)
    sys.argv = sys.argv[:1]  # RecBole reads the command line of whatever program is running
    write_atomic(task)
    settings = {
        "data_path": str(task.folder / "atomic"),
        "checkpoint_dir": str(task.folder),
        "load_col": {"inter": ["user_id", "item_id", "timestamp"]},
        "eval_args": {"split": {"LS": "valid_and_test"}, "group_by": "user", "order": "TO", "mode": "full"},
        "loss_type": "CE",
        "train_neg_sample_args": None,
        "MAX_ITEM_LIST_LENGTH": task.length,
        "hidden_size": WIDTH,
        "n_layers": BLOCKS,
        "train_batch_size": BATCH,
        "seed": task.seed,
        "use_gpu": False,
        "gpu_id": "",
        "state": "WARNING",
    }
    config = Config(model=SASRec, dataset=NAME, config_dict=settings)
    init_seed(config["seed"], config["reproducibility"])
    torch.autograd.set_detect_anomaly(False)
    dataset = create_dataset(config)
    train_data, _, _ = data_preparation(config, dataset)
    model = SASRec(config, train_data.dataset)
    trainer = Trainer(config, model)
    ours = dataset.field2id_token["item_id"][1:].astype(int)  # RecBole's items are 1, 2, .. in this order
    of_ours = np.zeros(task.n_items, dtype=np.int64)
    of_ours[ours] = np.arange(1, len(ours) + 1)

    def score(histories: Sequence[np.ndarray]) -> Tensor:
        lengths = torch.tensor([min(len(history), task.length) for history in histories])
        items = torch.zeros(len(histories), int(lengths.max()), dtype=torch.long)
        for row, history in enumerate(histories):
            kept = history[-task.length :]
            items[row, : len(kept)] = torch.from_numpy(of_ours[kept])
        found = model.full_sort_predict(Interaction({model.ITEM_SEQ: items, model.ITEM_SEQ_LEN: lengths}))
        scores = torch.full((len(histories), task.n_items), -torch.inf)
        scores[:, ours] = found[:, 1:]
        return scores

    choice = Choice(task, model, score)
    while not choice.ended:
        batches = WhileTimeLasts(train_data, choice)
        trainer._train_epoch(batches, 0)
        choice.epoch_ended(batches.count / len(train_data))
    choice.write(
        f"width {WIDTH}, {BLOCKS} blocks, 2 heads, dropout 0.5, batches of {BATCH} rows, Adam at 0.001, cross-entropy over all items",
        ["recbole"],
    )


if __name__ == "__main__":
    main()
