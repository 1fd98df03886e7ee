"""Training and evaluation batches."""

import itertools

import pytest
import torch

from recbole_leaprec.data import HISTORY_END, dataloader
from tests.conftest import write_dataset


def training_targets(dataset):
    """Flat position of every item that has one before it and is not a user's last two."""
    offsets = dataset.sequences.offsets.tolist()
    return [n for begin, end in itertools.pairwise(offsets) for n in range(begin + 1, end - 2)]


@pytest.mark.parametrize("length", [4, 8, 50])
def test_every_training_position_is_a_target_once_an_epoch(prepare, length):
    _, dataset, (train, _, _) = prepare(MAX_ITEM_LIST_LENGTH=length)
    for _ in range(2):
        seen = [n + 1 for batch in train for n in batch[HISTORY_END][batch["item_id"] != 0].tolist()]
        assert sorted(seen) == training_targets(dataset)


def test_a_batch_size_above_the_data_makes_one_batch(prepare):
    _, dataset, (train, _, _) = prepare(train_batch_size=2**61)
    (batch,) = train
    assert (batch["item_id"] != 0).sum() == len(training_targets(dataset))


def test_a_batch_holds_inputs_targets_and_negatives_that_belong_together(prepare):
    _, dataset, (train, _, _) = prepare()
    items, offsets = dataset.sequences.items, dataset.sequences.offsets
    for batch in train:
        assert batch["item_id_list"].shape[1] == int(batch["item_length"].max()) <= 8
        for row, user in enumerate(batch["user_id"].tolist()):
            own = set(items[offsets[user] : offsets[user + 1] - 2].tolist())
            length = int(batch["item_length"][row])
            assert (batch["item_id_list"][row, length:] == 0).all()
            assert (batch["item_id"][row, length:] == 0).all()
            for place in range(length):
                end = int(batch[HISTORY_END][row, place])
                assert offsets[user] <= end < offsets[user + 1] - 3
                assert batch["item_id_list"][row, place] == items[end]
                assert batch["item_id"][row, place] in (0, int(items[end + 1]))
                assert int(batch["neg_item_id"][row, place]) not in own
                assert 1 <= int(batch["neg_item_id"][row, place]) < dataset.item_num


def test_negatives_and_order_are_fresh_each_epoch_and_the_same_for_one_seed(prepare):
    def epochs():
        train = prepare()[2][0]
        return [[batch["neg_item_id"].flatten().tolist() for batch in train] for _ in range(2)]

    first, second = epochs()
    assert first != second
    assert epochs() == [first, second]


def test_evaluation_hands_over_the_whole_history_to_mask(prepare):
    _, dataset, (_, valid, test) = prepare(MAX_ITEM_LIST_LENGTH=4)
    offsets, items = dataset.sequences.offsets, dataset.sequences.items
    for loader, held_out in ((valid, 2), (test, 1)):
        users = 0
        for interaction, (rows, masked), _, target in loader:
            for row, user in enumerate(interaction["user_id"].tolist()):
                begin, end = int(offsets[user]), int(offsets[user + 1])
                assert masked[rows == row].tolist() == items[begin : end - held_out].tolist()
                assert target[row] == items[end - held_out]
                users += 1
        assert users == dataset.user_num - 1


def test_nothing_is_masked_without_mask_history(prepare):
    _, _, (_, _, test) = prepare(mask_history=False)
    assert all(history is None for _, history, _, _ in test)


def test_training_items_alone_can_be_masked(prepare):
    _, dataset, (_, valid, test) = prepare(mask_history="training")
    offsets, items = dataset.sequences.offsets, dataset.sequences.items
    for loader in (valid, test):
        for interaction, (rows, masked), _, _ in loader:
            for row, user in enumerate(interaction["user_id"].tolist()):
                begin, end = int(offsets[user]), int(offsets[user + 1])
                assert masked[rows == row].tolist() == items[begin : end - 2].tolist()


def test_a_user_with_every_item_has_no_negative(tmp_path, make_config):
    from recbole_leaprec.data import create_dataset, data_preparation

    inter = [("u", item, t) for t, item in enumerate(["a", "b", "c", "d", "a", "b"])]
    folder = write_dataset(tmp_path / "full", inter, dict.fromkeys("abcd", "Drama"))
    config = make_config(data_path=str(folder), topk=[2], valid_metric="NDCG@2")
    with pytest.raises(ValueError, match="1 users have interacted with every item"):
        data_preparation(config, create_dataset(config))


def test_one_row_a_prefix_has_the_same_targets(prepare):
    _, dataset, (train, _, _) = prepare(train_positions="last")
    seen = [n + 1 for batch in train for n in batch[HISTORY_END].tolist()]
    assert sorted(seen) == training_targets(dataset)
    batch = next(iter(train))
    assert batch["item_id_list"].shape == (16, 8)
    assert (batch["neg_item_id"] != batch["item_id"]).all()
    assert torch.is_tensor(batch["item_length"])


@pytest.mark.parametrize(("bound", "limit"), [("POSITIONS", 6 * 8 + 1), ("SCORES", None), ("POSITIONS", 1)])
def test_long_histories_and_large_catalogues_make_smaller_batches_of_the_same_users(prepare, monkeypatch, bound, limit):
    _, dataset, (_, _, whole) = prepare(MAX_ITEM_LIST_LENGTH=8)
    monkeypatch.setattr(dataloader, bound, limit or 6 * dataset.item_num)
    _, _, (_, _, parts) = prepare(MAX_ITEM_LIST_LENGTH=8)
    users = [[interaction["user_id"].tolist() for interaction, *_ in loader] for loader in (whole, parts)]
    assert list(itertools.chain(*users[0])) == list(itertools.chain(*users[1]))
    assert max(map(len, users[1])) == (1 if limit == 1 else 6) < max(map(len, users[0]))
