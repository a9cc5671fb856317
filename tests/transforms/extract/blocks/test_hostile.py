"""Pages made to hurt cost linear time: ten times the page, not a hundred times the steps."""

import pytest

from refinery.transforms.extract.blocks.extract_blocks import extract_blocks
from refinery.transforms.extract.blocks.model import load_model
from tests.growth import is_linear
from tests.sampling import one_commit_in_four, sampled

SHAPES = {
    "flat p": "<p>x",
    "empty p": "<p>",
    "br": "<br>",
    "words and br": "x<br>",
    "newlines": "\n",
    "nested div": "<div>",
    "nested span": "<span>",
    "nested unknown": "<x-y>x",
    "nested tables": "<table><tr><td>x",
    "cells": "<td>x",
    "rows": "<tr><td>x",
    "links": "<a href=x>y",
    "options": "<option>x",
    "lists": "<ul><li>x",
    "items": "<li>x",
    "misnested": "<b><i><div>",
    "adoption": "<a><b></a>",
    "end tags": "</div>",
    "ends of paragraphs": "x</p>",
    "comments": "<!--a-->x",
    "unclosed comments": "<p>x<!--",
    "less-than": "<",
    "ampersands": "&",
    "long references": "&CounterClockwiseContourIntegral;",
    "no references": "&abcdefghijklmnopqrstuvwxyzabcdefg",
    "formulas": "<math>",
    "formulas that tables close": "<table><tr><td><math></table>",
    "scripts": "<script></",
    "iframes": "<iframe>x",
    "iframes of noscript": "<noscript><iframe>x</noscript>",
    "svg": "<svg><p>",
    "titles": "<title>x</title>",
    "headings": "<h1>x",
    "terms": "<dt>x<dd>y",
    "attributes": "<p a=b c=d>x",
    "open quotes": '<a href="',
    "fences": "<object><b></object></div>",
    "joiners": "a\u200d",
    "components": "x<x-y>y</x-y>",
    "components in each other": "<x-y>x<!-- -->",
    "hidden from ears": "<b aria-hidden=true>x</b>",
    "hidden from ears, nested": "<b aria-hidden=true>x<i>",
    "styles": '<i style="display:/*;(',
    "short codes": '[a b="',
    "short codes that end": '[a b="]',
    "brackets": "[/a",
    "anchors": "<h2><a href=#>#",
    "indentation": "x<br>&nbsp;",
}


@one_commit_in_four
@pytest.mark.parametrize("name", sampled("shapes of hostile pages", sorted(SHAPES), 8))
@pytest.mark.parametrize("around", ["{}", "<pre>{}", "<table>{}</math>"])
def test_ten_times_the_page_is_no_hundred_times_the_work(name: str, around: str) -> None:
    def extract(times: int) -> None:
        html = around.format(SHAPES[name] * times)
        extract_blocks(html, "", load_model(None), "text", True, 1_000_000)

    assert is_linear(extract, 4_000, slack=0.05)
