"""The fixes for RecBole, each against what RecBole does or should do."""

import functools
import hashlib
import http.server
import json
import os
import subprocess
import sys
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest
import torch
from recbole.data.dataset import SequentialDataset
from recbole.utils import FeatureSource

from recbole_leaprec.compat import CompatDataset
from recbole_leaprec.config import LeapRecConfig
from recbole_leaprec.data import SequenceDataset, create_dataset
from tests.toy import stock_recbole, write_dataset

LOADED = {
    "inter": ["user_id", "item_id", "rating", "timestamp"],
    "item": ["item_id", "release_year"],
    "user": ["user_id", "age"],
}


@stock_recbole
def test_loading_and_renumbering_are_recboles():
    config = LeapRecConfig("SASRecCD", "ml-100k")
    config["load_col"] = LOADED  # without a field of sequences, which RecBole cannot load on pandas 3
    stock, ours = SequentialDataset(config), CompatDataset(config)
    for table in ("inter_feat", "item_feat", "user_feat"):
        theirs = getattr(stock, table).fillna(0)  # the padding of the item table, which RecBole does not fill on pandas 3
        pd.testing.assert_frame_equal(theirs, getattr(ours, table), check_dtype=False)
    for field in ("user_id", "item_id", "release_year", "age"):
        assert stock.field2id_token[field].tolist() == ours.field2id_token[field].tolist()
        assert stock.field2seqlen[field] == ours.field2seqlen[field]
    assert stock.field2type == ours.field2type


@pytest.mark.parametrize(
    ("field", "ids", "tokens", "longest"),
    [("class", "1cc51d92f629a0ea", "70ff44a9de52b69f", 6), ("movie_title", "40abac5976d48cf9", "98857a309da38c57", 15)],
)
def test_fields_of_sequences_are_as_recbole_loads_them_on_pandas_2(field, ids, tokens, longest):
    """What is expected was written down with RecBole's own SequentialDataset on pandas 2.3.3."""
    ours = CompatDataset(
        LeapRecConfig("SASRecCD", "ml-100k", config_dict={"load_col": {"item": ["item_id", "movie_title"]}})
    )
    assert digest([row.tolist() for row in ours.item_feat[field]]) == ids
    assert digest(ours.field2id_token[field].tolist()) == tokens
    assert ours.field2seqlen[field] == longest


def digest(values: list) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:16]


@pytest.fixture
def server(tmp_path):
    """A web server on loopback that has toy.zip."""
    (tmp_path / "web").mkdir()
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path / "web")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        yield tmp_path / "web", f"http://127.0.0.1:{web.server_address[1]}/toy-archive.zip"
        web.shutdown()


def dataset_from(url):
    class Downloaded(SequenceDataset):
        def _get_download_url(self, url_file, allow_none=False):
            return url

    return Downloaded


def test_a_dataset_is_downloaded_unpacked_and_loaded(server, toy, tmp_path, make_config):
    web, url = server
    with zipfile.ZipFile(web / "toy-archive.zip", "w") as archive:
        for suffix in ("inter", "item"):
            archive.write(toy / "toy" / f"toy.{suffix}", f"toy-archive.{suffix}")
    config = make_config(data_path=str(tmp_path / "fresh"), data_cache=False)
    assert len(dataset_from(url)(config)) == len(create_dataset(make_config()))
    assert sorted(file.name for file in (tmp_path / "fresh" / "toy").iterdir()) == ["toy.inter", "toy.item"]
    assert [entry.name for entry in (tmp_path / "fresh").iterdir()] == ["toy"]


def test_two_runs_may_download_the_same_dataset(server, toy, tmp_path, make_config):
    web, url = server
    with zipfile.ZipFile(web / "toy-archive.zip", "w") as archive:
        for suffix in ("inter", "item"):
            archive.write(toy / "toy" / f"toy.{suffix}", f"toy-archive.{suffix}")
    config, both = make_config(data_path=str(tmp_path / "fresh")), threading.Barrier(2)

    class Downloaded(dataset_from(url)):
        def _download(self):
            both.wait()  # neither finds the other's files
            super()._download()

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(Downloaded, [config, config])
    assert len(first) == len(second) > 0
    assert [entry.name for entry in (tmp_path / "fresh").iterdir()] == ["toy"]


def test_quotes_and_names_such_as_NA_are_text_like_any_other(tmp_path, make_config):
    write_dataset(
        tmp_path,
        [(user, item, time) for user in ("u1", "NA") for time, item in enumerate(("NA", '"x', "null", "y"))],
        {"NA": "a", '"x': '"b', "null": "NA", "y": ""},
    )
    dataset = create_dataset(make_config(data_path=str(tmp_path)))
    assert len(dataset) == 8
    assert set(dataset.field2id_token["item_id"][1:]) == {"NA", '"x', "null", "y"}
    assert set(dataset.field2id_token["genre"][1:]) == {"a", '"b', "NA"}
    dataset.config["title_field"] = "genre"
    assert dict(zip(dataset.field2id_token["item_id"], dataset.item_names(), strict=True))['"x'] == '"b'
    assert "y" in dataset.item_names()


