"""Paths and contents: what is safe to pass on."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from refinery.pipelines.acquire.tree_files import MAX_PATH, REASONS, Counts, check_path, text_of

PARTS = st.sampled_from(
    [b"", b".", b"..", b".git", b".GiT", b"a", b"a b", b"\xff", b"\xc3\xa4", b"\n", b"\0", b"\x7f", b"~"]
)


@given(st.one_of(st.binary(max_size=60), st.lists(PARTS, max_size=5).map(b"/".join)))
@example(b"")
@example(b"a/" * 3000)
def test_a_path_is_safe_or_has_a_reason(raw: bytes) -> None:
    path, reason = check_path(raw)
    assert bool(path) != bool(reason)
    if reason:
        assert reason in REASONS
        return
    assert path.encode() == raw
    assert len(raw) <= MAX_PATH
    parts = path.split("/")
    assert not {"", ".", ".."} & set(parts)
    assert ".git" not in path.lower().split("/")
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 or char in "\u2028\u2029" for char in path)


@given(st.binary(max_size=50))
@example(b"\xef\xbb\xbf")
@example(b"\xef\xbb\xbf\xef\xbb\xbfx")
def test_a_text_is_the_files_bytes_or_there_is_a_reason(data: bytes) -> None:
    text, reason = text_of(data)
    assert bool(text) != bool(reason)
    assert reason in REASONS if reason else text.encode() == data.removeprefix(b"\xef\xbb\xbf")


def test_counts_that_do_not_add_up_are_no_report() -> None:
    counts = Counts(entries=2, taken=1)
    with pytest.raises(RuntimeError, match="2 entries found, 1 taken"):
        counts.plain()
    counts.skip("binary")
    assert counts.plain()["skipped"] == {"binary": 1}
