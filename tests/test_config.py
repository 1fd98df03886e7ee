"""Properties, precedence, and every key that must be refused."""

import re

import pytest
import yaml

from recbole_leaprec.compat import RECBOLE_PROPERTIES
from recbole_leaprec.config import LeapRecConfig
from recbole_leaprec.settings.keys import PLUGIN_KEYS, PROPERTIES, known_keys


def test_the_papers_settings_are_the_defaults(tmp_path):
    config = LeapRecConfig("SASRecCD", "ml-1m", config_dict={"data_path": str(tmp_path)})
    expected = {
        "learning_rate": 0.001, "hidden_size": 50, "train_batch_size": 128, "n_layers": 2, "n_heads": 1,
        "hidden_dropout_prob": 0.2, "attn_dropout_prob": 0.2, "MAX_ITEM_LIST_LENGTH": 200, "epochs": 200,
        "alpha": 0.9, "beta": 0.01, "gamma": 0.1, "bpr_weight": 1.0, "loss_type": "BPR", "valid_metric": "NDCG@10",
        "reranker": "leaprec", "rerank_lambda": 0.3, "category_field": "genre", "train_positions": "all",
    }  # fmt: skip
    assert {key: config[key] for key in expected} == expected
    other = LeapRecConfig("SASRecCD", "anything", config_dict={"category_field": "x"})
    assert (other["hidden_dropout_prob"], other["MAX_ITEM_LIST_LENGTH"], other["epochs"]) == (0.5, 50, 100)


