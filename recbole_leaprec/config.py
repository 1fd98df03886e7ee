"""The configuration: RecBole's, with the plugin's properties below the user's files and command line, and checked."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from recbole.evaluator import metric_types
from recbole.utils import EvaluatorType, argument_list

from recbole_leaprec.compat import RECBOLE_PROPERTIES, CompatConfig
from recbole_leaprec.evaluator import register_metrics
from recbole_leaprec.loss import LOSS_TYPES, SOFTMAX
from recbole_leaprec.model import get_model
from recbole_leaprec.model.cd_mixin import CalibrationDisentangledMixin
from recbole_leaprec.model.negatives import ALL
from recbole_leaprec.reranking import ORDERS, RERANKERS, get_reranker
from recbole_leaprec.schedule import SCHEDULES
from recbole_leaprec.suggest import did_you_mean, unknown_name

_PACKAGE = Path(__file__).resolve().parent
# Inside the package in a wheel, beside it in a checkout.
PROPERTIES = next(folder for folder in (_PACKAGE / "properties", _PACKAGE.parent / "properties") if folder.is_dir())

register_metrics()


@dataclass(frozen=True)
class Key:
    """A key of the plugin: what it means, which values it takes, and how to say so."""

    meaning: str
    allowed: str
    valid: Callable[[Any], bool]


def _number(valid: Callable[[float], bool]) -> Callable[[Any], bool]:
    def check(value: Any) -> bool:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and valid(value)

    return check


def _text_or_none(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _listed(value: Any) -> list:
    return value if isinstance(value, list) else [value]


def largest_k(config: Mapping[str, Any]) -> int:
    """The length of the lists."""
    return max(_listed(config["topk"]))


def _positive_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def check_count(name: str, value: Any) -> None:
    """ValueError unless the value is a whole number, 1 or more."""
    if not _positive_int(value):
        raise ValueError(f"{name} must be a whole number, 1 or more, got {value!r}")


def check_number(name: str, value: Any, above: float | None = None) -> None:
    """ValueError unless the value is a number, 0 or more, or more than `above`."""
    if not _number(lambda x: x >= 0 if above is None else x > above)(value):
        raise ValueError(
            f"{name} must be a number, {'0 or more' if above is None else f'more than {above:g}'}, got {value!r}"
        )


LAMBDAS = tuple(step / 10 for step in range(11))
"""What a trained model is reranked with for its trade-off curve, or to find its best lambda."""


def check_lambdas(lambdas: Collection[Any]) -> None:
    """ValueError unless there are some and all of them are numbers in [0, 1]."""
    if not lambdas:
        raise ValueError("lambdas: there is none")
    for lam in lambdas:
        if isinstance(lam, bool) or not isinstance(lam, int | float) or not 0 <= lam <= 1:
            raise ValueError(f"lambdas must be numbers in [0, 1], got {lam!r}")


PLUGIN_KEYS = {
    "category_field": Key("item feature that holds the categories", "the name of a field of the .item file", _text_or_none),
    "title_field": Key("item feature that names items in reports", "the name of a field of the .item file", _text_or_none),
    "alpha": Key("decay of the sequential preference a step", "a number in (0, 1]", _number(lambda x: 0 < x <= 1)),
    "beta": Key("smoothing of the divergence", "a number in (0, 1)", _number(lambda x: 0 < x < 1)),
    "loss_type": Key(
        "loss that a model whose name ends in CD is trained with", f"{' or '.join(LOSS_TYPES)}; RecBole's for other models", _text_or_none
    ),
    "gamma": Key("weight of the calibration-disentangled term in the loss", "a number, 0 or more", _number(lambda x: x >= 0)),
    "bpr_weight": Key("weight of the plain term in the loss", "a number, 0 or more", _number(lambda x: x >= 0)),
    "num_negatives": Key(
        "negatives of the softmax loss, shared by a batch", f"a whole number, 1 or more, or {ALL}",
        lambda x: x == ALL or _positive_int(x),
    ),
    "reranker": Key("how test lists are made", f"one of {', '.join(RERANKERS)}", lambda x: isinstance(x, str)),
    "rerank_lambda": Key("weight of calibration in reranking", "a number in [0, 1]", _number(lambda x: 0 <= x <= 1)),
    "target_skl": Key(
        "find the smallest rerank_lambda whose validation S_KL meets this", "a number above 0, or None",
        lambda x: x is None or _number(lambda y: y > 0)(x),
    ),
    "rerank_candidates": Key(
        "rerank the n most relevant items only", "a whole number of at least K, or None for all items (1,000 for mip, 100 for mcf)",
        lambda x: x is None or _positive_int(x),
    ),
    "rerank_order": Key("order of a reranked list", f"one of {', '.join(ORDERS)}", lambda x: x in ORDERS),
    "rerank_temperature": Key("what scores are divided by before reranking", "a number above 0", _number(lambda x: x > 0)),
    "lr_schedule": Key(
        "how the learning rate goes over the epochs", f"one of {', '.join(SCHEDULES)}", lambda x: isinstance(x, str) and x in SCHEDULES
    ),
    "mask_history": Key(
        "keep items of the history out of the lists", "True, False, or training for its training items alone",
        lambda x: isinstance(x, bool) or x == "training",
    ),
    "preference_history": Key(
        "what the preference in evaluation is made of", "all, or training for training items alone",
        lambda x: x in ("all", "training"),
    ),
    "train_positions": Key(
        "all positions of a sequence in one pass, or RecBole's one row a prefix", "all, last, or None for the model's own",
        lambda x: x in ("all", "last", None),
    ),
    "caser_window": Key("last items that CaserCD looks at", "a whole number, 1 or more", _positive_int),
    "dacsr_lambda": Key("weight of calibration in DACSR's loss", "a number in [0, 1]", _number(lambda x: 0 <= x <= 1)),
    "output_dir": Key("the run's folder", "a path, or None for output/<model>-<dataset>-<time>", _text_or_none),
}  # fmt: skip

LEARNERS = ("adam", "adamw", "sgd", "adagrad", "rmsprop", "sparse_adam")

# Keys of RecBole whose wrong values it would find late, answer with a traceback, or take for something else.
RECBOLE_KEYS = {
    "epochs": Key("training epochs", "a whole number, 1 or more", _positive_int),
    "learning_rate": Key("learning rate", "a number above 0", _number(lambda x: x > 0)),
    "learner": Key("optimizer", f"one of {', '.join(LEARNERS)}", lambda x: isinstance(x, str) and x.lower() in LEARNERS),
    "weight_decay": Key("weight decay of the optimizer", "a number, 0 or more", _number(lambda x: x >= 0)),
    "clip_grad_norm": Key("arguments of torch's clip_grad_norm_", "a dict, such as {max_norm: 5}, or None", lambda x: x is None or isinstance(x, dict)),
    "MAX_ITEM_LIST_LENGTH": Key("longest input sequence", "a whole number, 1 or more", _positive_int),
    "train_batch_size": Key("sequences a training batch", "a whole number, 1 or more", _positive_int),
    "eval_batch_size": Key("users an evaluation batch", "a whole number, 1 or more", _positive_int),
    "eval_step": Key("epochs between validations", "a whole number, 1 or more", _positive_int),
    "stopping_step": Key("validations without a better one before stopping", "a whole number", lambda x: x == 0 or _positive_int(x)),
    "use_gpu": Key("whether to use a GPU where there is one", "True or False", lambda x: isinstance(x, bool)),
    "seed": Key("random seed", "a whole number", lambda x: x == 0 or _positive_int(x)),
    "topk": Key("list lengths K", "a whole number, 1 or more, or a list of such", lambda x: all(map(_positive_int, _listed(x))) and x != []),
    "metrics": Key("evaluation metrics", "a name or a list of names", lambda x: all(isinstance(n, str) for n in _listed(x)) and x != []),
    "valid_metric": Key("what chooses the best epoch", "a metric, such as NDCG@10", _text_or_none),
    "eval_args": Key("evaluation setting", "a dict", lambda x: isinstance(x, dict)),
    "val_interval": Key("interactions to keep", 'a dict, such as {rating: "[4,inf)"}, or None', lambda x: x is None or isinstance(x, dict)),
    "train_neg_sample_args": Key("training negatives", "a dict or None", lambda x: x is None or isinstance(x, dict)),
}  # fmt: skip

# Keys that RecBole reads and that are in none of its lists and yaml files.
_OTHER_RECBOLE_KEYS = {
    "model", "dataset", "config_files", "encoding", "metric_decimal_place", "numerical_features",
    "additional_feat_suffix", "unused_col", "reg_weight", "embedding_size", "tail_ratio", "contrast", "sim", "use_filter", "eta",
}  # fmt: skip


def metric_names(metrics: Collection[str], topk: Collection[int]) -> list[str]:
    """What an evaluation with these gives, such as NDCG@10. GAUC looks at the whole ranking and has no K."""
    return list(dict.fromkeys(name if name.lower() == "gauc" else f"{name}@{k}" for name in metrics for k in topk))


@cache
def known_keys() -> frozenset[str]:
    """Every key that RecBole or the plugin reads."""
    known = set(PLUGIN_KEYS) | _OTHER_RECBOLE_KEYS
    for name in ("general", "training", "evaluation", "dataset"):
        known.update(getattr(argument_list, f"{name}_arguments"))
    own = [
        PROPERTIES / "overall.yaml",
        *(file for name in ("model", "dataset", "recipes") for file in (PROPERTIES / name).glob("*.yaml")),
    ]
    for file in (*RECBOLE_PROPERTIES.rglob("*.yaml"), *own):
        if not file.name.endswith("url.yaml"):  # datasets and where they are, not keys
            known.update(yaml.safe_load(file.read_text(encoding="utf-8")) or {})
    return frozenset(known)


MACHINE_KEYS = frozenset(("gpu_id", "use_gpu"))
"""What belongs to the machine and not to a run."""


class LeapRecConfig(CompatConfig):
    """RecBole's Config with the plugin's properties and models.

    Later ones win: RecBole's overall, model and dataset yaml; the plugin's; `config_file_list`; `config_dict`.
    `<Model>CD` starts from RecBole's yaml of `<Model>`, and plain `<Model>` gets the plugin's yaml of `<Model>CD`, so that
    a calibrated model and its base have the same sizes.

    Raises:
        ValueError: an unknown key, model, reranker or metric; a value out of range; a file that does not exist or is not
            yaml. The message names the key, the value and what is allowed.
    """

    def _load_config_files(self, file_list):
        loaded = {}
        for file in file_list or []:
            if not Path(file).is_file():
                raise ValueError(f"config file {file} does not exist (config_files)")
            try:
                content = yaml.load(Path(file).read_text(encoding="utf-8"), Loader=self.yaml_loader)
            except yaml.YAMLError as error:
                raise ValueError(f"config file {file} is not yaml: {error}") from error
            if not isinstance(content, dict):
                raise ValueError(f"config file {file} must hold `key: value` lines")
            loaded.update(content)
        return loaded

    def _get_model_and_dataset(self, model, dataset):
        model = model or self.external_config_dict.get("model") or "SASRecCD"
        dataset = dataset or self.external_config_dict.get("dataset") or "ml-100k"
        for key, value in (("model", model), ("dataset", dataset)):
            if not isinstance(value, str):
                raise ValueError(f"{key} must be a name, got {value!r}")
        return model, get_model(model), dataset

    def _load_internal_config_dict(self, model, model_class, dataset):
        base = model.removesuffix("CD")
        super()._load_internal_config_dict(base, model_class, dataset)
        if issubclass(model_class, CalibrationDisentangledMixin):
            self.internal_config_dict["loss_type"] = "BPR"  # RecBole's default is CE
        own = [f"model/{model}.yaml", f"model/{base}CD.yaml"]
        own_model = next((name for name in own if (PROPERTIES / name).is_file()), None)
        for name in ("overall.yaml", own_model, f"dataset/{dataset}.yaml"):
            if name and (PROPERTIES / name).is_file():
                self._update_internal_config_dict(PROPERTIES / name)

    def _get_final_config_dict(self):
        final = super()._get_final_config_dict()
        self._check_keys()
        self._check_values(final)
        if final["train_positions"] is None:
            final["train_positions"] = getattr(self.model_class, "train_positions", "last")
        if final.get("loss_type") == "CE" and "train_neg_sample_args" not in self.external_config_dict:
            final["train_neg_sample_args"] = None  # RecBole's default has negatives, and refuses them with this loss
        if final.get("selected_features") and "selected_features" not in self.external_config_dict:
            final["selected_features"] = [final["category_field"]]  # RecBole's default, class, is ml-100k's name for it
        if final["train_positions"] == "all" and "transform" not in self.external_config_dict:
            final["transform"] = None  # RecBole's work on one row a prefix
        self._check_training(final)
        self._plain = {key: copy.deepcopy(value) for key, value in final.items() if key != "MODEL_TYPE"}
        self._plain.update(model=self.model, dataset=self.dataset)
        self._complete_load_col(final)
        return final

    def plain(self) -> dict[str, Any]:
        """Everything needed to make this config again, as plain values; without the run's folder and a GPU that nobody asked for."""
        left_out = {"output_dir"} | MACHINE_KEYS - self.external_config_dict.keys()
        return {key: value for key, value in sorted(self._plain.items()) if key not in left_out}

    def _check_keys(self) -> None:
        for key in self.external_config_dict:
            if key not in known_keys() and not key.startswith("alias_of_"):
                raise ValueError(
                    f"unknown key {key!r}{did_you_mean(key, known_keys())} RecBole and this plugin do not read it"
                )

    def _check_values(self, final: dict[str, Any]) -> None:
        for name, key in (PLUGIN_KEYS | RECBOLE_KEYS).items():
            if name in final and not key.valid(final[name]):
                raise ValueError(f"{name} ({key.meaning}) must be {key.allowed}, got {final[name]!r}")
        if get_reranker(final["reranker"]).target is None and final["target_skl"] is not None:
            raise ValueError(f"target_skl needs a reranker that calibrates, got {final['reranker']!r}")
        topk, metrics = _listed(final["topk"]), _listed(final["metrics"])
        if final["eval_step"] > final["epochs"]:
            raise ValueError(
                f"eval_step must be at most the epochs, {final['epochs']}: without a validation there is no best epoch to keep; "
                f"got {final['eval_step']}"
            )
        if (candidates := final["rerank_candidates"]) is not None and candidates < max(topk):
            raise ValueError(f"rerank_candidates must be at least the largest K, {max(topk)} (topk), got {candidates}")
        if final["target_skl"] is not None and "skl" not in [metric.lower() for metric in metrics]:
            raise ValueError(f"target_skl needs SKL among the metrics, got {metrics}")
        ranking = [name for name, kind in metric_types.items() if kind == EvaluatorType.RANKING]
        for metric in metrics:
            if metric.lower() not in ranking:
                raise ValueError(unknown_name("ranking metric", metric, ranking))
        choices = metric_names(metrics, topk)
        if final["valid_metric"] is None:
            final["valid_metric"] = choices[0]
        if final["valid_metric"].lower() not in [choice.lower() for choice in choices]:
            raise ValueError(
                f"valid_metric must be one of {', '.join(choices)} (from metrics and topk), got {final['valid_metric']!r}"
            )
        if final["benchmark_filename"] is not None:
            raise ValueError(
                "benchmark_filename: splits made beforehand are not supported, the plugin splits by leave-one-out"
            )
        asked = {"split": None, "order": None, "mode": "full"} | final["eval_args"]
        full = asked["mode"] in ("full", {"valid": "full", "test": "full"})
        if asked["split"] != {"LS": "valid_and_test"} or asked["order"] != "TO" or not full:
            raise ValueError(
                f"eval_args must have split {{LS: valid_and_test}}, order TO and mode full: the plugin evaluates by leave-one-out "
                f"in order of time, and full ranking; got {final['eval_args']}"
            )

    def _check_training(self, final: dict[str, Any]) -> None:
        disentangled = issubclass(self.model_class, CalibrationDisentangledMixin)
        if disentangled and final["gamma"] == final["bpr_weight"] == 0:
            raise ValueError("gamma and bpr_weight are both 0: there is no loss left to train with")
        softmax = final.get("loss_type") == SOFTMAX
        if disentangled and final.get("loss_type") not in LOSS_TYPES:
            raise ValueError(f"loss_type of {self.model} must be {' or '.join(LOSS_TYPES)}, got {final.get('loss_type')!r}")
        if softmax and not disentangled:
            raise ValueError(
                f"loss_type: {SOFTMAX} is for the models whose name ends in CD, got {self.model}; gamma: 0 leaves their CD term out"
            )
        if final["train_positions"] == "all":
            if getattr(self.model_class, "train_positions", "last") != "all":
                raise ValueError(f"{self.model} trains on one row a prefix, and train_positions must be last, got 'all'")
            negatives = final["train_neg_sample_args"] or {}
            allowed = ("uniform", "popularity") if softmax else ("uniform",)
            if negatives.get("distribution") not in allowed or negatives.get("sample_num") != 1 or negatives.get("dynamic"):
                raise ValueError(
                    f"train_neg_sample_args: with train_positions: all and this loss_type, distribution must be {' or '.join(allowed)}, "
                    f"sample_num 1 and dynamic False; got {negatives}"
                )
            if final["transform"] is not None:
                raise ValueError(f"transform works with train_positions: last only, got {final['transform']!r}")
        elif getattr(self.model_class, "all_positions_only", False):
            raise ValueError(
                f"{self.model} trains on all positions, and train_positions must be all, got {final['train_positions']!r}"
            )
        if "local_rank" in final:
            raise ValueError("the plugin trains in one process; local_rank is not supported")

    def _complete_load_col(self, final: dict[str, Any]) -> None:
        """Load what the plugin reads, whatever else load_col asks for. No load_col at all loads every column."""
        if final["load_col"] is None:
            return
        filtered = list(final["val_interval"] or {})
        needed = {
            "inter": [final["USER_ID_FIELD"], final["ITEM_ID_FIELD"], final["TIME_FIELD"], *filtered],
            "item": [final["ITEM_ID_FIELD"], final["category_field"], *filtered],
        }
        load_col = dict(final["load_col"])
        for source, fields in needed.items():
            asked = load_col.get(source) or []
            if asked != "*":
                load_col[source] = list(dict.fromkeys([*asked, *filter(None, fields)]))
        final["load_col"] = load_col
