"""The site that `make docs` has built: complete, nothing from another host, no Markdown left as text.

Needs mkdocs, which only the environment of `make docs` has. That no link leads nowhere `mkdocs build --strict` sees to.
"""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from refinery import loader
from tests.docs.blocks import DOCS, ROOT

pytest.importorskip("mkdocs", reason="mkdocs is not installed: make docs")
SITE = ROOT / "site"
LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


class Page(HTMLParser):
    """What a page loads, and its text without code."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.text: list[str] = []
        self._inside = 0
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside += tag in ("code", "pre", "script", "style")
        found = dict(attrs)
        if tag in LOADS and found.get("rel") not in ("prev", "next"):
            self.loads.append(found.get(LOADS[tag]) or "")

    def handle_endtag(self, tag: str) -> None:
        self._inside -= tag in ("code", "pre", "script", "style")

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self.text.append(data)


def name_of(path: Path) -> str:
    return path.relative_to(SITE).as_posix()


def expected() -> set[str]:
    """The site's pages of docs/."""
    return {str(path.relative_to(DOCS).with_suffix(".html")) for path in DOCS.rglob("*.md")}


@pytest.fixture(scope="module")
def pages() -> dict[str, Page]:
    return {name_of(path): Page(path.read_text()) for path in sorted(SITE.rglob("*.html"))}


def test_every_page_is_there(pages: dict[str, Page]) -> None:
    others = ("404.html", "changelog.html", "contributing.html", "security.html", "terraform.html")
    assert set(pages) == expected() | set(others)
    assert not list(SITE.rglob("*.py"))


def test_nothing_comes_from_another_host(pages: dict[str, Page]) -> None:
    loaded = {(name, address) for name, page in pages.items() for address in page.loads}
    assert {address for _, address in loaded if re.match(r"(\w+:)?//", address)} == set()
    for name, address in loaded:
        if name != "404.html" and address and not address.startswith("data:"):  # that one has addresses from the root
            there = (SITE / name).parent / address.partition("?")[0].partition("#")[0]
            assert there.is_file(), f"{name}: {address}"
    styles = "".join(path.read_text() for path in SITE.rglob("*.css"))
    assert re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//[^)]*", styles) == []


def test_no_markdown_is_left(pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        text = "".join(page.text)
        assert re.findall(r"^\| .*|^:::.*|\]\([\w/.#]+\)|^```.*", text, re.MULTILINE) == [], name


def test_the_python_page_has_every_public_name_with_its_text(pages: dict[str, Page]) -> None:
    text = " ".join("".join(pages["api.html"].text).split())
    html = (SITE / "api.html").read_text()
    for name in loader.__all__:
        assert re.search(rf'id="refinery\.loader\.[\w.]+\.{name}"', html), name
        doc = getattr(loader, name).__doc__
        assert doc and re.sub(r"[`*]", "", doc.split(".")[0].split("`")[0])[:25] in text, name


def test_the_search_knows_every_page() -> None:
    """Once as JSON, for servers, once as a script, for pages that are opened as files."""
    text = (SITE / "search" / "search_index.json").read_text()
    found = {entry["location"].partition("#")[0] for entry in json.loads(text)["docs"]}
    assert expected() <= found
    assert (SITE / "search" / "search_index.js").read_text() == f"var __index = {text}"
