"""The page of a comparison in Chromium: desktop, phone and dark, keyboard alone, nothing hostile runs."""

from pathlib import Path
from typing import Any

import pytest

from refinery.pipelines.corpus.compare.compare import compare
from refinery.pipelines.corpus.compare.page import compare_page
from tests.chromium import faint_texts
from tests.pipelines.corpus.compare.test_page import hostile

DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 900}}
PHONE: dict[str, Any] = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}
OPEN = "document.querySelectorAll('details').forEach(each => each.open = true)"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_on_every_screen(open_page: Any, runs: Path, screen: dict[str, Any], scheme: str) -> None:
    html = compare_page(compare((str(runs / "a"), str(runs / "b")), replayed=20))
    page = open_page(html, color_scheme=scheme, **screen)
    page.evaluate(OPEN)
    assert page.evaluate("document.documentElement.scrollWidth") <= screen["viewport"]["width"]
    assert faint_texts(page) == []
    assert len(page.screenshot(full_page=True)) > 20_000
    widths = page.eval_on_selector_all("svg.bars rect.b", "all => all.map(e => e.getBoundingClientRect().width)")
    assert widths and max(widths) > 20  # drawn, not only there
    colours = page.eval_on_selector_all("svg.bars rect", "all => all.map(e => getComputedStyle(e).fill)")
    assert len(set(colours)) == 5 and "none" not in colours


def test_the_keyboard_opens_what_is_closed(open_page: Any, runs: Path) -> None:
    page = open_page(compare_page(compare((str(runs / "a"), str(runs / "c")))), **DESKTOP)
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.tagName") == "SUMMARY":
            break
    assert page.evaluate("document.activeElement.parentElement.open") is False
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.parentElement.open") is True


def test_hostile_names_are_text(open_page: Any, tmp_path: Path) -> None:
    page = open_page(compare_page(hostile(tmp_path)), **DESKTOP)
    page.evaluate(OPEN)
    assert "<script>alert(1)</script>" in page.inner_text("main")
    assert page.eval_on_selector_all("script", "all => all.length") == 0
