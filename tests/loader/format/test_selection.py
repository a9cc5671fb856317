"""selection.bin: golden bytes, any runs, and what damage and forgery lead to."""

import hashlib
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import FileEntry, ShardEntry
from refinery.loader.format.selection import SEGMENT, Selection, pack_runs
from refinery.loader.format.view import parse_view, relative, resolve
from refinery.pipelines.corpus.mix.candidates import CANDIDATE
from refinery.pipelines.corpus.mix.selecting import SelectionWriter, runs_of

FILE = FileEntry("x", 0, "0" * 8, "0" * 64)


def shard(documents: int, tokens: int) -> ShardEntry:
    return ShardEntry("train", "web", 0, 1, documents, tokens, (FILE, FILE), None)


def write(folder: Path, lengths: list[int], times: list[int]) -> bytes:
    """The selection of one shard."""
    some = np.zeros(len(lengths), CANDIDATE)
    some["document"], some["tokens"] = np.arange(len(lengths)), lengths
    some["start"] = np.cumsum(lengths) - lengths
    with SelectionWriter(folder / "spill") as writer:
        writer.chosen(0, 0, 0, 0, shard(len(lengths), sum(lengths)), some, np.array(times))
        writer.finish(folder / "selection.bin")
    return (folder / "selection.bin").read_bytes()


def read(data: bytes) -> Selection:
    return Selection(np.frombuffer(data, np.uint8), "selection.bin")


def documents(selection: Selection, lengths: list[int]) -> list[int]:
    """How often each document is there."""
    starts = np.cumsum(lengths) - lengths
    found = np.zeros(len(lengths), int)
    for i, segment in enumerate(selection.segments):
        if not segment["runs"]:
            found += 1
        for begins, sizes in selection.runs_of(i):
            for begin, size in zip(begins.tolist(), sizes.tolist(), strict=True):
                found += (starts >= begin) & (starts < begin + size)
    return found.tolist()


def test_golden_bytes(tmp_path: Path) -> None:
    """Two turns of five documents: 2, 2, 0, 1 and 2 times."""
    data = write(tmp_path, [3, 5, 4, 2, 9], [2, 2, 0, 1, 2])
    turns = struct.pack("<HHIIIQQQ", 0, 0, 1, 0, 0, 2, 4, 19) + struct.pack("<HHIIIQQQ", 0, 0, 2, 0, 0, 2, 3, 17)
    blocks = struct.pack("<6q", 0, 19, 0, 0, 0 << 16 | 3 << 8 | 4, 2 << 16 | 3 << 8 | 4)
    runs = bytes([8 | 11 << 4, 4, 8 | 9 << 4, 6])  # lengths of 4 bits, then the gap
    expected = struct.pack("<8sIIQQQ24x", b"RFSELECT", 1, 64, 2, 2, 4) + turns + blocks + runs + bytes(8)
    assert data == expected
    assert hashlib.sha256(data).hexdigest()[:16] == hashlib.sha256(expected).hexdigest()[:16]


@given(
    lengths=st.lists(st.integers(1, 70_000), min_size=1, max_size=300),
    chance=st.randoms(use_true_random=False),
    most=st.integers(1, 4),
)
def test_any_choice_comes_back(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], chance: object, most: int
) -> None:
    times = [chance.randint(0, most) for _ in lengths]  # type: ignore[attr-defined]
    times[0] = max(times[0], 1)
    selection = read(write(tmp_path_factory.mktemp("runs"), lengths, times))
    assert documents(selection, lengths) == times
    assert int(selection.starts[-1]) == sum(a * b for a, b in zip(lengths, times, strict=True))


def test_runs_are_of_neighbours() -> None:
    starts, sizes = runs_of(np.array([0, 4, 9, 20]), np.array([4, 5, 1, 2]))
    assert starts.tolist() == [0, 20] and sizes.tolist() == [10, 2]
    for begins, lengths in (([0, 3], [3, 1]), ([5, 0], [1, 1]), ([0], [0]), ([-1], [1]), ([], [])):
        with pytest.raises(ValueError, match="runs:"):
            pack_runs(np.array(begins, np.int64), np.array(lengths, np.int64))


def forged(data: bytes, at: int, form: str, value: int) -> bytes:
    return data[:at] + struct.pack(form, value) + data[at + struct.calcsize(form) :]


@pytest.mark.parametrize(
    ("at", "form", "value", "said"),
    [
        (0, "<q", 1, "starts with"),
        (8, "<I", 2, "version 2"),
        (16, "<Q", 2**60, "expected for 1152921504606846976 segments"),
        (24, "<Q", 2**61, "expected for"),
        (32, "<Q", 2**62, "expected for"),
        (64 + 40 + 4, "<I", 1, "does not follow"),
        (64 + 4, "<I", 0, "turn that are less"),
        (64 + 16, "<Q", 2**63, "runs that are less than 0 or too large"),
        (64 + 16, "<Q", 65, "more runs than documents"),
        (64 + 32, "<Q", 2**63 + 5, "tokens that are less"),
        (64 + 24, "<Q", 0, "documents that are less"),
    ],
)
def test_a_forged_table(tmp_path: Path, at: int, form: str, value: int, said: str) -> None:
    data = write(tmp_path, [3, 5, 4, 2, 9], [2, 2, 0, 1, 2])
    with pytest.raises(FormatError, match=said):
        read(forged(data, at, form, value))
    with pytest.raises(FormatError, match="bytes found"):
        read(data[:-1])


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        (0, 1, "whose tokens do not add up to its segment"),
        (1, -5, "empty or adjacent"),
        (1, 2**62, "empty or adjacent"),
        (2, 2**40 << 16 | 3 << 8 | 4, "after the end"),
        (2, -1, "after the end"),
        (2, 200, "too many bits"),
        (2, 0, "empty or adjacent"),
        (2, 3 << 8 | 1, "other tokens|empty"),
    ],
)
def test_forged_blocks(tmp_path: Path, column: int, value: int, said: str) -> None:
    data = write(tmp_path, [3, 5, 4, 2, 9], [2, 2, 0, 1, 2])
    selection = read(forged(data, 64 + 2 * SEGMENT.itemsize + 16 * column, "<q", value))
    with pytest.raises(FormatError, match=said):
        list(selection.runs_of(0))


@pytest.mark.parametrize(
    ("location", "view", "found"),
    [
        ("../web", "/data/views/half", "/data/views/web"),
        ("../../web", "gs://bucket/views/half", "gs://bucket/web"),
        ("../web", "https://host/v", "https://host/web"),
        ("gs://b/web", "/v", "gs://b/web"),
    ],
)
def test_places(location: str, view: str, found: str) -> None:
    assert resolve(location, view) == found
    assert relative(found, view) == location
    with pytest.raises(FormatError, match="outside"):
        resolve("../../../x", "gs://bucket/a")


def test_not_a_view() -> None:
    with pytest.raises(FormatError, match="not a sealed"):
        parse_view(b"{}")
