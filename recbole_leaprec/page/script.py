"""Joins the modules of js/ to one classic script for the page.

Browsers do not load modules from file://. So `import` and `export` in js/ are only for readers and the linter, and are
removed here. All parts then share one scope, so no two parts may have the same name at their top level.
"""

from __future__ import annotations

import re
from importlib.resources import files

# In the order of the page: each part after those that it imports from.
PARTS = (
    # building blocks of the sections
    "data", "format", "dom", "points", "table", "look", "plot", "slider",
    # the head and the sections, each after its own parts
    "comparison", "headline", "choices", "summary", "curves", "tradeoff", "ablation", "times", "density", "shift",
    "items", "why", "bars", "glide", "users",
    # the page
    "menu", "scheme", "start",
)  # fmt: skip

IMPORT = re.compile(r'^import \{[^}]*\} from "\./[\w-]+\.js";\n', flags=re.MULTILINE)
EXPORT = re.compile(r"^export (?=const |function )", flags=re.MULTILINE)


def script() -> str:
    """All parts inside one function, so that their names do not become global.

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
