"""The report in a real headless Chromium without a network: charts, search, phone, light and dark, nothing hostile.

How pages are opened: tests/chromium.py.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from refinery.pipelines.reports.run.report_page import report_page
from refinery.pipelines.reports.run.samples import KeptText, Reject, Rejects
from tests.chromium import faint_texts
from tests.pipelines.reports.run.made_facts import HOSTILE, hostile_facts, made_facts, made_statistics

REJECTS = Rejects(
    {
        ("language", "language-not-allowed"): [Reject("crawl", "https://a.example/x", "a@1", "Der Apfel fällt", "")],
        ("toxicity", "toxic-density"): [Reject("crawl", "https://b.example/y", "a@2", "words of another kind", "")],
    },
    {("language", "language-not-allowed"): 480, ("toxicity", "toxic-density"): 1},
    1,
    1,
)
KEPT = [KeptText("crawl", "https://c.example/z", 900, 2, "An apple falls far from its tree.", {"language": "en"})]


def whole() -> str:
    return report_page(made_facts(statistics=made_statistics(), rejects=REJECTS, kept=KEPT))


TABS = ["overview", "lost", "documents", "content", "numbers", "run-facts"]
LONG = "x" * 10_000


def go(page: Any, tab: str) -> None:
    """Open a tab by its address."""
    page.evaluate("tab => { location.hash = tab; }", tab)
    page.wait_for_function("tab => document.getElementById(tab).checkVisibility()", arg=tab)


def painted(page: Any) -> list[bool]:
    """Of each canvas that is shown, whether anything was drawn."""
    script = """all => all.filter(e => e.checkVisibility()).map(e => {
        const d = e.getContext("2d").getImageData(0, 0, e.width, e.height).data;
        for (let i = 3; i < d.length; i += 4) if (d[i]) return true; return false; })"""
    return list(page.eval_on_selector_all("canvas", script))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_it_can_be_read(open_page: Any, tmp_path: Path, scheme: str, width: int) -> None:
    page = open_page(whole(), viewport={"width": width, "height": 800}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    drawn = []
    for tab in TABS:
        go(page, tab)
        page.screenshot(path=str(tmp_path / f"{scheme}-{width}-{tab}.png"), full_page=True)
        assert faint_texts(page) == []
        drawn += painted(page)
        assert width < 1000 or page.evaluate("document.documentElement.scrollHeight") <= 6000
    assert len(drawn) >= 4 and all(drawn)
    for details in page.query_selector_all("details"):
        details.evaluate("e => { e.open = true; }")
    for tab in TABS:
        go(page, tab)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert cut_cells(page) == []
        assert faint_texts(page) == []


def cut_cells(page: Any) -> list[str]:
    """Cells of tables on a phone of which a part is outside the window."""
    script = """all => all.filter(e => e.checkVisibility() && innerWidth < 500
        && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.textContent)"""
    return list(page.eval_on_selector_all("td, tbody th", script))


def test_tabs_are_operated_by_keys_and_addresses(open_page: Any) -> None:
    page = open_page(whole())
    assert page.get_attribute(".tabs", "role") == "tablist"
    page.focus("[role=tab][aria-selected=true]")
    for key, tab in (
        ("ArrowRight", "lost"),
        ("End", "run-facts"),
        ("ArrowRight", "overview"),
        ("ArrowLeft", "run-facts"),
    ):
        page.keyboard.press(key)
        page.wait_for_function("tab => document.getElementById(tab).checkVisibility()", arg=tab)
        assert page.get_attribute("[aria-selected=true]", "data-panel") == tab
        assert page.evaluate("document.activeElement.dataset.panel") == tab
        shown = page.eval_on_selector_all(
            "[role=tabpanel]", "all => all.filter(e => e.checkVisibility()).map(e => e.id)"
        )
        assert shown == [tab]
    page.evaluate("location.hash = 'hosts'")
    page.wait_for_function("document.getElementById('hosts').checkVisibility()")
    assert page.get_attribute("[aria-selected=true]", "data-panel") == "content"
    page.evaluate("location.hash = '%E0%A4%A'")  # no anchor, and no address either
    assert page.get_attribute("[aria-selected=true]", "data-panel") == "content"


def test_charts_take_the_colours_of_the_scheme(open_page: Any) -> None:
    page = open_page(whole(), color_scheme="light")
    go(page, "lost")
    light = page.evaluate("document.querySelector('canvas').toDataURL()")
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("before => document.querySelector('canvas').toDataURL() !== before", arg=light)
    assert all(painted(page))


def test_the_keyboard_finds_documents(open_page: Any) -> None:
    page = open_page(whole())
    page.keyboard.press("/")
    page.wait_for_function("document.activeElement.id === 'filter'")  # its panel is shown first
    page.keyboard.type("apple tree")
    assert page.inner_text("#matches") == "1 of 3"
    assert [e.is_visible() for e in page.query_selector_all(".sample")] == [False, False, True]
    page.keyboard.press("Escape")
    assert page.inner_text("#matches") == ""
    page.keyboard.type("TOXIC-density")  # the name of a reason
    assert [e.is_visible() for e in page.query_selector_all(".sample")] == [False, True, False]
    page.fill("#filter", "nothing like it")
    assert page.inner_text("#matches") == "0 of 3"
    for _ in range(40):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement === document.body || document.activeElement.checkVisibility()")


def test_links_open_the_examples_of_a_reason(open_page: Any) -> None:
    page = open_page(whole())
    assert not page.evaluate("document.getElementById('sample-1').open")
    go(page, "lost")
    page.click("a[href='#sample-1']")
    page.wait_for_function("document.getElementById('sample-1').open")
    assert page.query_selector("#sample-1 .sample").is_visible()


def test_the_bands_show_documents_or_text(open_page: Any) -> None:
    page = open_page(whole())
    assert page.is_visible("svg.band.documents") and not page.is_visible("svg.band.text >> nth=0")
    page.check("input[value=text]")
    assert not page.is_visible("svg.band.documents >> nth=0") and page.is_visible("svg.band.text >> nth=0")


def test_on_paper_it_is_light(open_page: Any) -> None:
    page = open_page(whole(), color_scheme="dark")
    dark = page.eval_on_selector("main", "e => getComputedStyle(e).color")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert all(page.is_visible(f"#{tab}") for tab in TABS)
    assert page.eval_on_selector("main", "e => getComputedStyle(e).color") != dark
    assert all(painted(page))
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.eval_on_selector("main", "e => getComputedStyle(e).color") == dark


def test_without_scripts_everything_is_there_but_the_charts(open_page: Any) -> None:
    page = open_page(whole(), java_script_enabled=False)
    assert page.is_visible("table.funnel") and page.is_visible(".sample >> nth=0")
    assert all(page.is_visible(f"#{tab}") for tab in TABS)
    assert not page.is_visible("canvas >> nth=0") and not page.is_visible("#filter")


def test_hostile_names_and_texts_do_nothing(open_page: Any) -> None:
    facts = hostile_facts()
    (key,), right = facts.rejects.samples, "\u05d0\u202e"
    worst = [
        Reject(LONG, LONG, LONG, f"{LONG} {right}{HOSTILE}", LONG, ((LONG, LONG, 0.5), (HOSTILE, 1.0, None)), 7),
        *facts.rejects.samples[key],
    ]
    page = open_page(report_page(replace(facts, rejects=replace(facts.rejects, samples={key: worst}))))
    assert page.query_selector_all("img, script[src], a[href^='javascript']") == []
    assert all(painted(page))
    for details in page.query_selector_all("details"):
        details.evaluate("e => { e.open = true; }")
    assert HOSTILE.split("\u202e")[0] in page.text_content("main")
    for width in (1280, 360):
        page.set_viewport_size({"width": width, "height": 800})
        for tab in page.eval_on_selector_all(".tabs a", "all => all.map(e => e.dataset.panel)"):
            go(page, tab)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert cut_cells(page) == []


def test_a_chart_not_yet_redrawn_widens_nothing(open_page: Any) -> None:
    """A canvas keeps its width until the library has seen that the window is smaller."""
    page = open_page(whole())
    page.set_viewport_size({"width": 360, "height": 800})
    go(page, "lost")
    page.eval_on_selector_all("canvas", "all => all.forEach(e => { e.style.width = '1183px'; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_no_other_script_can_run(open_page: Any) -> None:
    """The policy holds even if markup got in."""
    html = whole().replace("<main>", "<main><b id=b onclick=\"document.title='run'\">x</b>")
    page = open_page(html.replace("<main>", "<main><script>document.title = 'run'</script>"))
    page.click("#b")
    assert page.title() == "made: report"
    assert [text for text in open_page.said if "Content Security Policy" not in text] == []
    open_page.said.clear()