def test_files_win_over_properties_and_the_dict_over_files(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("gamma: 0.5\nalpha: 0.8\n")
    config = LeapRecConfig("SASRecCD", "ml-1m", [str(file)], {"gamma": 0.7})
    assert (config["gamma"], config["alpha"], config["beta"]) == (0.7, 0.8, 0.01)


def test_a_recipe_wins_over_properties_and_loses_to_files_and_the_dict(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("gamma: 0.5\n")
    config = LeapRecConfig(None, "ml-1m", [str(file)], {"recipe": "best", "epochs": 3})
    assert (config["model"], config["gamma"], config["epochs"], config["num_negatives"]) == ("LiGRCD", 0.5, 3, "all")
    assert config["category_field"] == "genre"  # a recipe is for any dataset
    assert LeapRecConfig("SASRecCD", "ml-1m", None, {"recipe": "best"})["model"] == "SASRecCD"
    with pytest.raises(ValueError, match=r"recipe \(.*\) must be one of best.*got 'bset'"):
        LeapRecConfig(None, "ml-1m", None, {"recipe": "bset"})


def test_a_plain_model_has_the_sizes_of_its_cd_twin_and_trains_as_recbole_does():
    plain, twin = LeapRecConfig("SASRec", "ml-100k"), LeapRecConfig("SASRecCD", "ml-100k")
    assert all(plain[key] == twin[key] for key in ("hidden_size", "n_heads", "loss_type"))
    assert (plain["train_positions"], twin["train_positions"]) == ("last", "all")


def test_every_key_of_the_plugin_has_a_default():
    files = [PROPERTIES / "overall.yaml", *PROPERTIES.glob("model/*.yaml")]
    assert set(PLUGIN_KEYS) <= {key for file in files for key in yaml.safe_load(file.read_text())}


def test_what_the_plugin_reads_is_loaded_whatever_load_col_says():
    config = LeapRecConfig("SASRecCD", "ml-100k", config_dict={"load_col": {"inter": ["user_id", "item_id"]}})
    assert config["load_col"]["inter"] == ["user_id", "item_id", "timestamp", "rating"]
    assert "class" in config["load_col"]["item"]


def test_the_command_line_of_the_running_program_is_not_read(monkeypatch):
    monkeypatch.setattr("sys.argv", ["pytest", "--gamma=7", "--nonsense=1"])
    assert LeapRecConfig("SASRecCD", "ml-100k")["gamma"] == 0.1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rerank_lamda": 0.5}, "unknown key 'rerank_lamda'; did you mean 'rerank_lambda'?"),
        ({"lambdas": 0.7}, "unknown key 'lambdas'"),  # of a study's file
        ({"seeds": 7}, "unknown key 'seeds'; did you mean 'seed'?"),
        ({"learner": "adamm"}, "learner .* must be one of adam, .*, got 'adamm'"),
        ({"use_gpu": 0}, "use_gpu .* must be True or False, got 0"),
        ({"weight_decay": "x"}, "weight_decay .* must be a number, 0 or more, got 'x'"),
        ({"clip_grad_norm": 5}, "clip_grad_norm .* must be a dict with max_norm.*, got 5"),
        ({"eval_step": 20, "epochs": 10}, "eval_step must be at most the epochs, 10: .*; got 20"),
        ({"model": "DACSR", "train_positions": "last"}, "DACSR trains on all positions"),
        ({"learning_rat": 0.5}, "unknown key 'learning_rat'; did you mean 'learning_rate'?"),
        ({"reranker": "calirek"}, "unknown reranker 'calirek'"),
        ({"reranker": "leaprek"}, "did you mean 'leaprec'?"),
        ({"model": "CaserCD", "caser_window": 0}, "caser_window .* must be a whole number, 1 or more, got 0"),
        ({"model": "DACSR", "dacsr_lambda": 2}, r"dacsr_lambda .* must be a number in \[0, 1\], got 2"),
        ({"alpha": 0}, r"alpha .* must be a number in \(0, 1\], got 0"),
        ({"alpha": 1.5}, "alpha .* got 1.5"),
        ({"alpha": "high"}, "alpha .* got 'high'"),
        ({"alpha": True}, "alpha .* got True"),
        ({"beta": 0}, r"beta .* must be a number in \[1e-15, 1\), got 0"),
        ({"beta": 1}, "beta .* got 1"),
        ({"weight_decay": 10**30}, "weight_decay .* must be a number, 0 or more, got 1000"),
        ({"gamma": -1}, "gamma .* must be a number, 0 or more, got -1"),
        ({"gamma": float("nan")}, "gamma .* got nan"),
        ({"bpr_weight": -0.1}, "bpr_weight .* got -0.1"),
        ({"gamma": 0, "bpr_weight": 0}, "no loss left to train with"),
        ({"rerank_lambda": 1.1}, r"rerank_lambda .* must be a number in \[0, 1\], got 1.1"),
        ({"rerank_candidates": 0}, "rerank_candidates .* got 0"),
        ({"rerank_candidates": 5}, "rerank_candidates must be at least the largest K, 10"),
        ({"mask_history": "yes"}, "mask_history .* must be True, False, or training .*, got 'yes'"),
        ({"train_positions": "first"}, "train_positions .* must be all, last, or None"),
        ({"topk": [0, 10]}, r"topk .* must be a whole number, 1 or more, or a list of such numbers, got \[0, 10\]"),
        ({"topk": "ten"}, "topk .* got 'ten'"),
        ({"topk": [5]}, "valid_metric must be one of Hit@5, NDCG@5, SKL@5, CKL@5 .*, got 'NDCG@10'"),
        ({"metrics": ["Hit", "NDCK"]}, "unknown ranking metric 'NDCK'; did you mean 'ndcg'?"),
        ({"epochs": 0}, "epochs .* must be a whole number, 1 or more, got 0"),
        ({"valid_metric": "NDCG"}, "valid_metric must be one of .*, got 'NDCG'"),
        ({"valid_metric": 5}, "valid_metric .* got 5"),
        ({"metrics": ["Hit", "GAUC"], "valid_metric": "GAUC@10"}, "valid_metric must be one of Hit@10, GAUC"),
        ({"metrics": ["AUC"], "valid_metric": "AUC"}, "unknown ranking metric 'AUC'"),
        ({"metrics": []}, "metrics .* must be a name or a list of names"),
        ({"topk": []}, "topk .* got"),
        ({"learning_rate": "abc"}, "learning_rate .* must be a number above 0, got 'abc'"),
        ({"MAX_ITEM_LIST_LENGTH": 0}, "MAX_ITEM_LIST_LENGTH .* got 0"),
        ({"seed": "abc"}, "seed .* got 'abc'"),
        ({"eval_args": 5}, "eval_args .* must be a dict, got 5"),
        ({"val_interval": 4}, "val_interval .* must be a dict"),
        ({"train_neg_sample_args": "none"}, "train_neg_sample_args .* must be a dict or None, got 'none'"),
        ({"benchmark_filename": ["a", "b", "c"]}, "benchmark_filename: splits made beforehand are not supported"),
        ({"eval_args": {"split": {"LS": "valid_and_test"}, "order": "RO"}}, "in order of time"),
        ({"loss_type": "CE"}, "loss_type of SASRecCD must be BPR or softmax, got 'CE'"),
        ({"target_skl": 0}, "target_skl .* must be a number above 0, or None, got 0"),
        ({"target_skl": 0.1, "reranker": "none"}, "target_skl needs a reranker that calibrates, got 'none'"),
        ({"target_skl": 0.1, "metrics": ["NDCG"]}, "target_skl needs SKL among the metrics"),
        ({"rerank_order": "best"}, "rerank_order .* must be one of greedy, relevance, got .best."),
        ({"rerank_temperature": 0}, "rerank_temperature .* must be a number above 0, got 0"),
        ({"lr_schedule": "step"}, "lr_schedule .* must be one of constant, cosine, got .step."),
        ({"preference_history": "train"}, "preference_history .* must be all, or training"),
        ({"num_negatives": 0}, "num_negatives .* must be a whole number, 1 or more, or all, got 0"),
        ({"model": "SASRec", "loss_type": "softmax"}, "loss_type: softmax is for the models whose name ends in CD, got SASRec"),
        ({"eval_args": {"split": {"RS": [8, 1, 1]}, "order": "TO"}}, "leave-one-out"),
        ({"eval_args": {"split": {"LS": "valid_and_test"}, "order": "TO", "mode": "uni100"}}, "full ranking"),
        ({"train_neg_sample_args": {"distribution": "popularity", "sample_num": 1}}, "distribution must be uniform, sample_num 1"),
        ({"transform": "crop_itemseq"}, "transform works with train_positions: last only"),
        ({"local_rank": 0}, "unknown key 'local_rank'"),
    ],
)  # fmt: skip
def test_bad_values_are_refused_with_the_key_the_value_and_what_is_allowed(changes, message):
    with pytest.raises(ValueError, match=message):
        LeapRecConfig(dataset="ml-100k", config_dict={"model": "SASRecCD", **changes})


