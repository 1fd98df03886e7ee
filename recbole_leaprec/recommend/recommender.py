"""A trained model that makes calibrated lists from histories: item tokens in, item tokens out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from recbole.data.interaction import Interaction
from recbole.data.transform import construct_transform
from torch import Tensor

from recbole_leaprec.checkpoint import restore
from recbole_leaprec.common.defaults import LIST_LENGTH
from recbole_leaprec.common.reading import reading
from recbole_leaprec.config import LeapRecConfig
from recbole_leaprec.core.calibration import miscalibration
from recbole_leaprec.core.categories import ItemCategories
from recbole_leaprec.core.preference import sequential_preference
from recbole_leaprec.data.frozen import FrozenDataset
from recbole_leaprec.recommend.histories import ITEMS, LEAVE_OUT, USER, split_items
from recbole_leaprec.recommend.writer import TITLE
from recbole_leaprec.reranking.lambda_search import TargetNotMet
from recbole_leaprec.reranking.reranking import Reranking
from recbole_leaprec.reranking.topk import top_items
from recbole_leaprec.run import Run, trained_config
from recbole_leaprec.run_log import run_log
from recbole_leaprec.settings.keys import RECOMMENDATION_KEYS, check_changes

SKIPPED, FALLBACK, SHORT = "skipped", "fallback", "short"
"""Extra columns, set on a user's first row: the number of unknown items in the history; whether no item was known;
whether the list has fewer than k items. A user for whom no item is left has no row."""


SHORTEST = 16
"""Shorter histories are scored together with histories of this length."""


class Recommender:
    """Makes lists for histories, of users that the model was trained on and of others.

    A user whose history has no known item gets the most popular items. Their scores are their counts in training. There
    is no S_KL then, since there is no preference to calibrate to.
    """

    def __init__(
        self,
        checkpoint: str | Path,
        changes: dict[str, Any] | None = None,
        k: int = LIST_LENGTH,
        allow: Collection[str] | None = None,
        deny: Collection[str] = (),
        categories: Mapping[str, Sequence[str]] | None = None,
        titles: bool = True,
    ):
        """
        Args:
            checkpoint: a model.pth; nothing else is read.
            changes: keys in `RECOMMENDATION_KEYS`: the reranker, its lambda, and so on.
            allow: tokens of the items that lists may hold; None for all.
            deny: tokens of the items that no list may hold.
            categories: category names by item token; they replace the categories that the model was trained with. An
                item that is missing here has no category.
            titles: whether tables have a column with the items' titles, if the model was trained with a `title_field`.
        """
        check_changes(changes or {}, RECOMMENDATION_KEYS)
        # The preference is that of the whole history; `target_skl` needs S_KL.
        whole = {"metrics": ["SKL"], "preference_history": "all"}
        content, config = trained_config(checkpoint, {**(changes or {}), **whole})
        config["mask_history"] = bool(config["mask_history"])
        if "serving" not in content:
            raise ValueError(
                f"{checkpoint} was written by an earlier version, whose files hold no items and categories to make lists of: train again"
            )
        with reading(checkpoint, "a whole checkpoint"):
            self.dataset = FrozenDataset(content["serving"])
            own = self.dataset.categories
        if k >= self.dataset.item_num:
            raise ValueError(f"k must not exceed the number of items, {self.dataset.item_num - 1}, got {k}")
        config["topk"] = [k]
        self.reranking = Reranking.from_config(config, _lambda_for_target(checkpoint, content, config))
        self.config, self.k, self.device = config, k, config["device"]
        with reading(checkpoint, f"a checkpoint of a {config['model']} with its settings"):
            model = config.model_class(config, self.dataset)
        self.model = model.to(self.device)
        restore(self.model, content, checkpoint)
        self.model.eval()
        self.told: list[str] = []
        """Sentences about rules (`allow`, `deny`, `items`) that had no effect."""
        self.categories = (own if categories is None else self._categories_of(categories)).to(self.device)
        self._tokens = np.array(self.dataset.items, dtype=object)
        self._titles = None if self.dataset.names is None or not titles else np.array(self.dataset.names, dtype=object)
        self.ids_by_token = {token: number for number, token in enumerate(self.dataset.items) if number}
        self._user_ids = {token: number for number, token in enumerate(self.dataset.users)}
        self._transform = construct_transform(self.config)
        self._full_length = config["train_positions"] == "last"  # such a model may need histories padded to the full length
        self._denied = self._denied_by(allow, deny)
        self._popularity = self.dataset.popularity.masked_fill(self._denied, -torch.inf)

    def _categories_of(self, categories: Mapping[str, Sequence[str]]) -> ItemCategories:
        """The model's items with the given categories; ValueError if none of these items is known to the model."""
        items = self.dataset.items[1:]
        missing = sum(token not in categories for token in items)
        if missing == len(items):
            raise ValueError(
                f"items: none of them is known to the model, whose items are such as {', '.join(map(repr, items[:3]))}"
            )
        if missing:
            self.told.append(f"{missing} of the model's {len(items)} items have no row in --items, and so no category")
        return ItemCategories.from_lists([[], *(categories.get(token, ()) for token in items)])

    def _denied_by(self, allow: Collection[str] | None, deny: Collection[str]) -> Tensor:
        """For each item, whether no list may hold it, `[I]`; True for padding."""
        for option, tokens in (("allow", {*(allow or ())}), ("deny", {*deny})):
            if unknown := len(tokens - self.ids_by_token.keys()):
                self.told.append(f"{unknown} of the {len(tokens)} items of --{option} are unknown to the model")
        allowed = self.ids_by_token.keys() if allow is None else self.ids_by_token.keys() & allow
        denied = torch.ones(self.dataset.item_num, dtype=torch.bool)
        denied[self.ids(allowed - {*deny})] = False
        if denied.all():
            raise ValueError("allow and deny leave no item that the model knows")
        return denied

    def __call__(self, histories: pd.DataFrame) -> pd.DataFrame:
        """One row per item of each user's list: user, rank, item, title (if there are titles), score, skl; and the
        columns `SKIPPED`, `FALLBACK` and `SHORT`.
        """
        users = [str(user) for user in histories[USER]]
        known, skipped = [], []
        for value in histories[ITEMS]:
            tokens = split_items(value)
            known.append(self.ids(tokens))
            skipped.append(len(tokens) - len(known[-1]))
        left_out = (
            [[] for _ in users]
            if LEAVE_OUT not in histories
            else [self.ids(split_items(own)) for own in histories[LEAVE_OUT]]
        )
        lists = torch.zeros(len(users), self.k, dtype=torch.long)
        scores, skl = torch.zeros(lists.shape), torch.full((len(users),), torch.nan, dtype=torch.float64)
        seen = torch.tensor([bool(history) for history in known])
        if seen.any():
            some = seen.nonzero()[:, 0].tolist()
            own, items = [known[n] for n in some], [left_out[n] for n in some]
            own_scores = self.scores([users[n] for n in some], own, items)
            made = self.calibrated(own_scores, *self.preferences(own, self.reranking), self.reranking, self.k)
            lists[seen], scores[seen], skl[seen] = made
        if not seen.all():
            lists[~seen], scores[~seen] = self.popular([left_out[n] for n in (~seen).nonzero()[:, 0].tolist()], self.k)
        return self._table(users, lists, scores, skl, skipped, seen)

    @property
    def has_titles(self) -> bool:
        """Whether tables have the column `title`."""
        return self._titles is not None

    def ids(self, tokens: Iterable[str]) -> list[int]:
        """The ids of the tokens that the model knows."""
        return [self.ids_by_token[token] for token in tokens if token in self.ids_by_token]

    @torch.no_grad()
    def scores(self, users: Sequence[str], histories: Sequence[Sequence[int]], left_out: Sequence[Sequence[int]]) -> Tensor:
        """Scores `[B, I]`; -inf for items that a list must not hold. No history may be empty; users may be unknown."""
        scores = torch.empty(len(users), self.dataset.item_num, device=self.device)
        for rows in self._of_like_length(histories):
            batch = self._batch([users[n] for n in rows], [histories[n] for n in rows])
            scores[rows] = self.model.full_sort_predict(batch.to(self.device)).float().view(len(rows), -1)
        scores[:, self._denied.to(self.device)] = -torch.inf
        for items in (histories, left_out) if self.config["mask_history"] else (left_out,):
            scores[_pairs(items)] = -torch.inf
        return scores

    def preferences(self, histories: Sequence[Sequence[int]], reranking: Reranking) -> tuple[Tensor, Tensor]:
        """Two preferences `[B, C]`: for measuring S_KL, and for the reranker. Both are all zero for an empty history."""
        p = sequential_preference(histories, self.categories, self.config["alpha"])
        return p, sequential_preference(histories, self.categories, 1.0) if reranking.preference == "static" else p

    def calibrated(
        self, scores: Tensor, p: Tensor, to: Tensor, reranking: Reranking, k: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Lists of k items `[B, k]`, their scores `[B, k]`, and their S_KL `[B]`; `preferences` returns `p` and `to`."""
        beta = self.config["beta"]
        lists = reranking.lists(scores, to, self.categories, k, beta)[0]
        return lists.cpu(), scores.gather(1, lists).cpu(), miscalibration(p, lists, self.categories, beta).cpu()

    def popular(self, left_out: Sequence[Sequence[int]], k: int) -> tuple[Tensor, Tensor]:
        """The most popular items `[B, k]`, and their counts in training."""
        popularity = self._popularity.repeat(len(left_out), 1)
        popularity[_pairs(left_out)] = -torch.inf
        lists = top_items(popularity, k)
        return lists, popularity.gather(1, lists)

    def _of_like_length(self, histories: Sequence[Sequence[int]]) -> list[list[int]]:
        """Groups of rows to score together. Histories of a batch are padded to the longest, and padding costs time."""
        if self._full_length:
            return [list(range(len(histories)))]
        groups: dict[int, list[int]] = defaultdict(list)
        for row, history in enumerate(histories):
            length = min(len(history), self.config["MAX_ITEM_LIST_LENGTH"])
            groups[max(length - 1, SHORTEST - 1).bit_length()].append(row)  # up to 16 items, up to 32, up to 64, ...
        return list(groups.values())

    def _batch(self, users: Sequence[str], histories: Sequence[Sequence[int]]) -> Interaction:
        data, longest = self.dataset, self.config["MAX_ITEM_LIST_LENGTH"]
        recent = [torch.tensor(history[-longest:]) for history in histories]
        items = torch.nn.utils.rnn.pad_sequence(recent, batch_first=True)
        if self._full_length:
            items = torch.nn.functional.pad(items, (0, longest - items.shape[1]))
        batch = Interaction(
            {
                data.uid_field: torch.tensor([self._user_ids.get(user, 0) for user in users]),
                self.model.ITEM_SEQ: items,
                self.model.ITEM_SEQ_LEN: torch.tensor([len(history) for history in recent]),
            }
        )
        return self._transform(data, batch)

    def _table(
        self, users: list[str], lists: Tensor, scores: Tensor, skl: Tensor, skipped: list[int], seen: Tensor
    ) -> pd.DataFrame:
        row, place = (lists != 0).nonzero(as_tuple=True)
        first = place == 0
        names, items = pd.Series(users).to_numpy(dtype=object), lists[row, place].numpy()
        return pd.DataFrame(
            {
                "user": names[row.numpy()],
                "rank": (place + 1).numpy(),
                "item": self._tokens[items],
                **({} if self._titles is None else {TITLE: self._titles[items]}),
                "score": scores[row, place].numpy(),
                "skl": skl[row].numpy(),
                SKIPPED: (torch.tensor(skipped)[row] * first).numpy(),
                FALLBACK: (~seen[row] & first).numpy(),
                SHORT: ((lists[row, -1] == 0) & first).numpy(),
            }
        )


def _pairs(items: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """`(row, item)` of all items, as two tensors."""
    rows = torch.repeat_interleave(torch.arange(len(items)), torch.tensor([len(own) for own in items], dtype=torch.long))
    return rows, torch.tensor([item for own in items for item in own], dtype=torch.long)


def _lambda_for_target(checkpoint: str | Path, content: dict[str, Any], config: LeapRecConfig) -> float | None:
    """The smallest lambda that meets `target_skl` on validation; None if there is no target.

    Raises:
        ValueError: no lambda meets it; or the data that the model was trained on is missing (it has the validation
            items).
    """
    if config["target_skl"] is None:
        return None
    with run_log(config):
        run = Run.restored(checkpoint, content, config)
        with run.scratch_trainer() as trainer:
            try:
                return run.find_lambda(trainer)
            except TargetNotMet as missed:
                raise ValueError(f"target_skl, with {config['reranker']} on validation: {missed}") from missed
