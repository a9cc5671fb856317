"""Pages in a real headless Chromium, for the tests of every page. Needs Playwright and a Chromium on the path:
`make test-browser`. Skipped without them.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# No sandbox: tests may run as root. The rest keeps the browser from asking for anything on the network.
ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--no-first-run"),
)
TEXTS = "h1, h2, h3, p, dt, dd, th, td, label, small, strong, button, summary, legend, li, figcaption, caption"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: make test-browser")
    if not CHROMIUM:
        pytest.skip("no Chromium on the path")
    with playwright.sync_playwright() as library:
        chromium = library.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """Opens HTML in a context of its own, without a network; at the end no page may have said, asked or requested
    anything."""
    contexts, said = [], []

    def open_html(html: str, **options: Any) -> Any:
        path = tmp_path / "page.html"
        path.write_text(html)
        context = browser.new_context(offline=True, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        page.on("request", lambda request: said.append(request.url) if request.url != path.as_uri() else None)
        page.goto(path.as_uri())
        return page

    open_html.said = said  # type: ignore[attr-defined]
    yield open_html
    for context in contexts:
        context.close()
    assert said == []


def faint_texts(page: Any) -> list[str]:
    """The texts shown whose contrast is below 4.5 (WCAG 2.2, 1.4.3)."""
    script = """all => all.filter(e => e.textContent.trim() && e.checkVisibility()).map(e => {
        const light = (text) => { const c = text.match(/[0-9.]+/g).slice(0, 3).map(x => x / 255)
            .map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
            return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2]; };
        let back = e; while (getComputedStyle(back).backgroundColor === "rgba(0, 0, 0, 0)") back = back.parentElement;
        const pair = [light(getComputedStyle(e).color), light(getComputedStyle(back).backgroundColor)];
        return [e.textContent, (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05)]; })"""
    seen = page.eval_on_selector_all(TEXTS, script)
    assert seen
    return [text for text, contrast in seen if contrast < 4.5]
