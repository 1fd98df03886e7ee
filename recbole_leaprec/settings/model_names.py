"""The names of all models, found without importing them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from recbole_leaprec.common.did_you_mean import unknown_name
from recbole_leaprec.settings.recbole_keys import recbole_folder

_ONE_ITEM = "it scores one item at a time for click prediction and cannot rank the whole catalogue"
_GRAPH = "it needs embeddings of a knowledge graph beside the interactions"
UNSUPPORTED = {
    "DIN": _ONE_ITEM,
    "DIEN": _ONE_ITEM,
    "GRU4RecKG": _GRAPH,
    "KSR": _GRAPH,
    "S3Rec": "it needs a stage of pre-training with a trainer of its own",
}
"""RecBole's sequential models that do not run here, and why."""


def known_models() -> list[str]:
    """Every name that `--model` takes."""
    plain = [name for name in recbole_models() if name not in UNSUPPORTED]
    return sorted({*plain, *(f"{name}CD" for name in plain), *own_models()})


@cache
def recbole_models() -> tuple[str, ...]:
    """RecBole's sequential models."""
    return _imported_by(recbole_folder() / "model" / "sequential_recommender" / "__init__.py")


@cache
def own_models() -> tuple[str, ...]:
    """The plugin's models."""
    return _imported_by(Path(__file__).parents[1] / "model" / "sequential_recommender" / "__init__.py")


def _imported_by(path: Path) -> tuple[str, ...]:
    """The names that a file imports. These packages import only their models."""
    imports = (node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom))
    return tuple(name.name for node in imports for name in node.names)


def check_model(name: str) -> None:
    """Raise ValueError if there is no such model, with the most similar name, or if it cannot run here, with the reason."""
    base = name.removesuffix("CD")
    if base in UNSUPPORTED:
        raise ValueError(f"model {name!r} is not supported: {UNSUPPORTED[base]}")
    if name not in known_models():
        raise ValueError(unknown_name("model", name, known_models()))
