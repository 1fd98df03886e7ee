"""Makes batches: all positions of a sequence at once for training, whole histories to mask for evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from recbole.data.dataloader import FullSortEvalDataLoader
from recbole.data.dataloader.abstract_dataloader import AbstractDataLoader
from recbole.data.interaction import Interaction

from recbole_leaprec.data.dataset import HISTORY_END, SequenceDataset
from recbole_leaprec.data.negatives import NegativeSampler
from recbole_leaprec.data.sequences import Windows
from recbole_leaprec.settings.keys import SOFTMAX

if TYPE_CHECKING:
    from recbole_leaprec.config import LeapRecConfig

BATCHES_PER_POOL = 32
"""Windows are sorted by length inside random pools of this many batches, so that short ones need little padding."""

POSITIONS, SCORES = 2**14, 2**23
"""How many positions of histories are encoded, and how many scores are computed, at a time in evaluation.

Larger batches are hardly faster, and they would take most of an evaluation's memory.
"""


class AllPositionsDataLoader(AbstractDataLoader):
    """Training batches of `train_batch_size` windows. Every position has a target and, for a pairwise loss, a negative.

    Fields of a batch, where L is the length of its longest window: `user_id [B]`; `item_id_list [B, L]`, the inputs, and
    `item_length [B]`; `item_id [B, L]`, the targets, 0 where there is none; `neg_item_id [B, L]`, drawn anew each epoch
    from the items that the user does not have in training (not for the softmax loss); `history_end [B, L]`.

    Every training target of the dataset occurs exactly once per epoch (see `Windows`).
    """

    def __init__(self, config: LeapRecConfig, dataset: SequenceDataset, shuffle: bool = True):
        sequences = dataset.sequences
        begin = sequences.offsets[:-1]
        end = torch.maximum(sequences.training_end - 1, begin)  # the last training item has no target
        self.windows = Windows.cut(begin, end, config["MAX_ITEM_LIST_LENGTH"])
        if not len(self.windows):
            raise ValueError(f"{dataset.dataset_name}: no user has a training target, all have 3 interactions or fewer")
        self.negatives = None if config["loss_type"] == SOFTMAX else self._negatives(dataset)
        self.sample_size = len(self.windows)
        self._prefix, self._suffix = config["NEG_PREFIX"], config["LIST_SUFFIX"]
        super().__init__(config, dataset, sampler=None, shuffle=shuffle)

    def _negatives(self, dataset: SequenceDataset) -> NegativeSampler:
        negatives = NegativeSampler(
            dataset.inter_feat[dataset.uid_field], dataset.inter_feat[dataset.iid_field], dataset.user_num, dataset.item_num
        )
        users = dataset.sequences.user_of(self.windows.start).unique()
        full = int((negatives.available[users] == 0).sum())
        if full:
            raise ValueError(
                f"{dataset.dataset_name}: {full} users have interacted with every item, so there is no negative to draw for "
                f"them; leave them out (user_inter_num_interval), or give the .item file the rest of the catalogue"
            )
        return negatives

    def _init_batch_size_and_step(self):
        self.step = min(self.config["train_batch_size"], self.sample_size)
        self.set_batch_size(self.step)

    def __iter__(self):
        for index in self._batches():
            yield self.collate_fn(index)

    def _batches(self) -> list[torch.Tensor]:
        if not self.shuffle:
            return list(torch.arange(self.sample_size).split(self.step))
        lengths = self.windows.lengths
        batches = []
        for pool in torch.randperm(self.sample_size, generator=self.generator).split(self.step * BATCHES_PER_POOL):
            batches += pool[lengths[pool].argsort(stable=True)].split(self.step)
        return [batches[i] for i in torch.randperm(len(batches), generator=self.generator)]

    def collate_fn(self, index):
        data, windows = self._dataset, self.windows
        items, start, stop = data.sequences.items, windows.start[index], windows.stop[index]
        place = start[:, None] + torch.arange(int((stop - start).max()))
        inside = place < stop[:, None]
        place = place.clamp_max(len(items) - 2)
        user = data.sequences.user_of(start)
        batch = {
            data.uid_field: user,
            data.iid_field + self._suffix: items[place] * inside,
            data.item_list_length_field: stop - start,
            data.iid_field: items[place + 1] * (inside & (place >= windows.first[index][:, None])),
            HISTORY_END: place,
        }
        if self.negatives is not None:
            batch[self._prefix + data.iid_field] = self.negatives.sample(user, place.shape, self.generator)
        return Interaction(batch)


class HistoryEvalDataLoader(FullSortEvalDataLoader):
    """RecBole's full-ranking loader, with the part of the user's history that is masked (`mask_history`).

    A batch has `eval_batch_size` users, or fewer if `MAX_ITEM_LIST_LENGTH` or the catalogue is large.
    """

    def _init_batch_size_and_step(self):
        largest = min(POSITIONS // self.config["MAX_ITEM_LIST_LENGTH"], SCORES // self._dataset.item_num)
        self.step = max(1, min(self.config["eval_batch_size"], largest))
        self.set_batch_size(self.step)

    def collate_fn(self, index):
        interaction, history, positive_u, positive_i = super().collate_fn(index)
        if masked := self.config["mask_history"]:
            end = interaction[HISTORY_END]
            if masked == "training":
                end = self._dataset.sequences.last_in_training(end)
            history = self._dataset.sequences.history(end + 1)
        return interaction, history, positive_u, positive_i
