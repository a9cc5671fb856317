"""Paths and contents: what is safe to pass on."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from refinery.pipelines.acquire.git_objects import Entry, parse_tree
from refinery.pipelines.acquire.take import TOO_LONG, take_tree
from refinery.pipelines.acquire.tree_files import MAX_PATH, REASONS, Counts, Deadline, Found, check_path, text_of

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


class DrawnTree:
    """A tree of what a test gives it."""

    def __init__(self, files: Sequence[tuple[bytes, str, bytes]]) -> None:
        self.files = files

    def entries(self) -> Iterator[Found]:
        return (Found(path, kind, len(data), data) for path, kind, data in self.files)

    def read(self, places: Sequence[Any]) -> Iterator[bytes]:
        return iter(places)


RAW = st.one_of(
    st.binary(max_size=8), st.lists(PARTS, max_size=4).map(b"/".join), st.sampled_from([b"a", b"A", b"b/c"])
)
DATA = st.sampled_from([b"x\n", b"", b" ", b"\0", b"\xff", b"long" * 20, b"SPDX-License-Identifier: MIT\n"])


@given(st.lists(st.tuples(RAW, st.sampled_from(["", "", "", "symlink", "submodule"]), DATA)))
def test_any_tree_is_taken_or_counted_in_order_of_paths(files: list[tuple[bytes, str, bytes]]) -> None:
    found: list[dict[str, Any]] = []
    counts = take_tree(DrawnTree(files), "org/x", "c" * 40, 50, found.append, Deadline(60)).plain()
    paths = [record["path"] for record in found]
    assert counts["entries"] == len(files)
    assert counts["taken"] == {"files": len(found), "bytes": sum(len(record["content"]) for record in found)}
    assert set(counts["skipped"]) <= set(REASONS)
    assert paths == sorted(set(paths), key=str.encode)
    assert all(check_path(path.encode()) == (path, "") for path in paths)
    assert all((record["repo"], record["commit"]) == ("org/x", "c" * 40) for record in found)


NAME = st.binary(min_size=1, max_size=20).filter(lambda name: b"\0" not in name)
ID = st.binary(min_size=20, max_size=20).map(bytes.hex)


@given(st.lists(st.builds(Entry, st.sampled_from([0o100644, 0o120000, 0o40000, 0o160000, 7]), NAME, ID)))
def test_tree_objects_are_read_back(entries: list[Entry]) -> None:
    data = b"".join(b"%o %s\0" % (mode, name) + bytes.fromhex(id_) for mode, name, id_ in entries)
    assert list(parse_tree(data, 40)) == entries


def test_an_endless_licence_is_one_that_nobody_allows() -> None:
    words = b" OR ".join(b"MIT" for _ in range(100))
    names = (b"LICENSE", b"COPYING", b"COPYRIGHT")
    files = [(name, "", b"SPDX-License-Identifier: %s OR X-%s\n" % (words, name)) for name in names]
    found: list[dict[str, Any]] = []
    take_tree(DrawnTree(files), "x", "c" * 40, 9000, found.append, Deadline(60))
    assert {record["repo_license"] for record in found} == {TOO_LONG}
