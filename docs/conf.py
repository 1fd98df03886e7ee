"""How Sphinx builds the site. Nothing of it is fetched when a page is looked at."""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]

from reference_pages import write_reference  # noqa: E402

import recbole_leaprec  # noqa: E402

project = "recbole-leaprec"
author = "the recbole-leaprec maintainers"
version = release = recbole_leaprec.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
nitpicky = False  # types of torch and pandas have no page here; every link that is written is checked all the same
suppress_warnings = ["myst.header"]  # pages of results/ and benchmarks/ begin as their programs write them

myst_enable_extensions = ["colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 4

default_role = "code"  # docstrings write `name`, as Markdown does
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
napoleon_numpy_docstring = False
napoleon_use_rtype = False

html_theme = "furo"
html_title = "recbole-leaprec"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "footer_icons": [],
    "light_css_variables": {"color-brand-primary": "#1f5fa8", "color-brand-content": "#1f5fa8"},
    "dark_css_variables": {"color-brand-primary": "#8ab8ee", "color-brand-content": "#8ab8ee"},
}


def setup(app):
    app.connect("builder-inited", lambda app: write_reference(DOCS / "reference" / "generated"))
