"""The dataset: RecBole's loading and filtering, then each user's sequence, kept once."""

from __future__ import annotations

import copy
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import yaml
from recbole.config import Config
from recbole.data.interaction import Interaction
from recbole.utils import FeatureType
from torch import Tensor

from recbole_leaprec.atomic_files import TOKEN, columns_of, fields_of, how_to_mend, read_texts
from recbole_leaprec.common.did_you_mean import did_you_mean
from recbole_leaprec.compat import RECBOLE_PROPERTIES, CompatDataset
from recbole_leaprec.core.categories import ItemCategories
from recbole_leaprec.data.fingerprint import fingerprint
from recbole_leaprec.data.prepared import cache_of, put_state, state_of
from recbole_leaprec.data.sequences import Sequences

SHORTEST = 3  # one item to start from, one for validation, one for test

HISTORY_END = "history_end"
"""Field of every batch: the flat position of the last item before the target. The preference is taken after this item."""


class SequenceDataset(CompatDataset):
    """A RecBole dataset that keeps each user's sequence once, as flat arrays and offsets.

    RecBole's own dataset stores one padded row per prefix. Here a split is a set of *targets* (flat positions). The row
    with the items before a target is made only when it is read, so RecBole's data loaders work on it unchanged.

    Attributes:
        sequences: all users' items in order of time; ties keep the order of the file.
        categories: the items' categories.
        targets: `[len(self)]`, flat positions; set on the splits that `build` returns.
        short_users, short_interactions: how many were dropped because they were too short for leave-one-out.
    """

    def _from_scratch(self):
        """Take the prepared dataset of an earlier start if it matches. Otherwise load with RecBole, and keep the result."""
        self._get_preset()
        if not Path(self.dataset_path).exists():
            self._download()  # before the files are read
        cache = cache_of(self) if self.config["data_cache"] and not self.config["additional_feat_suffix"] else None
        kept = cache.load() if cache else None
        if kept:
            values, arrays = kept
            self._get_field_from_config()
            put_state(self, values, arrays)
            for warning in values["warnings"]:
                self.logger.warning(warning)
        else:
            with _warnings_of(self.logger) as warnings:
                super()._from_scratch()
                self._flatten()
            if cache:
                values, arrays = state_of(self)
                cache.save({**values, "warnings": warnings}, arrays)
        self._aug_presets()  # names of the list fields: some RecBole models read them from the dataset

    def _get_download_url(self, url_file, allow_none=False):
        url = super()._get_download_url(url_file, allow_none=True)
        if url is None and not allow_none:
            folder = Path(self.dataset_path).parent
            local = [entry.name for entry in folder.iterdir() if entry.is_dir()] if folder.is_dir() else []
            known = [*local, *yaml.safe_load((RECBOLE_PROPERTIES / "dataset" / f"{url_file}.yaml").read_text())]
            raise ValueError(
                f"unknown dataset {self.dataset_name!r}{did_you_mean(self.dataset_name, known)} There is no folder "
                f"{self.dataset_path} (data_path), and RecBole has no dataset of that name to download"
            )
        return url

    def _load_data(self, token, dataset_path):
        inter, items = Path(dataset_path) / f"{token}.inter", Path(dataset_path) / f"{token}.item"
        if not inter.is_file():
            there = sorted(entry.name for entry in inter.parent.iterdir())
            raise ValueError(
                f"{inter} does not exist, the file of interactions; {inter.parent} holds {', '.join(there[:5]) or 'nothing'}"
                f"{', ...' if len(there) > 5 else ''}. `leaprec data csv --help` says how to make it out of a table"
            )
        super()._load_data(token, dataset_path)
        for key in ("USER_ID_FIELD", "ITEM_ID_FIELD"):
            if self.inter_feat is None or self.config[key] not in self.inter_feat:  # None: of its fields, none is loaded
                raise ValueError(f"{inter} has no field {self.config[key]!r} ({key}); {_told_fields(inter, self.config)}")
        self._check_ids(inter, items)
        if self.time_field not in self.inter_feat:
            raise ValueError(
                f"{inter} has no timestamp field {self.time_field!r} (TIME_FIELD), and sequences need an order; "
                f"{_told_fields(inter, self.config)}"
            )
        if self.field2type[self.time_field] != FeatureType.FLOAT:
            raise ValueError(
                f"{inter}: {self.time_field!r} has type {self.field2type[self.time_field].value}, which has no order; write "
                f"{self.time_field}:float in its header, with numbers such as epoch seconds"
            )
        self._check_categories(items)
        untimed = int(self.inter_feat[self.time_field].isna().sum())
        if untimed:
            raise ValueError(f"{inter}: {untimed} rows have no {self.time_field!r}, and sequences need an order")
        endless = np.isinf(self.inter_feat[self.time_field].to_numpy())
        if endless.any():
            raise ValueError(
                f"{inter}: {int(endless.sum())} values of {self.time_field!r} are infinite, the first in line "
                f"{int(endless.argmax()) + 2}; write epoch seconds"
            )

    def _check_ids(self, *paths: Path) -> None:
        """Raise ValueError if user or item ids are not tokens. Each file has its own types."""
        for path in paths:
            for column in columns_of(path, self.config) if path.is_file() else ():
                field, _, kind = column.partition(":")
                if field in (self.uid_field, self.iid_field) and kind != TOKEN:
                    raise ValueError(f"{path}: {field!r} has type {kind or 'none'}; write {field}:token in its header")

    def _check_categories(self, path: Path) -> None:
        field = self.config["category_field"]
        if not path.is_file():
            raise ValueError(f"{path} does not exist: calibration needs the items' categories (category_field)")
        if field is None:
            raise ValueError(
                f"category_field is not set: which field of {path} holds the categories? {_told_fields(path, self.config)}"
            )
        if self.item_feat is None or field not in self.item_feat:
            raise ValueError(
                f"{path} has no field {field!r} (category_field){did_you_mean(field, fields_of(path, self.config))} "
                f"{_told_fields(path, self.config)}"
            )
        title, header = self.config["title_field"], fields_of(path, self.config)
        if title is not None and title not in header:
            raise ValueError(
                f"{path} has no field {title!r} (title_field){did_you_mean(title, header)} {_told_fields(path, self.config)}"
            )
        self._check_texts(path, field)
        if self.field2type[field] not in (FeatureType.TOKEN, FeatureType.TOKEN_SEQ):
            raise ValueError(
                f"{path}: category_field {field!r} has type {self.field2type[field].value}; it must be token or token_seq"
            )

    def _check_texts(self, path: Path, field: str) -> None:
        """Raise ValueError for categories that are not in the form of an atomic file.

        That is: in quotes, as printed lists, with | between them, or cut at spaces.
        """
        mistakes = _MISTAKES if self.field2type[field] == FeatureType.TOKEN_SEQ else _MISTAKES[:-1]
        if path.with_suffix(".yaml").is_file():  # `leaprec data csv` wrote them
            mistakes = _MISTAKES[:1]
        rows = enumerate(self.item_feat[field][:1000], 2)
        texts = {line: " ".join(map(str, row)) if isinstance(row, np.ndarray) else str(row) for line, row in rows}
        texts = {line: text for line, text in texts.items() if text not in ("", "nan")}
        for found, most, told in mistakes:
            lines = [line for line, text in texts.items() if found(text)]
            if len(lines) > most * len(texts):
                raise ValueError(
                    f"{path}, line {lines[0]}: categories in {field!r} {told.format(texts[lines[0]][:80])}. "
                    f"{how_to_mend(path, self.config)}"
                )

    def _data_filtering(self):
        self._check_items_described()
        super()._data_filtering()
        self.short_users, before = 0, len(self.inter_feat)
        while short := self._drop_short_users():
            self.short_users += short
            self._filter_by_inter_num()
        self.short_interactions = before - len(self.inter_feat)
        if self.short_users:
            self.logger.warning(
                f"dropped {self.short_users} users with fewer than {SHORTEST} interactions: too short for leave-one-out"
            )
        self._reset_index()

    def _reset_index(self):
        for feature in self.feat_name_list:
            if getattr(self, feature).empty:
                raise ValueError(
                    f"no row of {self.dataset_name}.{feature.removesuffix('_feat')} is left: rows without a user or an item go, and those that "
                    "val_interval, user_inter_num_interval or item_inter_num_interval leave out"
                )
        super()._reset_index()

    def _normalize(self):
        with _naming("normalize_field"):
            super()._normalize()

    def _discretization(self):
        with _naming("discretization"):
            super()._discretization()

    def _check_items_described(self) -> None:
        """Raise ValueError if the .item file lacks items: RecBole would silently drop their interactions."""
        known = set(self.item_feat[self.iid_field])
        missing = [item for item in self.inter_feat[self.iid_field].dropna().unique() if item not in known]
        if missing:
            raise ValueError(
                f"{self.dataset_name}.item lacks {len(missing)} items of {self.dataset_name}.inter, the first is "
                f"{missing[0]!r}: every item needs a row there, an empty category is allowed"
            )

    def _drop_short_users(self) -> int:
        counts = self.inter_feat[self.uid_field].value_counts()
        counts = counts[counts > 0]  # users whom the filters removed are still listed
        short = counts.index[counts < SHORTEST]
        if len(short) == len(counts):
            raise ValueError(
                f"{self.dataset_name}: no user has {SHORTEST} interactions left after filtering (val_interval: "
                f"{self.config['val_interval']}), the fewest that leave-one-out needs"
            )
        self.inter_feat = self.inter_feat[~self.inter_feat[self.uid_field].isin(short)]
        if self.user_feat is not None:
            self.user_feat = self.user_feat[~self.user_feat[self.uid_field].isin(short)]
        return len(short)

    def _flatten(self) -> None:
        """Sort once, by time in the double precision in which the file was read, and keep only users and items."""
        user, item, time = (self.inter_feat[field].to_numpy() for field in (self.uid_field, self.iid_field, self.time_field))
        order = time.argsort(kind="stable")
        order = order[user[order].argsort(kind="stable")]
        self.inter_feat = pd.DataFrame({self.uid_field: user[order], self.iid_field: item[order]}, copy=False)
        self._change_feat_format()
        counts = torch.bincount(self.inter_feat[self.uid_field], minlength=self.user_num)
        offsets = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        self.sequences = Sequences(self.inter_feat[self.iid_field], offsets)
        named_again = sum(len(row) != len(own) for row, own in zip(self._category_rows(), self.item_members, strict=True))
        if named_again:
            self.logger.warning(f"{named_again} items name a category twice or more; it counts once")
        if self.categories.uncategorised:
            self.logger.warning(
                f"{self.categories.uncategorised} of {self.item_num - 1} items have no category; "
                f"they spread over all categories alike"
            )

    def told_categories(self) -> str:
        """A sentence on the categories that were read, so that wrong ones are seen at once."""
        names, counts = self.categories.names, Counter(c for own in self.item_members for c in own)
        largest = ", ".join(f"{names[c]} ({count} items)" for c, count in counts.most_common(3))
        once = [names[c] for c, count in counts.items() if count == 1]
        few = f"; {len(once)} occur once: {', '.join(once[:3])}{', ...' if len(once) > 3 else ''}" if once else ""
        return f"{len(names)} categories in {self.config['category_field']!r}, the largest: {largest}{few}"

    @cached_property
    def categories(self) -> ItemCategories:
        field = self.config["category_field"]
        names = self.field2id_token[field][1:].tolist()
        if not names:
            raise ValueError(
                f"category_field {field!r}: no item of {self.dataset_name} has any category, so there is nothing to calibrate"
            )
        return ItemCategories(names, self.item_members)

    @cached_property
    def item_members(self) -> list[list[int]]:
        """The categories of each item in the .item file, by item id, without repeats. An item may have none."""
        return [list(dict.fromkeys(row)) for row in self._category_rows()]

    def _category_rows(self) -> list[list[int]]:
        rows = self.item_feat[self.config["category_field"]].tolist()
        return [[c - 1 for c in (row if isinstance(row, list) else [row]) if c > 0] for row in rows]

    @cached_property
    def fingerprint(self) -> dict[str, Any]:
        """The fingerprint that ties a trained model to this dataset."""
        return fingerprint(self.field2id_token[self.iid_field], self.categories, self.sequences)

    def build(self):
        """Split by leave-one-out: a user's last item is for test, the one before it for validation."""
        begin, end = self.sequences.offsets[:-1], self.sequences.offsets[1:]
        position, user = torch.arange(len(self)), self.inter_feat[self.uid_field]
        in_training = position < self.sequences.training_end[user]
        last = end[end > begin] - 1  # the last item of every user, without the padding
        # Users with histories of similar length share a batch, so short histories get little padding.
        last = last[(last - begin[user[last]]).argsort(stable=True)]
        train = self._split(targets=position[in_training & (position > begin[user])], counted=position[in_training])
        return [train, self._split(last - 1, counted=last - 1), self._split(last, counted=last)]

    def _split(self, targets: Tensor, counted: Tensor) -> SequenceDataset:
        """A dataset of these targets. `counted` are the interactions that RecBole's counters count."""
        split = copy.copy(self)
        split.targets = targets
        split.inter_feat = Interaction({field: self.inter_feat[field][counted] for field in self.inter_feat})
        return split

    def __len__(self):
        return len(self.targets) if hasattr(self, "targets") else super().__len__()

    def __getitem__(self, index, join=True):
        """Rows in RecBole's form: the target, and at most MAX_ITEM_LIST_LENGTH items before it.

        A model that trains on all positions takes sequences of any length, so its rows are only as long as the longest.
        """
        target = self.targets[torch.as_tensor(index)]
        items, count = self.sequences.before(target, self.max_item_list_len)
        if self.config["train_positions"] == "all":
            items = items[:, : int(count.max())]
        return Interaction(
            {
                self.uid_field: self.sequences.user_of(target),
                self.iid_field: self.sequences.items[target],
                self.iid_field + self.config["LIST_SUFFIX"]: items,
                self.item_list_length_field: count,
                HISTORY_END: target - 1,
            }
        )

    def item_names(self) -> list[str]:
        """The name of each item, by id: its `title_field` in the .item file, or its token if it has no title."""
        return self._item_names

    @cached_property
    def _item_names(self) -> list[str]:
        tokens = self.field2id_token[self.iid_field].tolist()
        field = self.config["title_field"]
        if field is None:
            return tokens
        path = Path(self.dataset_path) / f"{self.dataset_name}.item"
        rows = read_texts(path, self.config, {self.iid_field, field}).drop_duplicates(self.iid_field).dropna()
        names = dict(zip(rows[self.iid_field], rows[field], strict=True))
        return [names.get(token, token) for token in tokens]


