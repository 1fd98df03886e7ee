"""The kinds of RecBole's keys, read off its defaults."""

import pytest

from recbole_leaprec.cli import main
from recbole_leaprec.cli.arguments import read_value
from recbole_leaprec.common.reading import read_settings
from recbole_leaprec.config import LeapRecConfig
from recbole_leaprec.settings.keys import PLUGIN_KEYS, PROPERTIES, RECBOLE_KEYS, check_values, known_keys
from recbole_leaprec.settings.recbole_keys import EXCEPTIONS, is_interval, kind_of, recbole_defaults

NO_KIND = {"fields", "lgb_early_stopping_rounds", "xgb_model", "xgb_nthread", "xgb_silent"}
"""None by default, and of models that are not sequential."""


def test_every_key_of_recbole_has_a_kind():
    unknown = {name for name in known_keys() - {*PLUGIN_KEYS, *RECBOLE_KEYS} if kind_of(name) is None}
    assert unknown == NO_KIND


def test_every_default_of_recbole_is_a_value_that_its_key_takes():
    for name, defaults in recbole_defaults().items():
        if name not in PLUGIN_KEYS:  # alpha and beta of RecBole's models for other tasks mean something else
            for value in defaults:
                if (name, value) != ("additional_feat_suffix", "ent"):  # of knowledge graphs; RecBole would read e, n and t
                    check_values({name: value})


def test_every_setting_of_our_own_is_a_value_that_its_key_takes():
    for folder in ("model", "dataset", "recipes", "."):
        for file in (PROPERTIES / folder).glob("*.yaml"):
            check_values(read_settings(file, "file"))


def test_exceptions_are_keys_that_there_are():
    assert set(EXCEPTIONS) <= known_keys()


ODD = [True, 1.5, -1, "x", "2024-01-01", [], ["x"], {}, {"x": 1}, {1: 2}, None, float("nan"), float("inf")]


@pytest.mark.parametrize("name", sorted(known_keys() - NO_KIND - {"benchmark_filename"}))
def test_every_key_refuses_some_odd_values_with_its_name_and_what_it_takes(name):
    refused = []
    for value in ODD:
        try:
            check_values({name: value})
        except ValueError as error:
            refused.append((repr(value), str(error)))
    for value, told in refused:
        assert told.startswith(f"{name} ")
        assert " must be " in told
        assert f", got {value}" in told
    assert len(refused) >= 5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("--repeatable=2024-01-01", "repeatable must be True or False, got '2024-01-01'"),
        ("--n_layers=0", "n_layers must be a whole number, 1 or more, got 0"),
        ("--hidden_size=1.5", "hidden_size must be a whole number, 1 or more, got 1.5"),
        ("--hidden_dropout_prob=2", "hidden_dropout_prob (dropout of a transformer's layers) must be a number in [0, 1), or auto"),
        ("--learner=sparse_adam", "learner (optimizer) must be one of adam, adamw, sgd, adagrad, rmsprop, got 'sparse_adam'"),
        ("--encoding=1", "encoding must be the name of an encoding, such as utf-8 or None, got '1'"),
        ("--encoding=base64", "encoding must be the name of an encoding"),
        ("--val_interval={rating: '[1;2]'}", "val_interval (interactions to keep) must be a dict of intervals in quotes"),
        ("--val_interval={rating: 4}", "val_interval (interactions to keep) must be a dict of intervals in quotes"),
        ("--user_inter_num_interval=[5", "user_inter_num_interval must be an interval in quotes, such as [5,inf) or None"),
        ("--hidden_act=gulu", "hidden_act must be one of gelu, relu, swish, tanh, sigmoid, got 'gulu'"),
        ("--transform=flip", "transform must be one of mask_itemseq, "),
        ("--state=loud", "state must be one of debug, info, "),
        ("--seed=99999999999999999999", "seed (random seed) must be a whole number from 0 to 4294967295"),
        ("--train_batch_size=99999999999999999999999", "train_batch_size (sequences per training batch) must be a whole number, 1 or more, got "),
        ("--fields=!!set {a}", "fields must be a number, a text, True, False, None, or a list or dict of these, got {'a'}"),
        ("--clip_grad_norm={a: 1}", "clip_grad_norm (arguments of torch's clip_grad_norm_) must be a dict with max_norm, and norm_type"),
        ("--clip_grad_norm={max_norm: x}", "clip_grad_norm (arguments of torch's clip_grad_norm_) must be a dict with max_norm"),
        ("--load_col=[a]", "load_col must be a dict or None, got ['a']"),
        ('--seq_separator=""', "seq_separator must be a text of at least one sign, got ''"),
        ("--worker=-1", "worker must be a whole number, 0 or more, got -1"),
        ("--mlp_hidden_size=[a]", "mlp_hidden_size must be a list in which each value is a whole number, 1 or more, got ['a']"),
    ],
)  # fmt: skip
def test_odd_values_are_answered_in_one_line_and_nothing_is_left(tmp_path, monkeypatch, capsys, given, message):
    monkeypatch.chdir(tmp_path)
    assert main([given]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"leaprec: error: {message}")
    assert told.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_wandb_is_taken_where_it_is_installed_alone(monkeypatch):
    monkeypatch.setattr("recbole_leaprec.settings.recbole_keys.find_spec", lambda name: None)
    with pytest.raises(
        ValueError, match="log_wandb must be True or False, and True needs the package wandb: pip install wandb"
    ):
        LeapRecConfig("SASRecCD", "ml-100k", config_dict={"log_wandb": True})
    monkeypatch.setattr("recbole_leaprec.settings.recbole_keys.find_spec", lambda name: object())
    check_values({"log_wandb": True})


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("field_separator", ",", ","),
        ("field_separator", '"\\t"', "\t"),
        ("USER_ID_FIELD", "1e3", "1e3"),
        ("USER_ID_FIELD", "True", "True"),
        ("gpu_id", "0", 0),
        ("user_inter_num_interval", "[5,inf)", "[5,inf)"),
        ("user_inter_num_interval", "[5,10]", "[5,10]"),
        ("transform", "None", None),
    ],
)
def test_what_a_key_for_texts_is_given_stays_text(name, text, expected):
    assert read_value(name, text) == expected


def test_intervals():
    assert all(map(is_interval, ("[4,inf)", "(0, 1]; [3,4)", "(-inf,2.5)")))
    assert not any(map(is_interval, ("", "[4", "4,5", "[5,4]", "[a,b]", "[1,2,3]", "[1,2];", 4, None)))
