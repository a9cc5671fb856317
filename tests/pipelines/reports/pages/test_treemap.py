"""Treemaps: areas are the numbers, nothing overlaps or sticks out, and names are text."""

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.pipelines.reports.pages import treemap as module
from refinery.pipelines.reports.pages.treemap import Cell, squarify, treemap


def test_the_examples_of_the_docstrings() -> None:
    assert doctest.testmod(module).failed == 0


@given(st.lists(st.integers(1, 10_000), max_size=40), st.integers(10, 1000), st.integers(10, 1000))
def test_areas_are_in_proportion_and_fill_the_whole(sizes: list[int], width: int, height: int) -> None:
    sizes.sort(reverse=True)
    found = squarify(sizes, width, height)
    assert len(found) == len(sizes)
    for size, each in zip(sizes, found, strict=True):
        assert each.width * each.height == pytest.approx(size * width * height / sum(sizes), rel=1e-6)
        assert min(each.x, each.y) >= -1e-6
        assert each.x + each.width <= width * (1 + 1e-6) and each.y + each.height <= height * (1 + 1e-6)
    for place, one in enumerate(found):
        for other in found[place + 1 :]:
            across = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
            down = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
            assert min(across, down) <= 1e-6 * max(width, height)


@pytest.mark.parametrize("sizes", [[0], [-1.0], [1, 2]])
def test_other_sizes_are_refused(sizes: list[float]) -> None:
    with pytest.raises(ValueError, match="descending"):
        squarify(sizes, 1, 1)


def test_names_are_text_and_cut_where_there_is_no_room() -> None:
    drawn = treemap(
        [Cell("<script>" * 200, 9, 1.0, "<b>"), Cell("small", 0.001, None, "s"), Cell("none", 0, 0.5, "")], "x"
    )
    assert "<script" not in drawn and "&lt;script&gt;" in drawn and "…" in drawn
    assert ">small<" not in drawn and "none" not in drawn and 'class="rest"' in drawn
