"""Packages that import a name only at its first use: importing torch takes a second, RecBole several."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A `__getattr__` for a package.

    Args:
        package: the `__name__` of the package.
        homes: the module of the package that holds each name.

    Example:
        >>> lazy_names("email", {"Message": "message"})("Message").__name__
        'Message'
    """

    def find(name: str) -> Any:
        if name in homes:
            return getattr(import_module(f"{package}.{homes[name]}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find
