"""The page of a comparison as text: all is in it, nothing from outside is markup. Chromium: test_page_browser.py."""

from html.parser import HTMLParser
from pathlib import Path

import pytest

from refinery.loader.format.manifest import RUN, seal, unseal
from refinery.pipelines.corpus.compare.bars import bars
from refinery.pipelines.corpus.compare.compare import Comparison, compare
from refinery.pipelines.corpus.compare.funnels import StageRow
from refinery.pipelines.corpus.compare.page import compare_page
from tests.corpus_factory import build_corpus, counts, edit_manifest
from tests.pipelines.corpus.compare.two_runs import HOSTILE

TAGS = {"html", "head", "meta", "title", "style", "body", "header", "main", "footer", "section", "div", "h1", "h2", "p"}
TAGS |= {"table", "caption", "thead", "tbody", "tr", "th", "td", "details", "summary", "ul", "li", "b", "code"}
TAGS |= {"svg", "rect", "polyline"}


class Tags(HTMLParser):
    """Every tag with the names of its attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.names: set[str] = set()
        self.text: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def hostile(folder: Path) -> Comparison:
    """Two corpora whose every name is hostile: sources, reasons, settings, addresses, stages."""
    prefixes = [build_corpus(folder / name / HOSTILE.replace("/", "|")) for name in ("a", "b")]

    def spoil(manifest: dict[str, object]) -> None:
        row = {"stage": HOSTILE, "source": HOSTILE, "in": counts(1), "kept": counts(0), "dead": {}}
        manifest["funnel"] = [{**row, "dropped": {HOSTILE: counts(1)}, "scored": {HOSTILE: [[1.0, 1]]}}]
        manifest["recipe"] = {**dict(manifest["recipe"]), HOSTILE: HOSTILE}  # type: ignore[call-overload]
        manifest["versions"] = {HOSTILE: HOSTILE}

    edit_manifest(prefixes[0], spoil)
    run = unseal((prefixes[1] / RUN).read_bytes(), RUN)
    run["inputs"] = [{"source": HOSTILE, "path": HOSTILE, "size": 1, "digest": HOSTILE}]
    (prefixes[1] / RUN).write_bytes(seal(run))
    edit_manifest(prefixes[1])
    return compare((str(prefixes[0]), str(prefixes[1])))


def test_everything_is_on_the_page(runs: Path) -> None:
    page = Tags(compare_page(compare((str(runs / "a"), str(runs / "b")), replayed=20)))
    text = "\n".join(page.text)
    for words in (
        "68 are only in A",
        "Only in A: what became of them in B",
        "removed as a duplicate: near-duplicate (near-duplicates)",
        "failed: BadJson (read)",
        "11 of 11, chosen by hash, read again and judged",
        "dropped by heuristics: gopher-too-few-words",
        "recipe near_dup",
        "The funnel, side by side",
        "What moved most",
        "+11",
        "published: text-bytes",
    ):
        assert words in text, words
    assert "s: the same (A)" not in text  # only what differs
    assert HOSTILE.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e") in text


@pytest.mark.parametrize("kind", ["runs", "hostile"])
def test_no_markup_from_outside(runs: Path, tmp_path: Path, kind: str) -> None:
    found = hostile(tmp_path) if kind == "hostile" else compare((str(runs / "a"), str(runs / "c")))
    page = Tags(compare_page(found))
    assert page.tags <= TAGS
    assert not [name for name in page.names if name.startswith("on") or name in ("src", "href", "style", "action")]


def test_the_same_twice(runs: Path) -> None:
    pages = [compare_page(compare((str(runs / "a"), str(runs / "c")))) for _ in range(2)]
    assert pages[0] == pages[1]


def test_what_matters_most_comes_first(runs: Path) -> None:
    found = compare((str(runs / "a"), str(runs / "b")))
    page = compare_page(found)
    unlike = sorted((row for row in found.stages if row.differs), key=StageRow.effect, reverse=True)
    assert len(unlike) > 1
    table = page[page.index("The funnel, side by side") : page.index("What moved most")]
    places = [table.index(f'<th scope="row">{row.stage}</th>') for row in unlike]
    assert places == sorted(places)


def test_the_page_of_a_corpus_and_itself(runs: Path) -> None:
    page = compare_page(compare((str(runs / "b"), str(runs / "b"))))
    assert "The tokens are the same, byte for byte." in page and "All settings are the same." in page
    assert "stages have the same counts on both sides." in page and "distributions are the same." in page
    assert "Both runs read the same input files." in page
    assert "The funnel, side by side" not in page and "What differs, by source" not in page
    assert "Only in A: what" not in page


def test_bars_stay_inside() -> None:
    """Shares that do not fit, rounding included, are cut at the end."""
    assert str(bars([[("a", 0.75), ("b", 0.5)]], "x")).count('width="25.000%"') == 1
    assert 'width="0.000%"' in bars([[("a", -1.0)]], "x")
