"""A prepared dataset that is kept: the same as one that is loaded, and never used when it does not fit any more."""

import logging
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import torch

from recbole_leaprec.data import SequenceDataset, create_dataset, prepared
from recbole_leaprec.data.cache import FOLDER, KEPT, Cache
from recbole_leaprec.data.prepared import SETTINGS


@pytest.fixture
def loads(monkeypatch):
    """How often files have been read, as a list that grows."""
    read = []
    original = SequenceDataset._load_data
    monkeypatch.setattr(SequenceDataset, "_load_data", lambda self, *names: (read.append(names), original(self, *names))[1])
    return read


@pytest.fixture
def rich(toy):
    """The toy data with a file of users, numbers, and texts that RecBole turns into sequences."""
    (toy / "toy" / "toy.user").write_text(
        "user_id:token\tage:float\tjob:token\n" + "".join(f"u{n}\t{n}\tj{n % 3}\n" for n in range(30))
    )
    return toy


EVERYTHING = {"load_col": None, "rm_dup_inter": "first"}


def plain(dataset):
    """All that a dataset has, in a form that can be compared."""
    assert dataset.categories  # which the first start has worked out already
    features = {
        name: {field: values.tolist() for field, values in getattr(dataset, name).interaction.items()}
        for name in ("inter_feat", "item_feat", "user_feat")
        if getattr(dataset, name) is not None
    }
    told = {
        name: value
        for name, value in vars(dataset).items()
        if (name.startswith("field2") and name not in ("field2id_token", "field2token_id"))
        or isinstance(value, str | int | list)
    }
    tokens = {field: values.tolist() for field, values in dataset.field2id_token.items()}
    ids = {field: dict(values) for field, values in dataset.field2token_id.items()}
    splits = [(split.targets.tolist(), split.inter_feat["item_id"].tolist()) for split in dataset.build()]
    return (
        features,
        told,
        tokens,
        ids,
        dataset.sequences.items.tolist(),
        dataset.sequences.offsets.tolist(),
        dataset.fingerprint,
        splits,
    )


def test_a_second_start_reads_no_file_and_has_the_same(rich, make_config, loads, caplog):
    settings = [
        EVERYTHING,
        {},
        {"val_interval": {"timestamp": "[1000000005,inf)"}},
        {"category_field": "genre", "title_field": "genre"},
    ]
    with caplog.at_level(logging.WARNING):
        first = [plain(create_dataset(make_config(**one))) for one in settings]
        told = [record.getMessage() for record in caplog.records]
        assert len(loads) == 4
        caplog.clear()
        again = [plain(create_dataset(make_config(**one))) for one in settings]
    assert len(loads) == 4
    assert first == again
    assert [record.getMessage() for record in caplog.records] == told != []
    assert [plain(create_dataset(make_config(**one, data_cache=False))) for one in settings] == first
    assert len(loads) == 8


