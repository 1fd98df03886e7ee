"""A trained model that answers histories with calibrated lists, item tokens in and item tokens out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import torch
from recbole.data.interaction import Interaction
from recbole.data.transform import construct_transform
from torch import Tensor

from recbole_leaprec.calibration import miscalibration
from recbole_leaprec.preference import sequential_preference
from recbole_leaprec.quick_start import EVALUATION_KEYS, check_changes, load_model
from recbole_leaprec.recommend.histories import ITEMS, USER, split_items
from recbole_leaprec.reranking import get_reranker, rerank_sweep
from recbole_leaprec.reranking.topk import top_items

RECOMMENDATION_KEYS = EVALUATION_KEYS - {"topk", "metrics", "title_field", "preference_history", "output_dir"}
"""What may be changed of a trained run for its lists."""

SKIPPED, FALLBACK, SHORT = "skipped", "fallback", "short"
"""Columns beside the list's own, on a user's first row: unknown items in the history; whether none was known; whether the list
has fewer than k items. A user for whom no item is left has no row at all."""


class Recommender:
    """Lists for histories, of users that the model was trained on or of others.

    A user whose history has no known item gets the most popular items, with how often they occur in training as their score and
    without an S_KL: there is no preference to calibrate to.
    """

    def __init__(self, checkpoint: str | Path, changes: dict[str, Any] | None = None, k: int = 10):
        """`changes` are keys in `RECOMMENDATION_KEYS`: the reranker, its lambda, and so on."""
        check_changes(changes or {}, RECOMMENDATION_KEYS)
        self.config, self.dataset, self.model, training = load_model(checkpoint, changes)
        self.k, self.device = k, self.config["device"]
        self._reranker = get_reranker(self.config["reranker"])
        self._categories = self.dataset.categories.to(self.device)
        self._tokens = self.dataset.field2id_token[self.dataset.iid_field]
        self._ids = self.dataset.field2token_id[self.dataset.iid_field]
        self._user_ids = self.dataset.field2token_id[self.dataset.uid_field]
        self._transform = construct_transform(self.config)
        self._popularity = torch.bincount(
            training.inter_feat[self.dataset.iid_field], minlength=self.dataset.item_num
        ).float()

    def __call__(self, histories: pd.DataFrame) -> pd.DataFrame:
        """A row for each place of each user's list: user, rank, item, score, skl; and the columns that are counted."""
        users = [str(user) for user in histories[USER]]
        known, skipped = [], []
        for value in histories[ITEMS]:
            ids = [self._ids.get(token, 0) for token in split_items(value)]
            known.append([item for item in ids if item])
            skipped.append(len(ids) - len(known[-1]))
        lists = torch.zeros(len(users), self.k, dtype=torch.long)
        scores, skl = torch.zeros(lists.shape), torch.full((len(users),), torch.nan, dtype=torch.float64)
        seen = torch.tensor([bool(history) for history in known])
        if seen.any():
            some = seen.nonzero()[:, 0].tolist()
            lists[seen], scores[seen], skl[seen] = self._calibrated([users[n] for n in some], [known[n] for n in some])
        if not seen.all():
            popular = top_items(self._popularity[None], self.k)
            lists[~seen], scores[~seen] = popular, self._popularity[popular]
        return self._table(users, lists, scores, skl, skipped, seen)

    @torch.no_grad()
    def _calibrated(self, users: list[str], histories: list[list[int]]) -> tuple[Tensor, Tensor, Tensor]:
        config = self.config
        scores = self.model.full_sort_predict(self._batch(users, histories).to(self.device)).float()
        scores = scores.view(len(users), -1)
        scores[:, 0] = -torch.inf
        if config["mask_history"]:
            rows = torch.repeat_interleave(
                torch.arange(len(histories)), torch.tensor([len(history) for history in histories])
            )
            scores[rows, torch.tensor([item for history in histories for item in history])] = -torch.inf
        p = sequential_preference(histories, self._categories, config["alpha"])
        target = sequential_preference(histories, self._categories, 1.0) if self._reranker.target == "static" else p
        lists = rerank_sweep(
            scores, target, self._categories, self.k, config["reranker"], [config["rerank_lambda"]], config["beta"],
            config["rerank_candidates"], config["rerank_order"], config["rerank_temperature"],
        )[0]  # fmt: skip
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

    def _table(self, users, lists, scores, skl, skipped, seen) -> pd.DataFrame:
        row, place = (lists != 0).nonzero(as_tuple=True)
        first = place == 0
        names = pd.Series(users).to_numpy(dtype=object)
        return pd.DataFrame(
            {
                "user": names[row.numpy()],
                "rank": (place + 1).numpy(),
                "item": self._tokens[lists[row, place].numpy()].astype(object),
                "score": scores[row, place].numpy(),
                "skl": skl[row].numpy(),
                SKIPPED: (torch.tensor(skipped)[row] * first).numpy(),
                FALLBACK: (~seen[row] & first).numpy(),
                SHORT: ((lists[row, -1] == 0) & first).numpy(),
            }
        )
