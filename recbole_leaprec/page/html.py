"""Makes one self-contained page from the values of a report. It opens from disk, without a network."""

from __future__ import annotations

import json
import math
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from plotly.offline import get_plotlyjs

from recbole_leaprec.page.script import script


def page(data: dict[str, Any]) -> str:
    """The HTML of a report.

    Args:
        data: `title` and `methods`, and any of `made`, `versions`, `k`, `dataset`, `reference`, `references`,
            `comparisons`, `times`, `density`, `shift`, `items` and `explorer`. A section without values is left out of
            the page.

    Raises:
        ValueError: `title` or `methods` is missing.

    Example:
        >>> html = page({"title": "ml-100k", "methods": []})
        >>> html.startswith("<!doctype html>"), "https://cdn" in html.replace(get_plotlyjs(), "")
        (True, False)
    """
    missing = [key for key in ("title", "methods") if key not in data]
    if missing:
        raise ValueError(f"a page needs {' and '.join(missing)}, got {sorted(data)}")
    return Template(_read("page.html")).substitute(
        title=escape(data["title"]),
        css=_read("page.css"),
        js=script(),
        plotly=get_plotlyjs(),
        data=_embedded(data),
    )


def _read(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _embedded(data: dict[str, Any]) -> str:
    """JSON for use inside a script element. Without `<`, no name can end the element or open another one."""
    text = json.dumps(_plain(data), allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def _plain(value: Any) -> Any:
    """A value as JSON allows it: NaN and infinities become None, numpy and torch values plain lists and numbers."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
