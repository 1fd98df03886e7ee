"""The file that describes a study."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from recbole_leaprec.analysis.measurement import BASE
from recbole_leaprec.common.did_you_mean import did_you_mean, unknown_name
from recbole_leaprec.common.files import check_spec
from recbole_leaprec.common.reading import read_yaml
from recbole_leaprec.config import LeapRecConfig
from recbole_leaprec.reranking.registry import get_reranker
from recbole_leaprec.settings.keys import check_alike, check_lambdas

KEYS = {
    "title": "what the report is called",
    "datasets": "the study is run on each of them; if there are none, on the dataset in `settings`",
    "settings": "keys of RecBole and the plugin for all models, such as the dataset",
    "backbones": "models of RecBole; each is trained as its CD twin, with the settings of every variant",
    "variants": "name: settings; a variant that names a model of its own is trained once, not for every backbone",
    "seeds": "every model is trained with each of them",
    "lambdas": "lambdas of every reranker that has none of its own",
    "methods": "name: {variant, reranker, lambdas}",
    "ablations": "as methods, but drawn in a picture of their own, with the reference",
    "reference": "the method that all others are tested against",
    "match": "S_KL levels at which methods are compared; if there are none, some levels of the reference",
}


_LINES, _LIST = (dict, "`name: value` lines"), (list, "a list")
_KINDS = {
    **dict.fromkeys(("settings", "variants", "methods", "ablations"), _LINES), "lambdas": _LIST, "datasets": (list, "a list of datasets"),
    "backbones": (list, "a list of models"), "seeds": (list, "a list of whole numbers"), "match": (list, "a list of numbers"),
}  # fmt: skip


@dataclass(frozen=True)
class Part:
    """One model to train and to rerank in many ways."""

    name: str
    variant: str
    settings: dict[str, Any]
    rerankers: dict[str, list[float]]

    @cached_property
    def config(self) -> LeapRecConfig:
        return LeapRecConfig(config_dict=self.settings)


@dataclass(frozen=True)
class Method:
    """A reranker on the models of a variant. It becomes a curve."""

    name: str
    group: str
    variant: str
    reranker: str
    lambdas: list[float]


@dataclass(frozen=True)
class Spec:
    """A study. `content` is the content of the file, with the settings that were given beside it."""

    content: dict[str, Any]
    methods: list[Method]

    @classmethod
    def read(cls, path: str | Path, settings: Mapping[str, Any] | None = None) -> Spec:
        """Read and check a file; `settings` win over the file's.

        Raises:
            ValueError: there is no such file, or it has a mistake, also one that would only show up hours later.
        """
        check_spec(path)
        content = read_yaml(path, "the study")
        if not isinstance(content, dict):
            raise ValueError(f"{path} must hold the keys {', '.join(KEYS)}")
        try:
            _check_keys(content)
            if "dataset" in (content.get("settings") or {}) and content.get("datasets"):
                raise ValueError("datasets: the settings name a dataset, too; leave one of them out")
            if "dataset" in (settings or {}):  # the dataset that is given beside the file replaces the file's
                content = {key: value for key, value in content.items() if key != "datasets"}
            spec = cls.of({**content, "settings": {**(content.get("settings") or {}), **(settings or {})}})
            for one in spec.of_each_dataset().values():
                one.check()
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
        return spec

    @classmethod
    def of(cls, content: dict[str, Any]) -> Spec:
        """A study from the content of a file; ValueError for wrong keys or methods."""
        _check_keys(content)
        return cls(content, _methods(content))

    def check(self) -> None:
        """ValueError for other mistakes that would only show up hours later."""
        if not self.methods:
            raise ValueError("methods: there is none")
        if self.reference not in {method.name for method in self.methods}:
            raise ValueError(unknown_name("reference", str(self.reference), [method.name for method in self.methods]))
        for method in self.methods:
            if not self.owners(method.variant):
                raise ValueError(f"variants: {method.variant} has nothing to train: name backbones, or give it a model")
        parts = list(self.parts())
        names = [part.name for part in parts]
        for part in parts:
            if names.count(part.name) > 1:
                raise ValueError(f"two models would go to the folder {part.name}: give the variants more different names")
            _ = part.config
        check_alike({part.name: part.config.plain() for part in parts}, "put it into settings, or make it another study")

    def of_each_dataset(self) -> dict[str, Spec]:
        """The study of each dataset, by name; without a list of datasets, the study itself under the empty name."""
        names = self.content.get("datasets")
        if not names:
            return {"": self}
        content = {key: value for key, value in self.content.items() if key != "datasets"}
        return {
            name: Spec.of(
                {**content, "title": f"{self.title}: {name}", "settings": {**content.get("settings", {}), "dataset": name}}
            )
            for name in names
        }

    @property
    def title(self) -> str:
        return str(self.content.get("title") or "Study")

    @property
    def reference(self) -> str:
        return self.content.get("reference") or self.methods[0].name

    @property
    def backbones(self) -> list[str]:
        return list(self.content.get("backbones") or [])

    @property
    def match(self) -> list[float]:
        return [float(skl) for skl in self.content.get("match") or []]

    @property
    def seeds(self) -> list[int]:
        return list(self.content.get("seeds") or [2020])

    def variant(self, name: str) -> dict[str, Any]:
        return dict((self.content.get("variants") or {}).get(name) or {})

    def owners(self, variant: str) -> list[str | None]:
        """The backbones that a variant is trained with; `[None]` for a variant that names its own model."""
        return [None] if "model" in self.variant(variant) else list(self.backbones)

    def parts(self) -> Iterator[Part]:
        """All models to train, seed by seed, so that an unfinished study is complete for its first seeds."""
        rerankers: dict[str, dict[str, list[float]]] = {}
        for method in self.methods:
            own = rerankers.setdefault(method.variant, {}).setdefault(method.reranker, [])
            own += [lam for lam in method.lambdas if lam not in own]
        for seed in self.seeds:
            for variant, asked in rerankers.items():
                for backbone in self.owners(variant):
                    model = {} if backbone is None else {"model": f"{backbone}CD"}
                    settings = {**model, **self.content["settings"], **self.variant(variant), "seed": seed}
                    yield Part(part_name(backbone, variant, seed), variant, settings, asked)


def part_name(backbone: str | None, variant: str, seed: int) -> str:
    """The name of a part's folder.

    Example:
        >>> part_name("SASRec", "BPR + CD", 2020)
        'SASRec-BPR-CD-2020'
    """
    words = [re.sub(r"[^A-Za-z0-9.]+", "-", word).strip("-") for word in (backbone or "", variant, str(seed))]
    return "-".join(word for word in words if word)


def _check_keys(content: dict[str, Any]) -> None:
    """ValueError for an unknown key, or a value of the wrong kind."""
    for key, value in content.items():
        if key not in KEYS:
            raise ValueError(f"unknown key {key!r}{did_you_mean(key, KEYS)} There are {', '.join(KEYS)}")
        kind, meant = _KINDS.get(key, (str | int | float, "a text"))
        if value is not None and not isinstance(value, kind):
            raise ValueError(f"{key} must be {meant}, got {value!r}")
    for key in ("variants", "methods", "ablations"):
        for name in content.get(key) or {}:
            if not isinstance(name, str):
                raise ValueError(f"{key}: the name {name!r} is no text; write it in quotes")
    for name, settings in (content.get("variants") or {}).items():
        if settings is not None and not isinstance(settings, dict):
            raise ValueError(f"variants: {name} must be settings, such as {{gamma: 0}}, got {settings!r}")
    for where, settings in (("settings", content.get("settings")), *(content.get("variants") or {}).items()):
        for key in ("seed", "config_files", "output_dir", *(["model"] if where == "settings" else [])):
            if key in (settings or {}):
                raise ValueError(f"{where}: {key} is not for a study to set; it has backbones, variants and seeds")
    for key, valid in (("seeds", int), ("match", (int, float)), ("backbones", str), ("datasets", str)):
        values = content.get(key) or []
        for value in values:
            if isinstance(value, bool) or not isinstance(value, valid) or values.count(value) > 1:
                raise ValueError(f"{key} must be {_KINDS[key][1]}, each once, got {values!r}")


def _methods(content: dict[str, Any]) -> list[Method]:
    variants = content.get("variants") or {}
    methods = []
    for group, key in (("method", "methods"), ("ablation", "ablations")):
        for name, given in (content.get(key) or {}).items():
            if not isinstance(given, dict):
                raise ValueError(f"{key}: {name} must be {{variant, reranker, lambdas}}, got {given!r}")
            _check_words(f"{key}: {name}", given, ("variant", "reranker", "lambdas"))
            for word in ("variant", "reranker"):
                if not isinstance(given.get(word, ""), str):
                    raise ValueError(f"{key}: {name}: {word} must be one name, got {given[word]!r}")
            if given.get("variant") not in variants:
                raise ValueError(f"{key}: {name}: {unknown_name('variant', str(given.get('variant')), variants)}")
            reranker = given.get("reranker", BASE)
            get_reranker(reranker)
            lambdas = [0.0] if reranker == BASE else given.get("lambdas", content.get("lambdas"))
            if not isinstance(lambdas, list) or not lambdas:
                raise ValueError(f"{key}: {name}: lambdas must be a list of numbers in [0, 1], got {lambdas!r}")
            check_lambdas(lambdas)
            methods.append(Method(name, group, given["variant"], reranker, [float(lam) for lam in lambdas]))
    names = [method.name for method in methods]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name!r} is among the methods and among the ablations")
    return methods


def _check_words(where: str, given: Iterable[str], known: Iterable[str]) -> None:
    for word in given:
        if word not in known:
            raise ValueError(f"{where}: unknown key {word!r}{did_you_mean(word, known)} There are {', '.join(known)}")
