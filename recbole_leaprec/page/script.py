"""The page's script: the modules of js/ in one classic script.

A browser loads no module from file://, so their `import` and `export` words are for readers and the linter, and are taken off
here. All parts then share one scope: a name at the top of a part is the only one of its kind.
"""

from __future__ import annotations

import re
from importlib.resources import files

# The order in which they stand in the page: each after those that it imports from.
PARTS = (
    # what sections are made of
    "data", "format", "dom", "points", "table", "look", "plot", "slider",
    # the head and the sections, with their own parts before them
    "comparison", "headline", "choices", "summary", "curves", "tradeoff", "ablation", "times", "density", "shift",
    "items", "why", "bars", "glide", "users",
    # the page
    "menu", "scheme", "start",
)  # fmt: skip

IMPORT = re.compile(r'^import \{[^}]*\} from "\./[\w-]+\.js";\n', flags=re.MULTILINE)
EXPORT = re.compile(r"^export (?=const |function )", flags=re.MULTILINE)


def script() -> str:
    """All parts in a function of their own, so that they leave no names in the window.

    Example:
        >>> text = script()
        >>> text.startswith('"use strict";'), "import {" in text, "export " in text
        (True, False, False)
    """
    parts = [EXPORT.sub("", IMPORT.sub("", read(name))).strip() for name in PARTS]
    return "\n\n".join(['"use strict";\n(() => {', *parts, "})();"])


def read(name: str) -> str:
    """The source of a part."""
    return files(__package__).joinpath("js", f"{name}.js").read_text(encoding="utf-8")
