"""Calibration-disentangled learning for RecBole's sequential recommenders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import torch
from recbole.utils import InputType
from torch import Tensor, nn

from recbole_leaprec.core.categories import ItemCategories
from recbole_leaprec.core.loss import NOT_COUNTED, bpr_loss, disentangled_loss, softmax_loss
from recbole_leaprec.core.shared_softmax import shared_softmax_loss
from recbole_leaprec.model.backbone import Backbone
from recbole_leaprec.model.fast import speed_up
from recbole_leaprec.model.negatives import SharedNegatives, shared_negatives
from recbole_leaprec.settings.keys import SOFTMAX

PREFERENCE = "preference"
"""A field that the trainer adds to each batch: the preference before each target, `[..., C]`."""

Score = Callable[[Tensor], Tensor]
"""Relevance r `[T, M]` at the T trained positions, of items `[T, M]`, or of the same items `[M]` at all positions."""


@dataclass
class InnerProducts:
    """The scores of a model that ranks by inner products: a `Score` that lets the softmax loss see both factors.

    Attributes:
        output: `[T, H]`, the model's output at each position.
        vectors: a function from items `[...]` to their vectors `[..., H]`.
    """

    output: Tensor
    vectors: Callable[[Tensor], Tensor]

    def __call__(self, items: Tensor) -> Tensor:
        if items.dim() == 1:
            return self.output @ self.vectors(items).T
        return torch.einsum("th,tmh->tm", self.output, self.vectors(items))


_EVERY = slice(None)


class CalibrationDisentangledMixin(Backbone):
    """The loss `bpr_weight * L_BPR + gamma * L_CD-BPR` (Eq. 8) for a RecBole model.

    With `loss_type: softmax`, both terms are cross-entropies among many negatives instead (see `softmax_loss`). Two mixins
    apply it to batches: `OneRowPerPrefixMixin` for any model, and the faster `AllPositionsMixin` for some models.
    """

    train_positions = "last"
    input_type = InputType.PAIRWISE  # batches have a negative

    def __init__(self, config, dataset):
        # Models use the scores of all items if they can; some of RecBole's can do nothing else.
        in_pairs = getattr(super(), "input_type", None) == InputType.PAIRWISE
        super().__init__(ConfigWith(config, loss_type="BPR" if in_pairs else "CE"), dataset)
        speed_up(cast(nn.Module, self))  # the RecBole class makes it a Module
        self.gamma, self.bpr_weight, self.beta = config["gamma"], config["bpr_weight"], config["beta"]
        self.preference_alpha = config["alpha"] if self.gamma else None
        self.categories: ItemCategories = dataset.categories.to(config["device"])
        self._shared = shared_negatives(config, dataset) if config["loss_type"] == SOFTMAX else None

    @property
    def shares_negatives(self) -> bool:
        """Whether all positions of a batch have the same negatives, as in the softmax loss."""
        return self._shared is not None

    def ranking_loss(self, score: Score, interaction: Any, trained: Tensor | slice = _EVERY) -> Tensor:
        """`bpr_weight * L + gamma * L_CD`, means over the T trained positions of the batch; `loss_type` says what L is."""
        positive = interaction[self.POS_ITEM_ID][trained]
        p = interaction[PREFERENCE][trained] if self.gamma else None
        if self._shared is not None:
            return self.softmax_loss(self._shared, score, positive, p)
        return self.pairwise_loss(score, positive, interaction[self.NEG_ITEM_ID][trained], p)

    def pairwise_loss(self, score: Score, positive: Tensor, negative: Tensor, p: Tensor | None) -> Tensor:
        """Eq. 8 with BPR: one negative per position.

        Args:
            positive, negative: `[T]` items i and j.
            p: `[T, C]`, the sequential preference p_{t-1} before each position; None if gamma is 0.
        """
        items = torch.stack([positive, negative], -1)
        r_positive, r_negative = score(items).unbind(-1)
        kl_positive = kl_negative = None
        if p is not None:
            kl_positive, kl_negative = self.categories.kl(p, items, self.beta).unbind(-1)
        return disentangled_loss(bpr_loss, r_positive, r_negative, kl_positive, kl_negative, self.bpr_weight, self.gamma)

    def softmax_loss(self, shared: SharedNegatives, score: Score, positive: Tensor, p: Tensor | None) -> Tensor:
        """Eq. 8 with cross-entropy among shared negatives. A position's own positive does not count as a negative."""
        negatives, correction = shared.draw(positive.device)
        own = shared.positives_among(positive, negatives)

        def kl(rows: slice) -> tuple[Tensor, Tensor]:
            assert p is not None
            with torch.autocast(p.device.type, enabled=False):
                of_positive = self.categories.kl(p[rows], positive[rows], self.beta)
                return of_positive, self.categories.kl_of_shared(p[rows], negatives, self.beta)

        if isinstance(score, InnerProducts):
            output, vector, vectors = score.output, score.vectors(positive), score.vectors(negatives)
            return shared_softmax_loss(
                _not_half(output), _not_half(vector), _not_half(vectors), correction, own, kl, self.bpr_weight, self.gamma
            )
        r_positive, r_negatives = _not_half(score(positive[:, None])[:, 0]), _not_half(score(negatives))
        if correction is not None:
            r_negatives = r_negatives + correction
        r_negatives[own] = NOT_COUNTED
        kl_positive, kl_negatives = kl(_EVERY) if self.gamma else (None, None)
        return disentangled_loss(
            softmax_loss, r_positive, r_negatives, kl_positive, kl_negatives, self.bpr_weight, self.gamma
        )


def _not_half(scores: Tensor) -> Tensor:
    """Scores in at least single precision: half precision is too coarse for a softmax over many items."""
    return scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores


class ConfigWith:
    """A config with some values changed, for the constructor of a model."""

    def __init__(self, config: Any, **changes: Any):
        self._config, self._changes = config, changes

    def __getitem__(self, key: str) -> Any:
        return self._changes[key] if key in self._changes else self._config[key]

    def __contains__(self, key: str) -> bool:
        return key in self._changes or key in self._config

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # an unfinished copy has no _config yet
            raise AttributeError(name)
        return getattr(self._config, name)
