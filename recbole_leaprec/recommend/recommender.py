"""A trained model that answers histories with calibrated lists, item tokens in and item tokens out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from recbole.data.interaction import Interaction
from recbole.data.transform import construct_transform
from torch import Tensor

from recbole_leaprec.checkpoint import restore
from recbole_leaprec.config import LeapRecConfig
from recbole_leaprec.core.calibration import miscalibration
from recbole_leaprec.core.categories import ItemCategories
from recbole_leaprec.core.preference import sequential_preference
from recbole_leaprec.data.frozen import FrozenDataset
from recbole_leaprec.defaults import LIST_LENGTH
from recbole_leaprec.keys import RECOMMENDATION_KEYS, check_changes
from recbole_leaprec.recommend.histories import ITEMS, LEAVE_OUT, USER, split_items
from recbole_leaprec.reranking.reranking import Reranking
from recbole_leaprec.reranking.topk import top_items
from recbole_leaprec.run import Run, trained_config
from recbole_leaprec.run_log import run_log

SKIPPED, FALLBACK, SHORT = "skipped", "fallback", "short"
"""Columns beside the list's own, on a user's first row: unknown items in the history; whether none was known; whether the list
has fewer than k items. A user for whom no item is left has no row at all."""


class Recommender:
    """Lists for histories, of users that the model was trained on or of others.

    A user whose history has no known item gets the most popular items, with how often they occur in training as their score and
    without an S_KL: there is no preference to calibrate to.
    """

    def __init__(
        self,
        checkpoint: str | Path,
        changes: dict[str, Any] | None = None,
        k: int = LIST_LENGTH,
        allow: Collection[str] | None = None,
        deny: Collection[str] = (),
        categories: Mapping[str, Sequence[str]] | None = None,
    ):
        """
        Args:
            checkpoint: a model.pth; nothing else is read.
            changes: keys in `RECOMMENDATION_KEYS`: the reranker, its lambda, and so on.
            allow: tokens of the items that lists may hold; None for all.
            deny: tokens of items that no list may hold.
            categories: names by item token, in the place of those that the model was trained with; an item that is not there has none.
        """
        check_changes(changes or {}, RECOMMENDATION_KEYS)
        # From the whole history; S_KL is what `target_skl` is about.
        whole = {"metrics": ["SKL"], "preference_history": "all"}
        content, config = trained_config(checkpoint, {**(changes or {}), **whole})
        config["mask_history"] = bool(config["mask_history"])
        if "serving" not in content:
            raise ValueError(
                f"{checkpoint} was written by an earlier version, whose files hold no items and categories to make lists of: train again"
            )
        self.dataset = FrozenDataset(content["serving"])
        if k >= self.dataset.item_num:
            raise ValueError(f"k must not exceed the number of items, {self.dataset.item_num - 1}, got {k}")
        config["topk"] = [k]
        self.reranking = Reranking.from_config(config, _lambda_for_target(checkpoint, content, config))
        self.config, self.k, self.device = config, k, config["device"]
        self.model = config.model_class(config, self.dataset).to(self.device)
        restore(self.model, content, checkpoint)
        self.model.eval()
        own = self.dataset.categories
        if categories is not None:
            own = ItemCategories.from_lists([[], *(categories.get(token, ()) for token in self.dataset.items[1:])])
        self._categories = own.to(self.device)
        self._tokens = np.array(self.dataset.items, dtype=object)
        self._ids = {token: number for number, token in enumerate(self.dataset.items) if number}
        self._user_ids = {token: number for number, token in enumerate(self.dataset.users)}
        self._transform = construct_transform(self.config)
        allowed = self._ids.keys() if allow is None else self._ids.keys() & allow
        self._denied = torch.ones(self.dataset.item_num, dtype=torch.bool)
        self._denied[[self._ids[token] for token in allowed - {*deny}]] = False  # padding is denied, too
        if self._denied.all():
            raise ValueError("allow and deny leave no item that the model knows")
        self._popularity = self.dataset.popularity.masked_fill(self._denied, -torch.inf)

    def __call__(self, histories: pd.DataFrame) -> pd.DataFrame:
        """A row for each place of each user's list: user, rank, item, score, skl; and the columns that are counted."""
        users = [str(user) for user in histories[USER]]
        known, skipped = [], []
        for value in histories[ITEMS]:
            ids = [self._ids.get(token, 0) for token in split_items(value)]
            known.append([item for item in ids if item])
            skipped.append(len(ids) - len(known[-1]))
        left_out = [[] for _ in users] if LEAVE_OUT not in histories else [self._known(own) for own in histories[LEAVE_OUT]]
        lists = torch.zeros(len(users), self.k, dtype=torch.long)
        scores, skl = torch.zeros(lists.shape), torch.full((len(users),), torch.nan, dtype=torch.float64)
        seen = torch.tensor([bool(history) for history in known])
        if seen.any():
            some = seen.nonzero()[:, 0].tolist()
            lists[seen], scores[seen], skl[seen] = self._calibrated(
                [users[n] for n in some], [known[n] for n in some], [left_out[n] for n in some]
            )
        if not seen.all():
            popularity = self._popularity.repeat(int((~seen).sum()), 1)
            popularity[_pairs([left_out[n] for n in (~seen).nonzero()[:, 0].tolist()])] = -torch.inf
            popular = top_items(popularity, self.k)
            lists[~seen], scores[~seen] = popular, popularity.gather(1, popular)
        return self._table(users, lists, scores, skl, skipped, seen)

    def _known(self, value: Any) -> list[int]:
        """The ids of the items that the model knows."""
        return [self._ids[token] for token in split_items(value) if token in self._ids]

    @torch.no_grad()
    def _calibrated(
        self, users: list[str], histories: list[list[int]], left_out: list[list[int]]
    ) -> tuple[Tensor, Tensor, Tensor]:
        config = self.config
        scores = self.model.full_sort_predict(self._batch(users, histories).to(self.device)).float()
        scores = scores.view(len(users), -1)
        scores[:, self._denied.to(self.device)] = -torch.inf
        for items in (histories, left_out) if config["mask_history"] else (left_out,):
            scores[_pairs(items)] = -torch.inf
        p = sequential_preference(histories, self._categories, config["alpha"])
        static = self.reranking.preference == "static"
        to = sequential_preference(histories, self._categories, 1.0) if static else p
        lists = self.reranking.lists(scores, to, self._categories, self.k, config["beta"])[0]
        return lists.cpu(), scores.gather(1, lists).cpu(), miscalibration(p, lists, self._categories, config["beta"]).cpu()

    def _batch(self, users: list[str], histories: list[list[int]]) -> Interaction:
        data, longest = self.dataset, self.config["MAX_ITEM_LIST_LENGTH"]
        recent = [torch.tensor(history[-longest:]) for history in histories]
        items = torch.nn.utils.rnn.pad_sequence(recent, batch_first=True)
        if self.config["train_positions"] == "last":  # such a model may need the full length
            items = torch.nn.functional.pad(items, (0, longest - items.shape[1]))
        batch = Interaction(
            {
                data.uid_field: torch.tensor([self._user_ids.get(user, 0) for user in users]),
                data.iid_field + self.config["LIST_SUFFIX"]: items,
                data.item_list_length_field: torch.tensor([len(history) for history in recent]),
            }
        )
        return self._transform(data, batch)

    def _table(
        self, users: list[str], lists: Tensor, scores: Tensor, skl: Tensor, skipped: list[int], seen: Tensor
    ) -> pd.DataFrame:
        row, place = (lists != 0).nonzero(as_tuple=True)
        first = place == 0
        names = pd.Series(users).to_numpy(dtype=object)
        return pd.DataFrame(
            {
                "user": names[row.numpy()],
                "rank": (place + 1).numpy(),
                "item": self._tokens[lists[row, place].numpy()],
                "score": scores[row, place].numpy(),
                "skl": skl[row].numpy(),
                SKIPPED: (torch.tensor(skipped)[row] * first).numpy(),
                FALLBACK: (~seen[row] & first).numpy(),
                SHORT: ((lists[row, -1] == 0) & first).numpy(),
            }
        )


def _pairs(items: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """`(row, item)` of all items of each row."""
    rows = torch.repeat_interleave(torch.arange(len(items)), torch.tensor([len(own) for own in items], dtype=torch.long))
    return rows, torch.tensor([item for own in items for item in own], dtype=torch.long)


def _lambda_for_target(checkpoint: str | Path, content: dict[str, Any], config: LeapRecConfig) -> float | None:
    """The smallest lambda that meets `target_skl` on validation, None where there is no target.

    Raises:
        ValueError: no lambda meets it; or the data that the model was trained on, which has the validation items, is not there.
    """
    target, reranker = config["target_skl"], config["reranker"]
    if target is None:
        return None
    with run_log(config):
        run = Run.restored(checkpoint, content, config)
        with run.scratch_trainer() as trainer:
            lam, met = run.find_lambda(trainer)
    if not met:
        raise ValueError(f"target_skl: no lambda meets the S_KL of {target:g} with {reranker} on validation")
    return lam
