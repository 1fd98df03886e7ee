"""Calibration-disentangled learning for RecBole's sequential recommenders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from recbole.utils import InputType
from torch import Tensor

from recbole_leaprec.loss import SOFTMAX, bpr_loss, cd_bpr_loss, softmax_loss
from recbole_leaprec.model.fast import speed_up
from recbole_leaprec.model.negatives import SharedNegatives

PREFERENCE = "preference"
"""Field of a batch that the trainer injects: the preference before each target, `[..., C]`."""

Score = Callable[[Tensor], Tensor]
"""Relevance r `[T, M]` at the T positions that are trained, of items `[T, M]`, or of the same items `[M]` at all of them."""


_EVERY = slice(None)


class CalibrationDisentangledMixin:
    """Puts `bpr_weight * L_BPR + gamma * L_CD-BPR` (Eq. 8) in the place of a RecBole model's loss function.

    With `loss_type: softmax`, both terms are cross-entropies among many negatives instead (see `softmax_loss`).

    Goes before the RecBole class: `class NARMCD(CalibrationDisentangledMixin, NARM)`. The model trains as RecBole trains it,
    one row a prefix, and keeps the rest of its loss, such as regularisation: what it hands to its loss function, the scores of
    all items or those of the positive and the negative item, is ranked by Eq. 8 instead. `AllPositionsMixin` is for models
    that can do better.
    """

    train_positions = "last"
    input_type = InputType.PAIRWISE  # batches bring a negative

    def __init__(self, config, dataset):
        # Models that can hand over the scores of all items do; some of RecBole's can do nothing else.
        in_pairs = getattr(super(), "input_type", None) == InputType.PAIRWISE
        super().__init__(ConfigWith(config, loss_type="BPR" if in_pairs else "CE"), dataset)
        speed_up(self)
        self.gamma, self.bpr_weight, self.beta = config["gamma"], config["bpr_weight"], config["beta"]
        self.preference_alpha = config["alpha"] if self.gamma else None
        self.categories = dataset.categories.to(config["device"])
        self._shared = shared_negatives(config, dataset) if config["loss_type"] == SOFTMAX else None
        self._batch = None
        for name in ("loss_fct", "bpr_loss"):  # RecBole's two names for it
            if hasattr(self, name):
                delattr(self, name)
                setattr(self, name, self._rank)

    def calculate_loss(self, interaction) -> Tensor:
        self._batch = interaction
        try:
            return super().calculate_loss(interaction)
        finally:
            self._batch = None

    def _rank(self, first: Tensor, second: Tensor, **_: Any) -> Tensor:
        """What RecBole's model calls with scores of all items `[B, I]` and the positives, or with r_i and r_j."""
        if self._batch is None:  # some models work out a loss when they predict, too
            return first.new_zeros(())
        in_pairs = second.is_floating_point()
        if in_pairs and self._shared is None:
            pairs = torch.stack([first.flatten(), second.flatten()], -1)
            return self.ranking_loss(lambda items: pairs, self._batch)
        scores = self.full_sort_predict(self._batch).view(len(first), -1) if in_pairs else first
        return self.ranking_loss(
            lambda items: scores[:, items] if items.dim() == 1 else scores.gather(1, items), self._batch
        )

    def ranking_loss(self, score: Score, interaction, trained: Tensor | slice = _EVERY) -> Tensor:
        """`bpr_weight * L + gamma * L_CD`, means over the T positions of the batch that are trained; L as `loss_type` says."""
        positive = interaction[self.POS_ITEM_ID][trained]
        p = interaction[PREFERENCE][trained] if self.gamma else None
        if self._shared is not None:
            return self.softmax(score, positive, p)
        return self.bpr(score, positive, interaction[self.NEG_ITEM_ID][trained], p)

    def bpr(self, score: Score, positive: Tensor, negative: Tensor, p: Tensor | None) -> Tensor:
        """Eq. 8.

        Args:
            positive, negative: `[T]` items i and j.
            p: `[T, C]` the sequential preference p_{t-1} before each position; needed if gamma is not 0.
        """
        items = torch.stack([positive, negative], -1)
        r_positive, r_negative = score(items).unbind(-1)
        loss = r_positive.new_zeros(())
        if self.bpr_weight:
            loss = loss + self.bpr_weight * bpr_loss(r_positive, r_negative)
        if self.gamma:
            kl = self.categories.kl(p, items, self.beta)
            loss = loss + self.gamma * cd_bpr_loss(r_positive, r_negative, kl[:, 0], kl[:, 1])
        return loss

    def softmax(self, score: Score, positive: Tensor, p: Tensor | None) -> Tensor:
        """Eq. 8 with cross-entropy among shared negatives in the place of BPR; a position's own positive is none of them."""
        negatives, correction = self._shared.draw(positive.device)
        r_positive, r_negatives = score(positive[:, None])[:, 0], score(negatives)
        if correction is not None:
            r_negatives = r_negatives + correction
        r_negatives[self._shared.positives_among(positive, negatives)] = -torch.inf
        if not self.gamma:
            return softmax_loss(r_positive, r_negatives, weight=self.bpr_weight)
        kl_positive = self.categories.kl(p, positive, self.beta)
        with torch.autocast(p.device.type, enabled=False):
            kl_negatives = self.categories.kl_of_shared(p, negatives, self.beta)
        return softmax_loss(r_positive, r_negatives, kl_positive, kl_negatives, self.bpr_weight, self.gamma)


def shared_negatives(config, dataset) -> SharedNegatives:
    """As `num_negatives` and RecBole's `train_neg_sample_args` say; `dataset` is the training split."""
    drawn = config["train_neg_sample_args"]
    weights = None
    if drawn["distribution"] == "popularity":
        count = torch.bincount(dataset.inter_feat[dataset.iid_field], minlength=dataset.item_num)
        weights = count.clamp_min(1).double() ** drawn["alpha"]  # an item that training lacks can be drawn, too
    return SharedNegatives(dataset.item_num, config["num_negatives"], weights)


class ConfigWith:
    """A config with some values changed, for the constructor of a model."""

    def __init__(self, config, **changes: Any):
        self._config, self._changes = config, changes

    def __getitem__(self, key: str) -> Any:
        return self._changes[key] if key in self._changes else self._config[key]

    def __contains__(self, key: str) -> bool:
        return key in self._changes or key in self._config

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # a copy in the making has no _config yet
            raise AttributeError(name)
        return getattr(self._config, name)
