"""Checksums of stretches of a file: in any order of reads, joined at any border."""

from itertools import pairwise

import google_crc32c
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.core.input_sums.crc32c import StretchSum, join
from refinery.transforms.core.input_sums.file_read import FileRead, MergeReads, sums_of


def crc32c(data: bytes) -> str:
    return f"{google_crc32c.value(data):08x}"


@given(st.binary(max_size=300), st.lists(st.tuples(st.integers(0, 300), st.integers(0, 120)), max_size=12), st.data())
def test_a_sum_counts_each_byte_once_and_ends_at_a_gap(
    data: bytes, reads: list[tuple[int, int]], chance: st.DataObject
) -> None:
    """However a reader goes back and forth: the sum of the stretch, or none if a byte of it was never next."""
    begin = chance.draw(st.integers(0, len(data)))
    end = chance.draw(st.integers(begin, len(data)))
    found, reached = StretchSum(begin, end), begin
    for offset, size in reads:
        found.add(offset, data[offset : offset + size])
        if offset <= reached:
            reached = max(reached, min(offset + size, end))
    assert found.result() == (crc32c(data[begin:end]) if reached == end else "")
    found.add(0, data)
    assert found.result() == crc32c(data[begin:end])


@given(st.binary(max_size=400), st.lists(st.integers(0, 400), max_size=5))
def test_stretches_make_the_sum_of_the_file(data: bytes, cuts: list[int]) -> None:
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    parts = [FileRead("s", "f", a, b, crc32c(data[a:b])) for a, b in pairwise(places)]
    assert sums_of(reversed(parts), len(data)) == [crc32c(data)]
    merged = MergeReads()
    for part in reversed(parts):
        merged.add_record({"kind": "reads", **part.plain()})
    assert [FileRead(**fields) for fields in merged.result()] == sorted(parts, key=lambda p: (p.begin, p.end, p.crc32c))


def test_join_of_large_stretches() -> None:
    a, b = bytes(range(256)) * 5000, b"\0" * 3_000_001
    assert join(crc32c(a), crc32c(b), len(b)) == crc32c(a + b)


def test_what_gives_no_sum_or_two() -> None:
    whole, other = FileRead("s", "f", 0, 9, "aaaaaaaa"), FileRead("s", "f", 0, 9, "bbbbbbbb")
    first, last = FileRead("s", "f", 0, 4, crc32c(b"1234")), FileRead("s", "f", 4, 9, crc32c(b"56789"))
    assert sums_of([], 9) == []
    assert sums_of([first], 9) == sums_of([last], 9) == []
    assert sums_of([whole, whole], 9) == ["aaaaaaaa"]
    assert sums_of([whole, other], 9) == ["aaaaaaaa", "bbbbbbbb"]
    assert sums_of([first, last, whole], 9) == ["aaaaaaaa", "e3069283"]
