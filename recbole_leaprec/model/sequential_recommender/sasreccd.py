"""SASRec with the calibration-disentangled loss, the paper's backbone."""

from __future__ import annotations

from recbole.model.sequential_recommender import SASRec
from torch import Tensor

from recbole_leaprec.model.all_positions import AllPositionsMixin


class SASRecCD(AllPositionsMixin, SASRec):
    """RecBole's SASRec trained on `L_BPR + gamma L_CD-BPR`, every position of a sequence in one pass."""

    def get_attention_mask(self, item_seq: Tensor, bidirectional: bool = False) -> None:
        """None, which hides later items. Padding is at the end, so nothing else must be hidden."""