def test_a_number_may_be_missing_in_words_and_a_file_may_begin_with_a_mark(tmp_path, make_config):
    rows = [("u", f"i{n}", n, rating) for n, rating in enumerate(("5", "NA", "nan", "", "4"))]
    header = "\ufeffuser_id:token\titem_id:token\ttimestamp:float\trating:float"
    write_dataset(tmp_path, rows, {f"i{n}": "a" for n in range(5)}, header)
    config = make_config(data_path=str(tmp_path), load_col={"inter": ["user_id", "item_id", "timestamp", "rating"]})
    feat = create_dataset(config)._load_feat(str(tmp_path / "toy" / "toy.inter"), FeatureSource.INTERACTION)
    assert feat["rating"].isna().tolist() == [False, True, True, True, False]
    assert feat["user_id"].tolist() == ["u"] * 5


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("user_id:token\titem_id:token\ttimestamp:float\tx:token\tx:token", "there are two fields 'x' in the header"),
        ("user_id:token\titem_id:token\ttimestamp:float\tx:token", r"toy\.inter, line 2: 5 fields, and the header has 4"),
    ],
)
def test_a_header_that_does_not_fit_its_rows_is_named(tmp_path, make_config, header, message):
    items = {f"i{n}": "a" for n in range(5)}
    write_dataset(tmp_path, [("u", item, n, "x", "y") for n, item in enumerate(items)], items, header)
    with pytest.raises(ValueError, match=message):
        create_dataset(make_config(data_path=str(tmp_path)))


@pytest.mark.parametrize(
    ("before", "given", "gpu", "after"),
    [
        ("3", {}, "3", "3"),
        (None, {}, "0", None),
        ("3", {"gpu_id": 1}, "1", "1"),
        ("3", {"use_gpu": False}, "", "3"),
        (None, {"gpu_id": ""}, "", None),
    ],
)
def test_only_a_gpu_that_is_asked_for_is_chosen_for_the_process(monkeypatch, make_config, before, given, gpu, after):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if before is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", before)
    config = make_config(**given)
    assert config["gpu_id"] == gpu
    assert {key: value for key, value in config.plain().items() if key in ("gpu_id", "use_gpu")} == given
    assert os.environ.get("CUDA_VISIBLE_DEVICES") == after


def test_a_failed_download_says_what_to_do_and_leaves_nothing(server, tmp_path, make_config):
    _, url = server
    config = make_config(data_path=str(tmp_path / "fresh"))
    with pytest.raises(
        ValueError, match=r"'toy' is not in .*fresh and could not be downloaded .* Put toy.inter and toy.item into"
    ) as failed:
        dataset_from(url)(config)
    assert failed.value.__cause__.fp.closed
    assert not (tmp_path / "fresh").exists()


def test_a_download_that_is_no_archive_is_refused_and_leaves_nothing(server, tmp_path, make_config):
    web, url = server
    (web / "toy-archive.zip").write_text("<html>log in first</html>")
    with pytest.raises(ValueError, match=r"could not be downloaded .*not a zip file"):
        dataset_from(url)(make_config(data_path=str(tmp_path / "fresh")))
    assert not (tmp_path / "fresh").exists()


@pytest.mark.parametrize(("name", "near"), [("ml-1n", "ml-1m"), ("toi", "toy")])
def test_unknown_datasets_are_refused_with_the_nearest(toy, name, near):
    config = LeapRecConfig("SASRecCD", name, config_dict={"data_path": str(toy), "category_field": "genre"})
    with pytest.raises(ValueError, match=f"unknown dataset '{name}'; did you mean '{near}'"):
        create_dataset(config)


def test_tensorboard_files_are_in_the_runs_folder(prepare, tmp_path, monkeypatch):
    from recbole_leaprec.trainer import LeapRecTrainer

    monkeypatch.chdir(tmp_path)
    config, dataset, _ = prepare(output_dir=str(tmp_path / "run"), checkpoint_dir=str(tmp_path / "run"))
    trainer = LeapRecTrainer(config, config.model_class(config, dataset), dataset)
    assert not (tmp_path / "run" / "tensorboard").exists()  # before there is anything to show
    threads = threading.active_count()
    trainer.tensorboard.add_scalar("a", 1.0, 0)
    assert threading.active_count() > threads
    trainer.tensorboard.close()
    assert threading.active_count() == threads
    assert list((tmp_path / "run" / "tensorboard").iterdir())
    assert not (tmp_path / "log_tensorboard").exists()
    assert torch.is_tensor(trainer.preference(torch.tensor([0]), 0.9))


@pytest.mark.slow
@pytest.mark.parametrize("module", ["quick_start", "recommend.recommender", "evaluator", "trainer"])
def test_scikit_learn_is_loaded_when_a_metric_calls_it_and_not_before(module):
    program = (
        f"import sys, recbole_leaprec.{module}; print('sklearn' in sys.modules); "
        "from recbole.evaluator.metrics import mean_absolute_error as of; print(of([1, 2], [1, 4])); print('sklearn' in sys.modules); "
        "from sklearn.metrics import accuracy_score"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "1.0", "True"]
