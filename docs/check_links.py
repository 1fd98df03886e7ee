"""Check every link inside a built site, and that its pages load nothing from other sites.

python docs/check_links.py docs/_build/html
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src"}
"""Elements that a browser loads without a click, and the attribute with the address."""

MADE_BY_SPHINX = ("genindex.html", "search.html", "py-modindex.html")


class Page(HTMLParser):
    """The anchors of a page, its links, and the files that it loads."""

    def __init__(self, text: str):
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.without_text: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.names.update(value for name in ("id", "name") if (value := given.get(name)))
        if tag == "a" and (target := given.get("href")):
            self.links.append(target)
        if (name := LOADED.get(tag)) and (target := given.get(name)):
            self.loaded.append(target)
        if tag == "img" and not given.get("alt"):
            self.without_text.append(given.get("src") or "")


def mistakes(site: Path) -> list[str]:
    """The mistakes in a site, one line each."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site.resolve()).as_posix()
        found += [f"{name}: the picture {source} has no alternative text" for source in page.without_text]
        for target in {*page.links, *page.loaded}:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                if target in page.loaded and parts.scheme != "data":
                    found.append(f"{name}: loads {target}, which is not part of the site")
                continue
            other = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not other.is_file():
                found.append(f"{name}: {target} leads nowhere")
                continue
            known = other in pages and other.name not in MADE_BY_SPHINX
            if parts.fragment and known and unquote(parts.fragment) not in pages[other].names:
                found.append(f"{name}: {target} is not a place of that page")
    return sorted(found)


def main(site: str) -> int:
    found = mistakes(Path(site))
    print("\n".join(found) or f"every link of {site} leads somewhere", file=sys.stderr if found else sys.stdout)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