_MISTAKES: tuple[tuple[Callable[[str], bool], float, str], ...] = (
    (
        lambda text: len(text) > 1 and text[0] == text[-1] == '"',
        0.5,
        "stand in quotes, as {}, which would become part of their names",
    ),
    (
        lambda text: text[0] + text[-1] == "[]",
        0.5,
        "are printed as lists, as {}, whose signs would become part of their names",
    ),
    (lambda text: "|" in text, 0.1, "have | between them, as {}, which would be one name"),
    (lambda text: text[0] + text[-1] == "()" and " " in text, 0.0, "are a name with spaces, {}, which would become several"),
)
"""`(test, share, message)`: the text of categories is wrong if more than this share of the texts passes the test.

The last one is only for token_seq.
"""


@contextmanager
def _warnings_of(logger: logging.Logger) -> Iterator[list[str]]:
    """Collect the warnings that a logger gets inside the `with` block."""
    told: list[str] = []
    listener = logging.Handler(logging.WARNING)
    listener.emit = lambda record: told.append(record.getMessage())  # type: ignore[method-assign]
    logger.addHandler(listener)
    try:
        yield told
    finally:
        logger.removeHandler(listener)


@contextmanager
def _naming(about: str) -> Iterator[None]:
    """ValueErrors of RecBole begin with the keys that they are about."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{about}: {error}") from error


def _told_fields(path: Path, config: Config) -> str:
    return f"its fields are {', '.join(fields_of(path, config))}"
