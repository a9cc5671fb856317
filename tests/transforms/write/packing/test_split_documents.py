"""Documents cut to fit rows: every token in one piece, no piece longer than a row, borders before blind cuts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.write.packing.split_documents import split_documents


@st.composite
def documents(draw: st.DrawFn) -> tuple[list[int], int, dict[int, list[int]]]:
    lengths = draw(st.lists(st.integers(1, 200), max_size=20))
    borders = {
        i: sorted(draw(st.sets(st.integers(1, length), max_size=8)))
        for i, length in enumerate(lengths)
        if draw(st.booleans())
    }
    return lengths, draw(st.integers(2, 40)), borders


@given(documents())
def test_whole(made: tuple[list[int], int, dict[int, list[int]]]) -> None:
    lengths, capacity, borders = made
    pieces = split_documents(lengths, capacity, borders)
    found: dict[int, list[tuple[int, int]]] = {}
    for document, start, stop in zip(*(array.tolist() for array in pieces), strict=True):
        found.setdefault(document, []).append((start, stop))
    assert list(found) == list(range(len(lengths)))
    for document, parts in found.items():
        assert [start for start, _ in parts] == [0, *(stop for _, stop in parts[:-1])]
        assert parts[-1][1] == lengths[document]
        assert len(parts) == 1 or lengths[document] > capacity
        for start, stop in parts[:-1]:
            full = stop - start + (start > 0) == capacity
            inside = [b for b in borders.get(document, []) if start < b <= start + capacity - (start > 0)]
            assert (stop == inside[-1]) if inside else full
    assert ((pieces.lengths >= 1) & (pieces.lengths <= capacity)).all()


def test_known() -> None:
    """A cut without borders, one at borders, and a document that fits keeps its borders uncut."""
    pieces = split_documents([10, 10, 4], 4, {1: [3, 5, 6], 2: [1]})
    assert pieces.documents.tolist() == [0, 0, 0, 1, 1, 1, 1, 2]
    assert pieces.starts.tolist() == [0, 4, 7, 0, 3, 6, 9, 0]
    assert pieces.stops.tolist() == [4, 7, 10, 3, 6, 9, 10, 4]
    assert pieces.lengths.tolist() == [4, 4, 4, 3, 4, 4, 2, 4]


@pytest.mark.parametrize(
    ("lengths", "capacity", "borders", "message"),
    [
        ([3], 1, None, "capacity: 1 given, 2 or more"),
        ([3, 0], 4, None, "document 1 has 0 tokens"),
        ([9], 4, {0: [3, 3]}, "borders: they must ascend"),
        ([9], 4, {0: [0]}, "borders: they must ascend"),
        ([9], 4, {0: [10]}, "from 1 to 9"),
    ],
)
def test_wrong(lengths: list[int], capacity: int, borders: dict[int, list[int]] | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        split_documents(lengths, capacity, borders)
