"""The settings of a user: the keys of the plugin and of RecBole, their allowed values, and checks of both.

Nothing here imports torch or RecBole, so `--help` and mistakes on the command line are answered at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from recbole_leaprec.common.defaults import ENGINES, SMALLEST_BETA
from recbole_leaprec.common.did_you_mean import did_you_mean, unknown_name
from recbole_leaprec.common.reading import parse_yaml, read_settings
from recbole_leaprec.reranking.registry import ORDERS, RERANKERS
from recbole_leaprec.settings.dropout import AUTO
from recbole_leaprec.settings.lr_schedule import SCHEDULES
from recbole_leaprec.settings.recbole_keys import LARGEST, PLAIN, is_interval, is_number, is_whole, kind_of, recbole_defaults

_PACKAGE = Path(__file__).resolve().parents[1]
# Inside the package in a wheel, beside it in a checkout.
PROPERTIES = next(folder for folder in (_PACKAGE / "properties", _PACKAGE.parent / "properties") if folder.is_dir())

SOFTMAX = "softmax"
LOSS_TYPES = ("BPR", SOFTMAX)
"""The values of `loss_type` for a calibration-disentangled model."""

ALL_NEGATIVES: Final = "all"
"""The value of `num_negatives` for the whole catalogue."""

LEARNERS = ("adam", "adamw", "sgd", "adagrad", "rmsprop")
"""The optimizers. RecBole also has sparse_adam, but no sequential model works with it: their gradients are dense."""


@dataclass(frozen=True)
class Key:
    """A key: its meaning, its allowed values in words, and the check of a value."""

    meaning: str
    allowed: str
    valid: Callable[[Any], bool]


PRECISIONS = ("highest", "high", "medium")
"""Torch's names for float32, TensorFloat-32 and bfloat16 inside of matrix products; sums are float32 in all of them."""


def _number(valid: Callable[[float], bool]) -> Callable[[Any], bool]:
    return lambda value: is_number(value) and abs(value) < LARGEST and valid(value)


def _clips(value: Any) -> bool:
    if value is None:
        return True
    known = isinstance(value, dict) and {"max_norm"} <= set(value) <= {"max_norm", "norm_type"}
    return known and all(_number(lambda x: x > 0)(one) for one in value.values())


