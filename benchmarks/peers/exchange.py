"""What a peer's training script has in common with the others: our rows in, the time that it has, its scores out.

It runs inside the peers' environments, and needs numpy and torch alone. In a peer's folder, `scores-valid.npy` and
`scores-test.npy` are float32 `[users, items]` by our ids, padding included, -inf for items that the peer does not know; and
`training.json`, written last, is what the training took.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

sys.path.append(str(Path(__file__).resolve().parent.parent))  # at the end: nothing of a peer's has its name taken
from peak import peak_now

SPLITS = {"valid": 2, "test": 1}
"""How many of a user's last items are held back: the first of them is the target, and everything before it is the history."""
BATCH = 32
"""Sequences per step, where a row is a sequence: in little time, many steps bring more than large ones."""
WITHOUT_BETTER = 10
"""Training also ends after so many epochs without a better validation."""

Score = Callable[[Sequence[np.ndarray]], Tensor]
"""From histories, oldest item first, to `[B, items]`."""


@dataclass(frozen=True)
class Task:
    """Our rows and what is asked for: user u's items are `items[offsets[u]:offsets[u+1]]`, oldest first; 0 is padding."""

    items: np.ndarray
    offsets: np.ndarray
    n_items: int
    length: int
    seconds: float
    seed: int
    folder: Path

    @classmethod
    def read(cls, description: str | None, **options: dict[str, Any]) -> tuple[Task, argparse.Namespace]:
        """What the command line asks for, with the options of one script; one thread, and the seed set."""
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument("rows", type=Path, help="items, offsets and n_items, as peers.py writes them")
        parser.add_argument("folder", type=Path)
        parser.add_argument("--minutes", type=float, required=True, help="CPU time of training and validation")
        parser.add_argument("--length", type=int, required=True)
        parser.add_argument("--seed", type=int, required=True)
        for name, settings in options.items():
            parser.add_argument(f"--{name}", **settings)
        asked = parser.parse_args()
        torch.set_num_threads(1)
        torch.manual_seed(asked.seed)
        np.random.seed(asked.seed)
        with np.load(asked.rows) as rows:
            task = cls(
                rows["items"],
                rows["offsets"],
                int(rows["n_items"]),
                asked.length,
                60 * asked.minutes,
                asked.seed,
                asked.folder,
            )
        return task, asked

    @property
    def users(self) -> np.ndarray:
        """Those who have items: all but the padding."""
        return np.flatnonzero(np.diff(self.offsets))

    def training(self, user: int) -> np.ndarray:
        """All that may be learned from of a user."""
        return self.history(user, "valid")

    def history(self, user: int, split: str) -> np.ndarray:
        return self.items[self.offsets[user] : self.offsets[user + 1] - SPLITS[split]]

    def target(self, user: int, split: str) -> int:
        return self.items[self.offsets[user + 1] - SPLITS[split]]

    def windows(self) -> list[np.ndarray]:
        """Training sequences of at most `length` inputs and one target more, such that every target comes exactly once.

        For peers that would take the last `length + 1` items of a user, and leave the others alone.
        """
        found = []
        for user in self.users:
            items = self.training(user)
            for stop in range(len(items), 1, -self.length):
                found.append(items[max(stop - self.length - 1, 0) : stop])
        return found


def left_padded(rows: Sequence[np.ndarray], length: int, padding: int) -> Tensor:
    """`[B, L]`: the last `length` items of each, L being what the longest of them needs."""
    longest = max(1, *(min(len(row), length) for row in rows))
    result = np.full((len(rows), longest), padding, dtype=np.int64)
    for place, row in enumerate(rows):
        kept = row[-longest:]
        result[place, longest - len(kept) :] = kept
    return torch.from_numpy(result)


