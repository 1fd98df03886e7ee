"""GRU4Rec with the calibration-disentangled loss."""

from __future__ import annotations

from recbole.model.sequential_recommender import GRU4Rec

from recbole_leaprec.model.all_positions import AllPositionsMixin


class GRU4RecCD(AllPositionsMixin, GRU4Rec):
    """RecBole's GRU4Rec trained on `L_BPR + gamma L_CD-BPR`, every position of a sequence in one pass."""
