"""The part of a dataset that is saved in model.pth, as tensors and plain values.

A model needs it to be built again and to make lists.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from recbole.data.interaction import Interaction
from recbole.utils import FeatureType
from torch import Tensor

from recbole_leaprec.core.categories import ItemCategories
from recbole_leaprec.data.dataset import SequenceDataset
from recbole_leaprec.data.sequences import Sequences

_USERS = ("n_users", "n_user")
"""The names that RecBole's models with user embeddings give the number of users."""


def freeze(dataset: SequenceDataset, model: Any) -> dict[str, Any]:
    """The content of a `FrozenDataset`, for a model that was trained on the dataset.

    User tokens are kept only if the model embeds users, item features only if it reads them.
    """
    sequences, members = dataset.sequences, dataset.item_members
    position = torch.arange(len(sequences.items))
    trained = sequences.items[position < sequences.training_end[sequences.user_of(position)]]
    features = dataset.config["selected_features"] or []
    return {
        "fields": {
            "user": dataset.uid_field,
            "item": dataset.iid_field,
            "length": dataset.item_list_length_field,
        },
        "items": dataset.field2id_token[dataset.iid_field].tolist(),
        "names": dataset.item_names() if dataset.config["title_field"] else None,
        "users": dataset.field2id_token[dataset.uid_field].tolist() if any(hasattr(model, name) for name in _USERS) else None,
        "user_num": int(dataset.user_num),
        "popularity": torch.bincount(trained, minlength=dataset.item_num),
        "category_names": dataset.categories.names,
        "category_counts": torch.tensor([len(own) for own in members]),
        "category_members": torch.tensor([c for own in members for c in own], dtype=torch.long),
        "types": {str(field): kind.value for field, kind in dataset.field2type.items()},
        "lengths": {str(field): int(length) for field, length in dataset.field2seqlen.items()},
        "sizes": {str(field): len(tokens) for field, tokens in dataset.field2id_token.items()},
        "features": {
            field: values for field, values in dataset.get_item_feature().interaction.items() if features and field in (*features, dataset.iid_field)
        },
    }  # fmt: skip


class FrozenDataset:
    """A dataset without its interactions, from which a trained model is built again.

    Attributes:
        items, names, users: item tokens, item titles and user tokens by id. `names` is None without a `title_field`;
            `users` is empty if the model embeds none.
        popularity: `[I]`, how often each item occurs in training.
    """

    def __init__(self, content: dict[str, Any]):
        """`content` is the result of `freeze`. ValueError if its parts do not fit each other."""
        _check_fit(content)
        self._content = content
        self.items: list[str] = content["items"]
        self.names: list[str] | None = content["names"]
        self.users: list[str] = content["users"] or []
        self.popularity: Tensor = content["popularity"].float()
        self.uid_field, self.iid_field = content["fields"]["user"], content["fields"]["item"]
        self.item_list_length_field = content["fields"]["length"]
        self.item_num, self.user_num = len(self.items), content["user_num"]
        self.field2type = {field: FeatureType(kind) for field, kind in content["types"].items()}
        self.field2seqlen = content["lengths"]
        # An empty training set, because some models read it when they are built.
        nothing = torch.zeros(0, dtype=torch.long)
        self.sequences = Sequences(nothing, torch.zeros(self.user_num + 1, dtype=torch.long))
        self.targets, self.inter_feat = nothing, {self.iid_field: nothing, self.uid_field: nothing}

    @cached_property
    def item_members(self) -> list[list[int]]:
        """The categories of each item, by item id. An item may have none."""
        parts = self._content["category_members"].split(self._content["category_counts"].tolist())
        return [part.tolist() for part in parts]

    @cached_property
    def categories(self) -> ItemCategories:
        return ItemCategories(self._content["category_names"], self.item_members)

    def num(self, field: str) -> int:
        """How many values a field has, like `num` of RecBole's datasets."""
        return self._content["sizes"][field]

    def get_item_feature(self) -> Interaction:
        return Interaction(self._content["features"])


def _check_fit(content: dict[str, Any]) -> None:
    """Raise ValueError unless every item has its token, title, category count and popularity, and every category a name."""
    items, members = content["items"], content["category_members"]
    for part in ("items", "names", "users", "category_names"):
        if not all(isinstance(text, str) for text in content[part] or []):
            raise ValueError(f"its {part} are not texts")
    for part in ("names", "category_counts", "popularity"):
        if content[part] is not None and len(content[part]) != len(items):
            raise ValueError(f"it has {len(items)} items and {len(content[part])} of their {part.replace('_', ' ')}")
    if len(members) and not 0 <= int(members.min()) <= int(members.max()) < len(content["category_names"]):
        raise ValueError("items have categories without a name")
    if not bool(torch.isfinite(content["popularity"].float()).all()):
        raise ValueError("items have no popularity")