class LikeLengths(torch.utils.data.Sampler[list[int]]):
    """Random batches of rows of like length, so that little of them is padding."""

    BATCHES_PER_POOL = 32

    def __init__(self, lengths: Sequence[int], batch_size: int, seed: int):
        super().__init__()
        self._lengths, self._size = torch.as_tensor(lengths), batch_size
        self._random = torch.Generator().manual_seed(seed)

    def __len__(self) -> int:
        pool, size = self._size * self.BATCHES_PER_POOL, self._size
        whole, rest = divmod(len(self._lengths), pool)
        return whole * self.BATCHES_PER_POOL + -(-rest // size)

    def __iter__(self) -> Iterator[list[int]]:
        order = torch.randperm(len(self._lengths), generator=self._random)
        batches = [
            batch
            for pool in order.split(self._size * self.BATCHES_PER_POOL)
            for batch in pool[self._lengths[pool].argsort(stable=True)].split(self._size)
        ]
        for number in torch.randperm(len(batches), generator=self._random).tolist():
            yield batches[number].tolist()


class Choice:
    """Watches a training: keeps the parameters of the epoch with the best validation nDCG@10, and says when time is over."""

    def __init__(self, task: Task, model: torch.nn.Module, score: Score, batch_size: int = 256):
        self._task, self._model, self._score, self._batch_size = task, model, score, batch_size
        self._best: dict[str, Tensor] = {}
        self._epochs: list[float] = []
        self._validations: list[float] = []
        self._started, self._started_wall = time.process_time(), time.perf_counter()

    @property
    def spent(self) -> float:
        """CPU seconds since the training began, validation included."""
        return time.process_time() - self._started

    @property
    def out_of_time(self) -> bool:
        return self.spent >= self._task.seconds

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to train: no time, or nothing better for long."""
        return self.out_of_time or (bool(self._validations) and len(self._validations) - 1 - self._best_at >= WITHOUT_BETTER)

    @property
    def _best_at(self) -> int:
        return int(np.argmax(self._validations))

    def epoch_ended(self, share: float = 1.0) -> None:
        """Validate; `share` of an epoch was trained since the last time."""
        self._epochs.append(sum(self._epochs[-1:]) + share)
        value = self._validation()
        if value > max(self._validations, default=-1.0):
            self._best = copy.deepcopy(self._model.state_dict())
        self._validations.append(value)
        print(
            f"epoch {self._epochs[-1]:.4g}: validation nDCG@10 {value:.4f}, best {max(self._validations):.4f}; "
            f"{self.spent:.0f} of {self._task.seconds:.0f} CPU seconds",
            flush=True,
        )

    def write(self, settings: str, packages: Sequence[str]) -> None:
        """The best epoch's scores of all users, and what the training took."""
        spent, wall, peak = self.spent, time.perf_counter() - self._started_wall, peak_now()  # before scores take memory
        self._model.load_state_dict(self._best)
        for split in SPLITS:
            shape = (len(self._task.offsets) - 1, self._task.n_items)
            path = self._task.folder / f"scores-{split}.npy"
            file = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
            file[0] = -np.inf
            for users, scores in self._scored(split):
                file[users] = scores.numpy()
            file.flush()
        told = {
            "settings": settings,
            "versions": {name: version(name) for name in (*packages, "torch")},
            "python": sys.version.split()[0],
            "parameters": sum(parameter.numel() for parameter in self._model.parameters() if parameter.requires_grad),
            "epochs": self._epochs[-1],
            "best_epoch": self._epochs[self._best_at],
            "validations": self._validations,
            "seconds": spent,
            "wall_seconds": wall,
            "peak": peak,
            "length": self._task.length,
            "seed": self._task.seed,
        }
        (self._task.folder / "training.json").write_text(json.dumps(told, indent=2) + "\n")

    @torch.no_grad()
    def _scored(self, split: str) -> Iterator[tuple[np.ndarray, Tensor]]:
        """Users, those of like length together, and their scores."""
        training = self._model.training
        self._model.eval()
        users = self._task.users
        users = users[np.diff(self._task.offsets)[users].argsort(kind="stable")]
        for begin in range(0, len(users), self._batch_size):
            batch = users[begin : begin + self._batch_size]
            yield batch, self._score([self._task.history(user, split) for user in batch])
        self._model.train(training)

    def _validation(self) -> float:
        """nDCG@10 of the validation items, without the items of the history."""
        total = 0.0
        for users, scores in self._scored("valid"):
            for row, user in enumerate(users):
                scores[row, self._task.history(user, "valid")] = -torch.inf
            wanted = scores.gather(1, torch.tensor([[int(self._task.target(user, "valid"))] for user in users]))
            place = (scores > wanted).sum(1)
            found = (place < 10) & (wanted[:, 0] > -torch.inf)
            total += float((found / (place + 2).log2()).sum())
        return total / len(self._task.users)


class EpochEnds:
    """The methods of a Lightning callback that hand a training over to a `Choice`."""

    choice: Choice
    _batches = 0

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        self._batches += 1
        trainer.should_stop = self.choice.out_of_time  # in the middle of an epoch, too

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        self.choice.epoch_ended(self._batches / trainer.num_training_batches)
        self._batches = 0
        trainer.should_stop = self.choice.ended
