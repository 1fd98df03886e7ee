"""RecBole's keys and the kinds of values that they take.

The kinds come from RecBole's yaml files, which have a default for almost every key. Nothing here imports RecBole.
"""

from __future__ import annotations

import ast
import codecs
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from recbole_leaprec.common.reading import parse_yaml


@cache
def recbole_folder() -> Path:
    """The folder where RecBole is installed, found without importing it."""
    spec = find_spec("recbole")
    if spec is None or not spec.submodule_search_locations:
        raise ValueError(
            "RecBole is not installed: pip install 'recbole>=1.2.0,<1.3'; `leaprec doctor` shows what else is missing"
        )
    return Path(spec.submodule_search_locations[0])


@cache
def recbole_defaults() -> dict[str, list[Any]]:
    """All defaults of each RecBole key, from all its yaml files. A key that RecBole only lists has none."""
    found: dict[str, list[Any]] = {}
    lists = ast.parse((recbole_folder() / "utils" / "argument_list.py").read_text(encoding="utf-8"))
    for statement in lists.body:
        if isinstance(statement, ast.Assign):
            found |= {name: [] for name in ast.literal_eval(statement.value)}
    for file in (recbole_folder() / "properties").rglob("*.yaml"):
        if not file.name.endswith("url.yaml"):  # holds addresses of datasets, no keys
            for name, value in (parse_yaml(file.read_text(encoding="utf-8"), trusted=True) or {}).items():
                found.setdefault(name, []).append(value)
    return found


@dataclass(frozen=True)
class Kind:
    """The values that a key takes, and how to say so.

    Attributes:
        text: whether it takes only texts and None.
    """

    allowed: str
    valid: Callable[[Any], bool]
    text: bool = False

    def __or__(self, other: Kind) -> Kind:
        return Kind(
            f"{self.allowed} or {other.allowed}",
            lambda value: self.valid(value) or other.valid(value),
            self.text and other.text,
        )


