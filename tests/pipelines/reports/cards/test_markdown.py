"""Values in Markdown are shown, never obeyed. A parser of CommonMark with tables is the judge."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from refinery.pipelines.reports.cards.collected import collections, hub_name
from refinery.pipelines.reports.cards.markdown import code, fenced, line_of, quoted, table, text, to_yaml
from tests.pipelines.reports.cards.hostile import NASTY

PARSER = MarkdownIt("commonmark").enable("table")
ACTIVE = {"html_block", "html_inline", "link_open", "image", "em_open", "strong_open", "heading_open", "hr"}


def tokens(source: str) -> Iterator[Any]:
    for token in PARSER.parse(source):
        yield token
        yield from token.children or ()


def shown(source: str) -> str:
    """The text of what is rendered."""
    return "".join(t.content for t in tokens(source) if t.type in ("text", "code_inline", "fence", "code_block"))


ANY = st.text(st.characters(codec="utf-8"), max_size=60) | st.sampled_from([NASTY, "#", "1. a", "- a", "===", "a\\"])


@given(ANY)
def test_text_is_text(value: str) -> None:
    found = list(tokens(text(value)))
    assert not {t.type for t in found} & ACTIVE
    assert not {t.type for t in found} & {"bullet_list_open", "ordered_list_open", "blockquote_open", "code_inline"}
    assert shown(text(value)) == line_of(value)


@given(ANY)
def test_code_is_code(value: str) -> None:
    found = [t for t in tokens(f"x {code(value)}") if t.type in ACTIVE or t.type == "code_inline"]
    assert [t.type for t in found] == ["code_inline"] * bool(line_of(value))


@given(ANY, ANY)
def test_a_cell_stays_in_its_cell(one: str, other: str) -> None:
    rows = [(text(one), code(other)), (code(one), text(other))]
    found = list(tokens("\n".join(table(("a", "b"), rows))))
    assert [t.type for t in found].count("td_open") == 4 and not {t.type for t in found} & ACTIVE


@given(ANY)
def test_a_fence_ends_where_it_should(value: str) -> None:
    found = PARSER.parse("\n".join([*fenced(value, "yaml"), "behind"]))
    assert [t.type for t in found] == ["fence", "paragraph_open", "inline", "paragraph_close"]


@given(ANY)
def test_quotations_stay_quotations(value: str) -> None:
    found = list(tokens("\n".join([*quoted(value), "behind"])))
    assert not {t.type for t in found} & ACTIVE
    assert found[-2].content == "behind" and [t.type for t in found].count("blockquote_open") == 1


@given(st.dictionaries(ANY, ANY | st.lists(ANY, max_size=3), max_size=4))
def test_yaml_reads_back(value: dict[str, Any]) -> None:
    written = to_yaml({line_of(name): each for name, each in value.items()})
    assert yaml.safe_load(written) == {line_of(name): each for name, each in value.items()}
    assert "\u202e" not in written and "\n---" not in written


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("hf://datasets/a/b@0123/x/y.parquet", "a/b@0123"),
        ("hf://datasets/a/b", "a/b"),
        ("hf://datasets/b@1/c", "b@1"),
        ("gs://a/b", ""),
    ],
)
def test_names_of_the_hub(path: str, name: str) -> None:
    assert hub_name(path) == name


def test_what_names_of_inputs_say() -> None:
    base = "s3://commoncrawl/crawl-data/CC-MAIN-2024-10/segments/1/warc/CC-MAIN-{}-00000.warc.gz"
    paths = [
        base.format("20240220211055-20240221001055"),
        base.format("20240303000000-20240305000000"),
        "my/file.jsonl",
    ]
    found = collections([{"source": "s", "path": path, "size": 7} for path in paths])
    crawl, other = found
    assert (crawl.kind, crawl.files, crawl.bytes, crawl.first, crawl.last) == (
        "Common Crawl",
        2,
        14,
        "2024-02",
        "2024-03",
    )
    assert "CC-MAIN-2024-10" in crawl.crawls and (other.kind, other.first, other.archives) == ("other", "", 0)