def _text_or_none(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _positive_int(value: Any) -> bool:
    return is_whole(value) and 1 <= value < LARGEST


def _intervals(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(field, str) and (is_interval(kept) or (isinstance(kept, list) and kept != []))
        for field, kept in value.items()
    )


def listed(value: Any) -> list[Any]:
    """The value as a list. A single value becomes a list of one."""
    return value if isinstance(value, list) else [value]


def largest_k(config: Mapping[str, Any]) -> int:
    """The length of the lists, which is the largest K."""
    return max(listed(config["topk"]))


def recipe_names() -> list[str]:
    """The names of the recipes that come with the plugin, for `--recipe`."""
    return sorted(file.stem for file in (PROPERTIES / "recipes").glob("*.yaml"))


PLUGIN_KEYS = {
    "recipe": Key(
        "a set of settings that comes with the plugin; your own settings win over it", f"one of {', '.join(recipe_names())}, or None",
        lambda x: x is None or x in recipe_names(),
    ),
    "category_field": Key("field that holds the items' categories", "the name of a field of the .item file", _text_or_none),
    "title_field": Key("field that holds the items' titles, for lists and reports", "the name of a field of the .item file", _text_or_none),
    "alpha": Key("decay of the sequential preference per step", "a number in (0, 1]", _number(lambda x: 0 < x <= 1)),
    "beta": Key("smoothing of the KL divergence, which keeps it finite", f"a number in [{SMALLEST_BETA:g}, 1)", _number(lambda x: SMALLEST_BETA <= x < 1)),
    "loss_type": Key(
        "training loss of a model whose name ends in CD", f"{' or '.join(LOSS_TYPES)}; RecBole's for other models", _text_or_none
    ),
    "gamma": Key("weight of the calibration-disentangled term in the loss", "a number, 0 or more", _number(lambda x: x >= 0)),
    "bpr_weight": Key("weight of the plain term in the loss", "a number, 0 or more", _number(lambda x: x >= 0)),
    "num_negatives": Key(
        "how many negatives the softmax loss has; a batch shares them", f"a whole number, 1 or more, or {ALL_NEGATIVES}",
        lambda x: x == ALL_NEGATIVES or _positive_int(x),
    ),
    "reranker": Key("method that makes the lists", f"one of {', '.join(RERANKERS)}", lambda x: isinstance(x, str)),
    "rerank_lambda": Key("weight of calibration in reranking", "a number in [0, 1]", _number(lambda x: 0 <= x <= 1)),
    "target_skl": Key(
        "find the smallest rerank_lambda whose lists have at most this S_KL on validation", "a number above 0, or None",
        lambda x: x is None or _number(lambda y: y > 0)(x),
    ),
    "rerank_candidates": Key(
        "rerank only this many of the most relevant items", "a whole number of at least K, or None for all items (1,000 for mip, 100 for mcf)",
        lambda x: x is None or _positive_int(x),
    ),
    "rerank_order": Key("order of a reranked list, as the method picks the items (greedy) or by falling score (relevance)", f"one of {', '.join(ORDERS)}", lambda x: x in ORDERS),
    "rerank_temperature": Key("scores are divided by this before reranking", "a number above 0", _number(lambda x: x > 0)),
    "lr_schedule": Key(
        "how the learning rate changes over the epochs", f"one of {', '.join(SCHEDULES)}", lambda x: isinstance(x, str) and x in SCHEDULES
    ),
    "weight_average": Key(
        "validate and save a running mean of the weights, of which each step keeps this share; 0 for the weights themselves", "a number in [0, 1)",
        _number(lambda x: 0 <= x < 1),
    ),
    "matmul_precision": Key(
        "precision of matrix products in training; medium is faster on CPUs and GPUs that have bfloat16", f"one of {', '.join(PRECISIONS)}",
        lambda x: isinstance(x, str) and x in PRECISIONS,
    ),
    "mask_history": Key(
        "keep items of the history out of the lists", "True, False, or training (keep out its training items only)",
        lambda x: isinstance(x, bool) or x == "training",
    ),
    "preference_history": Key(
        "items that the preference is made of in evaluation", "all, or training (training items only)",
        lambda x: x in ("all", "training"),
    ),
    "data_cache": Key(
        "keep the prepared data beside its files, so that the next start is faster", "True or False", lambda x: isinstance(x, bool)
    ),
    "train_positions": Key(
        "train all positions of a sequence in one pass (all), or one row per prefix as RecBole does (last)", "all, last, or None for the model's own",
        lambda x: x in ("all", "last", None),
    ),
    "category_features": Key("whether LiGRCD adds the vectors of an item's categories to the item's own vector", "True or False", lambda x: isinstance(x, bool)),
    "caser_window": Key("how many of the last items CaserCD looks at", "a whole number, 1 or more", _positive_int),
    "dacsr_lambda": Key("weight of calibration in DACSR's loss", "a number in [0, 1]", _number(lambda x: 0 <= x <= 1)),
    "output_dir": Key("the run's folder", "a path, or None for output/<model>-<dataset>-<time>", _text_or_none),
}  # fmt: skip

# Keys of RecBole with bounds or forms that its defaults do not show. The kinds of all others are in `recbole_keys`.
RECBOLE_KEYS = {
    "epochs": Key("training epochs", "a whole number, 1 or more", _positive_int),
    "learning_rate": Key("learning rate", "a number above 0", _number(lambda x: x > 0)),
    "learner": Key("optimizer", f"one of {', '.join(LEARNERS)}", lambda x: isinstance(x, str) and x.lower() in LEARNERS),
    "weight_decay": Key("weight decay of the optimizer", "a number, 0 or more", _number(lambda x: x >= 0)),
    "clip_grad_norm": Key("arguments of torch's clip_grad_norm_", "a dict with max_norm, and norm_type if you like, such as {max_norm: 5}, or None", _clips),
    "MAX_ITEM_LIST_LENGTH": Key("longest input sequence", "a whole number, 1 or more", _positive_int),
    "train_batch_size": Key("sequences per training batch", "a whole number, 1 or more", _positive_int),
    "eval_batch_size": Key("users per evaluation batch", "a whole number, 1 or more", _positive_int),
    "eval_step": Key("epochs between validations", "a whole number, 1 or more", _positive_int),
    "stopping_step": Key("stop after this many validations without a better one", "a whole number", lambda x: is_whole(x) and x >= 0),
    "hidden_dropout_prob": Key(
        "dropout of a transformer's layers", f"a number in [0, 1), or {AUTO}: larger if items have few interactions",
        lambda x: x == AUTO or _number(lambda y: 0 <= y < 1)(x),
    ),
    "use_gpu": Key("whether to use a GPU if there is one", "True or False", lambda x: isinstance(x, bool)),
    "seed": Key("random seed", "a whole number from 0 to 4294967295", lambda x: is_whole(x) and 0 <= x < 2**32),
    "topk": Key("list lengths K", "a whole number, 1 or more, or a list of such numbers", lambda x: all(map(_positive_int, listed(x))) and x != []),
    "metrics": Key("metrics that are measured", "a name or a list of names", lambda x: all(isinstance(n, str) for n in listed(x)) and x != []),
    "valid_metric": Key("metric that chooses the best epoch", "a metric, such as NDCG@10", _text_or_none),
    "eval_args": Key("how the data is split and evaluated", "a dict", lambda x: isinstance(x, dict)),
    "val_interval": Key(
        "interactions to keep", 'a dict of intervals in quotes, such as {rating: "[4,inf)"}, or of lists of names, or None',
        lambda x: x is None or _intervals(x),
    ),
    "train_neg_sample_args": Key("how negatives are drawn in training", "a dict or None", lambda x: x is None or isinstance(x, dict)),
}  # fmt: skip

# Keys that RecBole reads, but that are not in its lists or yaml files.
_OTHER_RECBOLE_KEYS = {
    "model", "dataset", "config_files", "encoding", "metric_decimal_place", "numerical_features",
    "additional_feat_suffix", "unused_col", "reg_weight", "embedding_size", "tail_ratio", "contrast", "sim", "use_filter", "eta",
}  # fmt: skip

TEXT_KEYS = frozenset(
    {name for name, key in (PLUGIN_KEYS | RECBOLE_KEYS).items() if key.valid is _text_or_none}
    | {"model", "dataset", "data_path", "checkpoint_dir", "config_files", "encoding"}
)
"""Keys whose values are never read as numbers on the command line, even if they look like numbers."""

MACHINE_KEYS = frozenset(("gpu_id", "use_gpu"))
"""Keys that belong to the machine and not to a run."""

NO_PART_OF_LISTS = MACHINE_KEYS | {
    "data_path", "data_cache", "output_dir", "checkpoint_dir", "show_progress", "state", "eval_batch_size",
}  # fmt: skip
"""Keys that change neither a trained model nor its lists."""

EVALUATION_KEYS = MACHINE_KEYS | {
    "reranker", "rerank_lambda", "target_skl", "rerank_candidates", "rerank_order", "rerank_temperature", "mask_history",
    "preference_history", "alpha", "beta", "metrics", "topk", "eval_batch_size", "title_field", "data_path", "data_cache",
    "output_dir", "show_progress", "state",
}  # fmt: skip
"""Keys of a trained run that `evaluate` may change. All others belong to the model."""

MEASUREMENT_KEYS = EVALUATION_KEYS - {"reranker", "rerank_lambda", "target_skl", "metrics", "output_dir"}
"""Keys of a trained run that may be changed by a command with its own rerankers and lambdas."""

RECOMMENDATION_KEYS = EVALUATION_KEYS - {"topk", "metrics", "title_field", "preference_history", "output_dir"}
"""Keys of a trained run that may be changed for its lists."""

SERVICE_KEYS = RECOMMENDATION_KEYS - {"target_skl", "data_path", "data_cache", "eval_batch_size", "show_progress"}
"""Keys of a trained run that may be changed for a service, which has no data to find a lambda with."""

RERANK_KEYS = frozenset(
    (
        "reranker",
        "rerank_lambda",
        "target_skl",
        "rerank_candidates",
        "rerank_order",
        "rerank_temperature",
        "alpha",
        "beta",
        "show_progress",
    )
)
"""Keys that `rerank` takes. It has no model, only a method."""

RESUME_KEYS = MACHINE_KEYS | {"data_path", "data_cache", "show_progress", "state"}
"""Keys that may be changed when a training goes on."""

PROTOCOL_KEYS = ("alpha", "beta", "mask_history", "preference_history")
"""Keys that must be the same, beside the dataset and K, for metrics in one table."""


@cache
def known_keys() -> frozenset[str]:
    """Every key that RecBole or the plugin reads."""
    known = {*PLUGIN_KEYS, *_OTHER_RECBOLE_KEYS, *recbole_defaults()}
    for name in ("model", "dataset", "recipes"):
        for file in (PROPERTIES / name).glob("*.yaml"):
            known.update(_read_yaml(file) or {})
    return frozenset(known | set(default_settings()))


def _read_yaml(path: Path) -> Any:
    return parse_yaml(path.read_text(encoding="utf-8"), trusted=True)


@cache
def default_settings() -> Mapping[str, Any]:
    """The plugin's defaults, which a model, a dataset or the user can change."""
    return _read_yaml(PROPERTIES / "overall.yaml")


def recipe_settings(name: str) -> dict[str, Any]:
    """The settings of a recipe; ValueError for an unknown name."""
    check_values({"recipe": name})
    return _read_yaml(PROPERTIES / "recipes" / f"{name}.yaml")


def check_keys(names: Iterable[str]) -> None:
    """Raise ValueError for a key that neither RecBole nor the plugin reads, with the most similar key."""
    for name in names:
        if name not in known_keys() and not name.startswith("alias_of_"):
            raise ValueError(
                f"unknown key {name!r}{did_you_mean(name, known_keys())} RecBole and this plugin do not read it"
            )


def check_values(settings: Mapping[str, Any]) -> None:
    """Raise ValueError for a value that its key does not take."""
    for name, value in settings.items():
        key = PLUGIN_KEYS.get(name) or RECBOLE_KEYS.get(name)
        if key is not None and not key.valid(value):
            raise ValueError(f"{name} ({key.meaning}) must be {key.allowed}, got {value!r}")
        kind = None if key is not None else kind_of(name)
        if kind is not None and not kind.valid(value):
            raise ValueError(f"{name} must be {kind.allowed}, got {value!r}")
        if name in known_keys() and not PLAIN.valid(value):
            raise ValueError(f"{name} must be {PLAIN.allowed}, got {value!r}")


def is_text_key(name: str) -> bool:
    """Whether a key takes only texts and None."""
    kind = kind_of(name) if name not in PLUGIN_KEYS and name not in RECBOLE_KEYS else None
    return name in TEXT_KEYS or (kind is not None and kind.text)


def check_changes(changes: Iterable[str], allowed: Collection[str]) -> None:
    """Raise ValueError for a key of a trained run that is not in `allowed`."""
    for key in changes:
        if key not in allowed:
            raise ValueError(
                f"{key!r} of a trained run cannot be changed here{did_you_mean(key, allowed)} What can: {', '.join(sorted(allowed))}"
            )


def check_target(changes: Mapping[str, Any]) -> None:
    """Raise ValueError if a lambda is given and also to be found."""
    if changes.get("target_skl") is not None and "rerank_lambda" in changes:
        raise ValueError("target_skl finds rerank_lambda: give one of them")


def check_alike(configs: Mapping[str, Mapping[str, Any]], remedy: str) -> None:
    """Raise ValueError for runs whose metrics cannot be compared in one table.

    Args:
        configs: the configs by the names of the runs.
        remedy: what to do about it, for the message.
    """
    for key in ("dataset", "topk", *PROTOCOL_KEYS):
        named: dict[Any, str] = {}
        for name, config in configs.items():
            named.setdefault(largest_k(config) if key == "topk" else config[key], name)
        if len(named) > 1:
            told = " and ".join(f"{value!r} ({name})" for value, name in list(named.items())[:2])
            raise ValueError(
                f"{'the largest topk' if key == 'topk' else key} must be the same for all, got {told}; {remedy}"
            )


def check_count(name: str, value: Any) -> None:
    """Raise ValueError unless the value is a whole number, 1 or more."""
    if not is_whole(value) or value < 1:
        raise ValueError(f"{name} must be a whole number, 1 or more, got {value!r}")


def check_engine(engine: str, workers: int | None, **others: Any) -> None:
    """Raise ValueError for an unknown engine, or for workers and other Ray options with the local engine.

    Args:
        others: further Ray options by name; None for an option that is not given.
    """
    if engine not in ENGINES:
        raise ValueError(unknown_name("engine", str(engine), ENGINES))
    if workers is not None:
        check_count("workers", workers)
    for name, value in {"workers": workers, **others}.items():
        if value is not None and engine == "local":
            raise ValueError(f"{name} is for --engine=ray, got {value} with the local engine")


def check_number(name: str, value: Any, above: float | None = None) -> None:
    """Raise ValueError unless the value is a number, 0 or more; or more than `above`, if that is given."""
    if not _number(lambda x: x >= 0 if above is None else x > above)(value):
        raise ValueError(
            f"{name} must be a number, {'0 or more' if above is None else f'more than {above:g}'}, got {value!r}"
        )


def check_lambdas(lambdas: Collection[Any]) -> None:
    """Raise ValueError if there are no lambdas, or if one is not a number in [0, 1]."""
    if not lambdas:
        raise ValueError("lambdas is empty")
    for lam in lambdas:
        if isinstance(lam, bool) or not isinstance(lam, int | float) or not 0 <= lam <= 1:
            raise ValueError(f"lambdas must be numbers in [0, 1], got {lam!r}")


def read_config_files(paths: Iterable[str | Path]) -> dict[str, Any]:
    """The settings of yaml files; later files win. ValueError for a file that is missing or is not yaml."""
    settings: dict[str, Any] = {}
    for path in paths:
        if not Path(path).is_file():
            raise ValueError(f"config file {path} does not exist (config_files)")
        settings.update(read_settings(path, "config file"))
    return settings