def test_names_come_from_the_call_then_the_dict_then_the_files_then_the_default(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("model: SASRec\ndataset: ml-1m\n")
    named = [
        LeapRecConfig(config_file_list=[str(file)]),
        LeapRecConfig("SASRecCD", config_file_list=[str(file)]),
        LeapRecConfig(),
    ]
    assert [(config["model"], config["dataset"]) for config in named] == [
        ("SASRec", "ml-1m"), ("SASRecCD", "ml-1m"), ("SASRecCD", "ml-100k"),
    ]  # fmt: skip


def test_every_key_that_recbole_reads_for_sequential_models_is_known():
    """Read off RecBole's source; the rest are names that RecBole itself sets, and keys of other kinds of models."""
    read = set()
    folder = RECBOLE_PROPERTIES.parent
    for part in ("data", "evaluator", "trainer/trainer.py", "model/sequential_recommender", "model/abstract_recommender.py"):
        for file in [folder / part] if part.endswith(".py") else (folder / part).rglob("*.py"):
            read |= set(re.findall(r"""config\[["'](\w+)["']\]""", file.read_text(encoding="utf-8")))
    set_by_recbole = {
        "device",
        "eval_type",
        "local_rank",
        "single_spec",
        "world_size",
        "MODEL_TYPE",
        "MODEL_INPUT_TYPE",
        "valid_neg_sample_args",
        "test_neg_sample_args",
        "MASK_INDEX",
        "MASK_ITEM_SEQ",
        "POS_ITEMS",
        "NEG_ITEMS",
        "CROP_ITEM_SEQ",
        "CROP_ITEM_SEQ_LEN",
        "REORDER_ITEM_SEQ",
        "INVERSE_ITEM_SEQ",
    }
    other_models = {"token_num_threshold", "xgb_early_stopping_rounds"}
    assert read - known_keys() == set_by_recbole | other_models


def test_bad_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"config file nowhere.yaml does not exist"):
        LeapRecConfig("SASRecCD", "ml-100k", ["nowhere.yaml"])
    for text, message in (("a: [", "is not yaml"), ("just words", "must hold `key: value` lines")):
        file = tmp_path / "bad.yaml"
        file.write_text(text)
        with pytest.raises(ValueError, match=message):
            LeapRecConfig("SASRecCD", "ml-100k", [str(file)])


@pytest.mark.parametrize("model", ["SASRec", "NARMCD"])
def test_training_all_positions_needs_a_model_that_can(model):
    with pytest.raises(
        ValueError, match=f"{model} trains on one row per prefix, and train_positions must be last, got 'all'"
    ):
        LeapRecConfig(model, "ml-100k", config_dict={"train_positions": "all"})