def test_a_file_that_has_changed_is_read_even_if_size_and_time_have_not(toy, make_config, loads):
    create_dataset(make_config())
    path = toy / "toy" / "toy.inter"
    before, text = path.stat(), path.read_text()
    path.write_text(text.replace("u1\t", "u0\t"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    changed = create_dataset(make_config())
    assert len(loads) == 2
    assert "u1" not in changed.field2id_token["user_id"]
    assert len(list((toy / "toy" / FOLDER).iterdir())) == 1  # what was made of the old file is gone


def test_a_user_file_that_comes_is_read(rich, make_config, loads):
    user = rich / "toy" / "toy.user"
    content = user.read_text()
    user.unlink()
    assert create_dataset(make_config(**EVERYTHING)).user_feat is None
    user.write_text(content)
    assert "job" in create_dataset(make_config(**EVERYTHING)).user_feat
    assert len(loads) == 2


@pytest.mark.parametrize("name", ["numpy", "recbole"])
def test_another_version_makes_it_anew(toy, make_config, loads, monkeypatch, name):
    create_dataset(make_config())
    original = prepared.version
    monkeypatch.setattr(prepared, "version", lambda package: "0" if package == name else original(package))
    monkeypatch.setattr(prepared.recbole, "__version__", "0")
    create_dataset(make_config())
    assert len(loads) == 2


def damaged(file):
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize(
    "damage", [damaged, lambda file: file.write_bytes(file.read_bytes()[:-8]), lambda file: file.unlink()]
)
@pytest.mark.parametrize("name", ["0.npy", "content.json"])
def test_what_is_damaged_is_made_anew(toy, make_config, loads, damage, name):
    expected = plain(create_dataset(make_config()))
    (folder,) = (toy / "toy" / FOLDER).iterdir()
    damage(folder / name)
    for _ in range(2):
        assert plain(create_dataset(make_config())) == expected
    assert len(loads) == 2


def test_two_processes_may_keep_the_same_at_once(toy, make_config, monkeypatch):
    both, original = threading.Barrier(2), Cache.save

    def save(self, *content):
        both.wait()
        original(self, *content)

    monkeypatch.setattr(Cache, "save", save)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(create_dataset, [make_config(), make_config()])
    monkeypatch.undo()
    assert len(list((toy / "toy" / FOLDER).iterdir())) == 1
    assert plain(first) == plain(second) == plain(create_dataset(make_config()))


def test_a_folder_that_cannot_be_written_is_told(toy, make_config, loads, caplog):
    (toy / "toy").chmod(0o555)
    with caplog.at_level(logging.INFO):
        for _ in range(2):
            create_dataset(make_config())
    (toy / "toy").chmod(0o755)
    assert len(loads) == 2
    assert not (toy / "toy" / FOLDER).exists()
    assert "the prepared data is not kept for the next start" in caplog.text


def test_a_file_that_changes_while_it_is_read_is_not_kept(toy, make_config, monkeypatch, caplog):
    original = SequenceDataset._load_data

    def load(self, *names):
        original(self, *names)
        path = toy / "toy" / "toy.item"
        path.write_text(path.read_text() + "new\tDrama\n")

    monkeypatch.setattr(SequenceDataset, "_load_data", load)
    create_dataset(make_config())
    assert "has changed while it was read" in caplog.text
    assert not (toy / "toy" / FOLDER).exists()


def test_switched_off_nothing_is_kept_and_few_settings_are_kept_otherwise(toy, make_config):
    create_dataset(make_config(data_cache=False))
    assert not (toy / "toy" / FOLDER).exists()
    for first in range(KEPT + 2):
        create_dataset(make_config(val_interval={"timestamp": f"[{first},inf)"}))
    assert len(list((toy / "toy" / FOLDER).iterdir())) == KEPT


def test_every_setting_that_loading_reads_is_part_of_the_key(rich, make_config):
    config = make_config(**EVERYTHING, data_cache=False)
    read = set()

    class Watched(type(config)):
        def __getitem__(self, key):
            read.add(key)
            return super().__getitem__(key)

    config.__class__ = Watched
    create_dataset(config)
    not_of_data = {
        "data_cache",
        "data_path",
        "MAX_ITEM_LIST_LENGTH",
        "ITEM_LIST_LENGTH_FIELD",
        "LIST_SUFFIX",
        "save_dataset",
        "device",
    }
    assert {"val_interval", "category_field", "load_col"} <= read
    assert read - not_of_data <= set(SETTINGS)


def test_a_plain_file_and_one_with_odd_lines_are_read_alike(toy, make_config):
    expected = plain(create_dataset(make_config(data_cache=False)))
    path = toy / "toy" / "toy.inter"
    text = path.read_text()
    path.write_text(
        text.replace("\n", "\n   \n", 1).replace("\n", "\r\n")
    )  # a blank line, which Arrow takes for a short one
    assert plain(create_dataset(make_config(data_cache=False))) == expected
    path.write_text(text + "u0\t\t1000000001\n\t\t7\n")  # without an item, and without a user
    assert [len(part) for part in plain(create_dataset(make_config(data_cache=False)))[4:6]] == [
        len(part) for part in expected[4:6]
    ]


def test_arrays_of_a_kept_dataset_can_be_written_and_stay_as_they_are_on_disk(toy, make_config):
    create_dataset(make_config())
    dataset = create_dataset(make_config())
    before = dataset.sequences.items.clone()
    dataset.sequences.items.fill_(1)
    assert torch.equal(create_dataset(make_config()).sequences.items, before)
    assert isinstance(np.asarray(dataset.field2id_token["item_id"]), np.ndarray)
    assert not isinstance(dataset.inter_feat, pd.DataFrame)
