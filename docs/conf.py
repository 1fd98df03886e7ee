"""Sphinx settings of the site. Its pages load nothing from other sites."""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]

from reference_pages import reference_pages  # noqa: E402
from result_pages import result_pages, with_links_to_these  # noqa: E402

import recbole_leaprec  # noqa: E402

project = "recbole-leaprec"
author = "the recbole-leaprec maintainers"
version = release = recbole_leaprec.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "reference/generated/dependencies.md"]  # the latter is part of a page
nitpicky = False  # types of torch and pandas have no page here; links in the text are checked all the same

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


def write_pages(pages, folder):
    """Write all pages, and remove old ones. Pages that are up to date are not touched: Sphinx would read them again."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.md"):
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def links_to_results(app, name, source):
    source[0] = with_links_to_these(source[0], (DOCS / name).parent)


def setup(app):
    app.connect("source-read", links_to_results)
    app.connect("builder-inited", lambda app: write_pages(reference_pages(), DOCS / "reference" / "generated"))
    app.connect("builder-inited", lambda app: write_pages(result_pages(), DOCS / "results"))
