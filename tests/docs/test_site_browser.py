"""The site in a real headless Chromium, opened as files: search, no request, no error, light and dark, phone width.

Needs the site (`make docs`), Playwright and a Chromium on the path: `make test-browser`. Skipped without them.
"""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.docs.blocks import ROOT

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: make test-browser")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SITE = ROOT / "site"
pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium on the path"),
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="the site is not built: make docs"),
]
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as library:
        chromium = library.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)], ids=["light-desktop", "dark-phone"])
def test_pages_open_as_files_and_are_found(browser: Any, scheme: str, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: said.append(request.url) if request.url.startswith("http") else None)
    page.goto((SITE / "index.html").as_uri())
    pictures = page.eval_on_selector_all("article img", "all => all.map(e => e.naturalWidth)")
    assert pictures and all(pictures)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if width < 800:
        page.click("label[for=__search]:visible")
    page.click("[data-md-component=search-query]")
    page.keyboard.type("shard rotation plateau")
    page.wait_for_selector(".md-search-result__item a")
    links = page.eval_on_selector_all(".md-search-result__item a", "all => all.map(e => e.getAttribute('href'))")
    assert any("loader.html" in link or "volunteers.html" in link for link in links)
    page.click(".md-search-result__item a >> nth=0")
    page.wait_for_selector("article h1")
    assert page.evaluate("document.body.dataset.mdColorScheme") == {"light": "default", "dark": "slate"}[scheme]
    page.close()
    assert said == []