def is_number(value: Any) -> bool:
    """Whether it is a finite number. True and False do not count as numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


LARGEST = 2**62
"""A bound of numbers that torch is given, because it takes only whole numbers of 64 bits."""


def is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def whole(least: int) -> Kind:
    return Kind(f"a whole number, {least} or more", lambda value: is_whole(value) and least <= value < LARGEST)


def _list_of(kind: Kind, told: str) -> Kind:
    return Kind(told, lambda value: isinstance(value, list) and all(map(kind.valid, value)))


def _one_of(*names: str) -> Kind:
    return Kind(f"one of {', '.join(names)}", lambda value: isinstance(value, str) and value.lower() in names, text=True)


def is_plain(value: Any) -> bool:
    """Whether it can be written as JSON. Yaml also makes sets, bytes and dates."""
    if isinstance(value, dict):
        return all(isinstance(name, str) and is_plain(one) for name, one in value.items())
    if isinstance(value, list | tuple):
        return all(map(is_plain, value))
    return value is None or isinstance(value, str | int | float)


def is_interval(value: Any) -> bool:
    """Whether it is a text such as [4,inf) or (0,1];[3,4). If RecBole cannot read an interval, it keeps no rows at all."""
    return isinstance(value, str) and all(map(_is_one_interval, value.split(";")))


def _is_one_interval(text: str) -> bool:
    ends = re.fullmatch(r"\s*[\[(]([^,;]+),([^,;]+)[\])]\s*", text)
    try:
        return ends is not None and float(ends[1]) <= float(ends[2])
    except ValueError:
        return False


def _is_encoding(value: Any) -> bool:
    try:
        return isinstance(value, str) and codecs.lookup(value)._is_text_encoding
    except (LookupError, ValueError):
        return False


NONE = Kind("None", lambda value: value is None, text=True)
TEXT = Kind("a text", lambda value: isinstance(value, str), text=True)
TRUTH = Kind("True or False", lambda value: isinstance(value, bool))
NUMBER = Kind("a number", is_number)
NOT_NEGATIVE = Kind("a number, 0 or more", lambda value: is_number(value) and value >= 0)
SHARE = Kind("a number in [0, 1]", lambda value: is_number(value) and 0 <= value <= 1)
TEXTS = _list_of(TEXT, "a list of texts")
BY_NAME = Kind("a dict", lambda value: isinstance(value, dict) and all(isinstance(name, str) for name in value))
ANYTHING = Kind("anything", lambda value: True)
PLAIN = Kind("a number, a text, True, False, None, or a list or dict of these", is_plain)
INTERVAL = Kind("an interval in quotes, such as [5,inf)", is_interval, text=True)

# Keys whose default's type says too little, or for which RecBole also takes other kinds.
EXCEPTIONS = {
    "gpu_id": TEXT | whole(0),
    "state": _one_of("debug", "info", "warning", "error", "critical"),
    "hidden_act": _one_of("gelu", "relu", "swish", "tanh", "sigmoid"),
    "transform": _one_of("mask_itemseq", "inverse_itemseq", "crop_itemseq", "reorder_itemseq", "user_defined") | NONE,
    "rm_dup_inter": _one_of("first", "last") | NONE,
    "encoding": Kind("the name of an encoding, such as utf-8", _is_encoding, text=True) | NONE,
    "log_wandb": Kind(
        "True or False, and True needs the package wandb: pip install wandb",
        lambda value: value is False or (value is True and find_spec("wandb") is not None),
    ),
    "metric_decimal_place": whole(0),
    "loss_decimal_place": whole(0),
    **dict.fromkeys(("field_separator", "seq_separator"), Kind("a text of at least one sign", lambda x: isinstance(x, str) and x != "", text=True)),
    **dict.fromkeys(("user_inter_num_interval", "item_inter_num_interval"), INTERVAL | NONE),
    **dict.fromkeys(("load_col", "unload_col", "unused_col", "seq_len", "preload_weight", "discretization"), BY_NAME | NONE),
    "threshold": Kind("a dict of one field and a number", lambda x: isinstance(x, dict) and len(x) == 1 and all(map(is_number, x.values()))) | NONE,
    **dict.fromkeys(("additional_feat_suffix", "normalize_field"), TEXTS | NONE),
    **dict.fromkeys(("dataset_save_path", "dataloaders_save_path", "config_file", "config_files", "model", "dataset", "contrast", "sim"), TEXT | NONE),
    **dict.fromkeys(("mf_pretrain_path", "mlp_pretrain_path", "pretrain_path"), TEXT | NONE),
    "benchmark_filename": ANYTHING,  # `config_checks` refuses it, with the reason
    "use_filter": TRUTH | NONE,
    **dict.fromkeys(("eta", "tail_ratio"), NOT_NEGATIVE | NONE),
}  # fmt: skip


@cache
def kind_of(name: str) -> Kind | None:
    """The kind of values that a RecBole key takes; None if RecBole does not have the key or says nothing about it."""
    if name in EXCEPTIONS:
        return EXCEPTIONS[name]
    if name.startswith("alias_of_"):
        return TEXTS | NONE
    defaults = recbole_defaults().get(name)
    return _of_defaults(name, defaults) if defaults and any(value is not None for value in defaults) else None


def _of_defaults(name: str, defaults: Sequence[Any]) -> Kind:
    """The kind that allows values of the same kinds as the defaults.

    Example:
        >>> _of_defaults("n_layers", [2, 3]).allowed, _of_defaults("normalize_all", [True, None]).allowed
        ('a whole number, 1 or more', 'True or False or None')
    """
    numbers = [value for value in defaults if is_number(value)]
    kinds = []
    if any(isinstance(value, bool) for value in defaults):
        kinds.append(TRUTH)
    if numbers:
        kinds.append(_of_numbers(name, numbers))
    if any(isinstance(value, str) for value in defaults):
        kinds.append(TEXT)
    lists = [value for value in defaults if isinstance(value, list)]
    if lists:
        inside = [one for value in lists for one in value]
        own = _of_defaults(name, inside) if inside else ANYTHING
        kinds.append(_list_of(own, "a list" if own is ANYTHING else f"a list in which each value is {own.allowed}"))
    if any(isinstance(value, dict) for value in defaults):
        kinds.append(BY_NAME)
    if any(value is None for value in defaults):
        kinds.append(NONE)
    kind = kinds[0]
    for other in kinds[1:]:
        kind = kind | other
    return kind


def _of_numbers(name: str, numbers: Sequence[float]) -> Kind:
    """The kind of a key from its default numbers.

    If no default is negative, negative values have no meaning. If no default is 0, 0 is no valid size.
    """
    if "dropout" in name or name.endswith("_prob"):
        return SHARE
    if all(map(is_whole, numbers)) and min(numbers) >= 0:
        return whole(min(1, int(min(numbers))))
    return NOT_NEGATIVE if min(numbers) >= 0 else NUMBER
