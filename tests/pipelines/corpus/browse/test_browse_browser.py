"""`refinery browse` in a real headless Chromium: every page by keyboard, hostile documents, phone, light and dark.

No page may write to the console, raise an error, break its policy, or ask another host for anything.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.chromium import faint_texts
from tests.pipelines.corpus.browse import hostile as h
from tests.pipelines.corpus.browse.server import served

PATHS = ("a/", "a/search", "a/documents?in=kept", "a/documents?in=dropped", "a/clusters", "a/hosts", "a/thresholds")
LINE = 80  # pixels by which controls of one line differ: a box for notes is taller than others
THRESHOLD = "a/threshold?stage=heuristics&reason=gopher-too-few-words&key=gopher.min_words"


@pytest.fixture(scope="module")
def address(browser: Any, runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the session was opened, and the state of the browser that opened it: both runs, one is looked at."""
    judged = tmp_path_factory.mktemp("judged") / "j.jsonl"
    with served(runs / "first", runs / "second", "--judgements", judged) as printed:
        yield printed


@pytest.fixture(scope="module")
def state(browser: Any, address: str) -> tuple[str, Any]:
    """The base of all pages, and the cookie that the one-time token was exchanged for."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(address)
    assert "token" not in page.url and page.title().endswith("Refinery")
    base = page.url.rstrip("/").rpartition("/")[0]
    assert page.evaluate("document.cookie") == ""  # scripts do not see it
    stored = context.storage_state()
    context.close()
    return base, stored


@pytest.fixture
def visit(browser: Any, state: tuple[str, Any]) -> Iterator[Any]:
    """Opens pages of the session; at the end none may have said or asked for anything."""
    base, stored = state
    contexts, said = [], list[str]()

    def open_path(path: str, **options: Any) -> Any:
        context = browser.new_context(storage_state=stored, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda r: None if r.url.startswith(f"{base}/") else said.append(r.url))
        page.on("response", lambda r: None if r.status < 400 else said.append(f"{r.status} {r.url}"))
        page.goto(f"{base}/{path}")
        return page

    yield open_path
    for context in contexts:
        context.close()
    assert said == []


def document(url: str) -> str:
    return f"a/document?{urlencode({'url': url})}"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_can_be_read(visit: Any, tmp_path: Path, scheme: str, width: int) -> None:
    documents = map(document, (h.KEPT, h.NEAR, h.TURNED))
    paths = [*PATHS, f"{THRESHOLD}&to={h.STRICT}", *documents, "differences"]
    page = visit(paths[0], viewport={"width": width, "height": 844}, color_scheme=scheme)
    base = page.url.removesuffix("a/")
    for number, path in enumerate([*paths, "judgements"]):
        page.goto(f"{base}{path}")
        for details in page.query_selector_all("details"):
            details.evaluate("e => { e.open = true; }")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert faint_texts(page) == [], path
        page.screenshot(path=str(tmp_path / f"{number:02}-{scheme}-{width}.png"), full_page=True)


def test_landmarks_labels_and_headings(visit: Any) -> None:
    for path in (*PATHS, THRESHOLD, document(h.KEPT), "judgements", "differences"):
        page = visit(path)
        for landmark in ("main", "header", "nav[aria-label=Pages]", "form[role=search]"):
            assert page.locator(landmark).count() == 1, (path, landmark)
        unnamed = """all => all.filter(e => e.type !== "hidden" && !e.labels.length && !e.ariaLabel).map(e => e.name)"""
        assert page.eval_on_selector_all("input, select, textarea", unnamed) == [], path
        levels = page.eval_on_selector_all("h1, h2, h3", "all => all.map(e => Number(e.tagName[1]))")
        assert levels[0] == 1 and all(b <= a + 1 for a, b in pairwise(levels)), path
        assert page.eval_on_selector_all("th:not([scope])", "all => all.length") == 0
        assert page.evaluate("document.documentElement.lang") == "en"


def test_by_keyboard_from_the_overview_to_a_judgement(visit: Any) -> None:
    page = visit("a/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    assert page.evaluate("document.activeElement.getBoundingClientRect().left >= 0")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "find"
    page.keyboard.type(h.SHORT)
    page.keyboard.press("Enter")
    page.wait_for_url("**/a/search?**")
    page.get_by_role("link", name=h.SHORT).focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/a/document?**")
    assert "gopher-too-few-words" in page.inner_text("main")
    page.locator("#note").focus()
    page.keyboard.type("a/b: a slash is a letter here")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # a form sends `Origin: null` under no-referrer
    page.wait_for_url("**/judgements")
    assert "a/b: a slash is a letter here" in page.inner_text("main")
    with page.expect_download() as download:
        page.get_by_role("link", name="Export as JSONL").click()
    assert h.SHORT in Path(download.value.path()).read_text()


def test_what_has_focus_is_seen_and_in_order(visit: Any) -> None:
    page = visit(document(h.NEAR))
    tops = []
    for _ in range(25):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement === document.body || document.activeElement.checkVisibility()")
        tops.append(page.evaluate("document.activeElement.getBoundingClientRect().top + scrollY"))
    assert all(later >= top - LINE for top, later in pairwise(tops))


def test_the_slider_moves_the_threshold(visit: Any) -> None:
    page = visit(f"{THRESHOLD}&to={h.LOOSE}")
    assert "0 of" in page.inner_text("#result")
    page.locator("#slider").focus()
    page.keyboard.press("End")
    page.wait_for_url("**to=60*")
    assert "would be dropped" in page.inner_text("#result") and page.input_value("#to") == "60"


def test_hostile_documents_run_nothing(visit: Any) -> None:
    for url in (h.TURNED, h.SHORT, "javascript:alert(4)"):
        page = visit(document(url))
        assert page.evaluate("document.querySelectorAll('img, iframe, main script').length") == 0
        assert url in page.inner_text("main")
        assert page.evaluate("[...document.links].every(e => e.origin === location.origin)")
    assert "\u202e" not in page.content()


def test_the_policy_stops_what_markup_would_do(browser: Any, state: tuple[str, Any]) -> None:
    """Were markup to get into a page, it would neither run nor be loaded from elsewhere."""
    base, stored = state
    context = browser.new_context(storage_state=stored)
    page = context.new_page()
    answered: list[str] = []
    page.on("response", lambda response: answered.append(response.url))
    page.goto(f"{base}/a/")
    refused = """() => new Promise(done => {
        const seen = [];
        document.addEventListener("securitypolicyviolation", e => {
            seen.push(e.effectiveDirective);
            if (seen.length === 4) done(seen.sort());
        });
        for (const [tag, name, value] of [
            ["img", "src", "https://evil.example/x.png"],
            ["iframe", "src", "https://evil.example/"],
            ["p", "style", "color: red"],
        ]) {
            const made = document.createElement(tag);
            made.setAttribute(name, value);
            document.body.append(made);
        }
        try { document.body.insertAdjacentHTML("beforeend", "<b>markup</b>"); } catch { /* it is refused, too */ }
    })"""
    expected = ["frame-src", "img-src", "require-trusted-types-for", "style-src-attr"]
    assert page.evaluate(refused) == expected
    assert [url for url in answered if not url.startswith(base)] == []
    context.close()


def test_without_the_cookie_there_is_nothing(browser: Any, state: tuple[str, Any], address: str) -> None:
    base, _ = state
    context = browser.new_context()
    page = context.new_page()
    assert page.goto(f"{base}/a/").status == 403
    assert page.goto(address).status == 403  # the token was used
    context.close()


def test_it_works_without_scripts(visit: Any) -> None:
    page = visit(THRESHOLD, java_script_enabled=False)
    assert not page.locator("#slider").is_visible()
    page.fill("#to", str(h.STRICT))
    page.get_by_role("button", name="Judge the sample").click()
    page.wait_for_url(f"**to={h.STRICT}*")
    assert "1 of" in page.inner_text("#result")
