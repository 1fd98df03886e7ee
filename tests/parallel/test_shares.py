"""A worker's share of every batch."""

import pytest
import torch
from recbole.data.interaction import Interaction

from recbole_leaprec.parallel.shares import WEIGHT, BatchShares, cut_share


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
def test_shares_are_the_batch_and_their_weights_those_of_its_targets(prepare, workers):
    _, _, (train, _, _) = prepare(train_batch_size=7)
    seen = 0
    for batch in train:
        shares = [cut_share(batch, "item_id", rank, workers) for rank in range(workers)]
        some = [share for share in shares if share[WEIGHT][0] > 0]
        rows = sorted(
            row
            for share in some
            for row in zip(share["user_id"].tolist(), map(tuple, share["item_id"].tolist()), strict=True)
        )
        assert rows == sorted(zip(batch["user_id"].tolist(), map(tuple, batch["item_id"].tolist()), strict=True))
        targets = int((batch["item_id"] != 0).sum())
        for share in some:
            assert share[WEIGHT].tolist() == pytest.approx([int((share["item_id"] != 0).sum()) / targets] * len(share))
        assert sum(float(share[WEIGHT][0]) for share in shares) == pytest.approx(1)
        seen += 1
    assert seen == len(train)


def test_a_worker_for_whom_no_row_is_left_has_one_that_does_not_count():
    batch = Interaction({"item": torch.tensor([3, 4])})
    share = cut_share(batch, "item", rank=2, workers=3)
    assert share["item"].tolist() == [3]
    assert share[WEIGHT].tolist() == [0]


def test_workers_draw_the_same_batches(prepare):
    loaders = [prepare()[2][0] for _ in range(2)]
    for loader in loaders:
        loader.generator.manual_seed(3)
    shares = [list(BatchShares(loader, "item_id", rank, 2)) for rank, loader in enumerate(loaders)]
    assert len(shares[0]) == len(shares[1]) == len(loaders[0])
    users = torch.cat([share["user_id"] for own in shares for share in own])
    assert sorted(users.tolist()) == sorted(loaders[0].dataset.sequences.user_of(loaders[0].windows.start).tolist())
