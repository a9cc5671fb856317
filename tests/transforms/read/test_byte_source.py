import gzip
import io
import random
import struct
import zlib
from collections.abc import Callable

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.transforms.read.byte_source import BLOCK, ByteSource, MemberStream
from tests.sampling import examples, one_commit_in_four
from tests.transforms.read_fixtures import COMPRESSORS

PARTS = st.lists(st.one_of(st.binary(max_size=300), st.integers(0, 400_000).map(bytes)), min_size=1, max_size=5)


def drain(data: bytes, name: str = "x") -> tuple[bytes, list[tuple[int, int]], str]:
    """Everything inside `data`, the members' starts, and why reading stopped."""
    stream = MemberStream(ByteSource(io.BytesIO(data), name))
    pieces = []
    while piece := stream.read():
        pieces.append(piece)
    return b"".join(pieces), list(stream.marks), stream.broken


@pytest.mark.parametrize("compress", [COMPRESSORS[ending] for ending in (".gz", ".zst", ".lz4")])
@settings(max_examples=examples(40), deadline=None)
@given(parts=PARTS)
def test_members_are_read_in_order_with_their_places(compress: Callable[[bytes], bytes], parts: list[bytes]) -> None:
    members = [compress(part) for part in parts]
    data, marks, broken = drain(b"".join(members), "x.gz")
    expected = {}
    for at in range(len(parts)):
        expected[sum(map(len, parts[:at]))] = sum(map(len, members[:at]))  # of empty members the last one counts
    assert (data, marks, broken) == (b"".join(parts), list(expected.items()), "")


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.binary(max_size=2000), min_size=1, max_size=6), st.integers(0, BLOCK))
def test_members_across_blocks(parts: list[bytes], shift: int) -> None:
    """A member may begin anywhere in a block, its header and its checksum split by the block's end included."""
    noise = random.Random(shift).randbytes(BLOCK - 900 + shift % 900)
    data = b"".join(gzip.compress(part) for part in [noise, *parts])
    assert drain(data)[::2] == (noise + b"".join(parts), "")


@pytest.mark.parametrize("ending", [".gz", ".zst", ".lz4"])
def test_padding_and_garbage_behind_the_last_member(ending: str) -> None:
    data = COMPRESSORS[ending](b"text")
    assert drain(data + bytes(100_000))[::2] == (b"text", "")
    text, _, broken = drain(data + b"garbage")
    assert text == b"text" and broken.startswith("Bad")


def test_gzip_header_with_every_optional_field() -> None:
    header = b"\x1f\x8b\x08\x1e" + bytes(6) + struct.pack("<H", 4) + b"slxx" + b"name\0comment\0"
    header += struct.pack("<H", zlib.crc32(header) & 0xFFFF)
    coder = zlib.compressobj(wbits=-15)
    member = header + coder.compress(b"text") + coder.flush() + struct.pack("<II", zlib.crc32(b"text"), 4)
    assert drain(member * 3)[::2] == (b"text" * 3, "")


def test_skippable_zstandard_frames_are_passed() -> None:
    frame = zstandard.compress(b"text")
    skippable = b"\x51\x2a\x4d\x18" + struct.pack("<I", 5) + b"hello"
    assert drain(skippable + frame + skippable * 2 + frame + skippable) == (
        b"texttext",
        [(0, 13), (4, 39 + len(frame))],
        "",
    )
    assert drain(frame + skippable[:6])[2] == "Truncated"


@one_commit_in_four
def test_a_zstandard_bomb_is_inflated_in_pieces() -> None:
    coder = zstandard.ZstdCompressor(level=19)
    stream = MemberStream(ByteSource(io.BytesIO(coder.compress(bytes(300_000_000))), ""))
    assert max(len(piece) for piece in iter(stream.read, b"")) <= 64 << 20
    assert stream.total == 300_000_000


@pytest.mark.parametrize("ending", [".gz", ".zst", ".lz4"])
def test_recovery_finds_the_next_member(ending: str) -> None:
    texts = [b"WANTED %d " % at + bytes(range(200)) for at in range(3)]
    members = [COMPRESSORS[ending](text) for text in texts]
    broken = members[1][: len(members[1]) // 2]
    stream = MemberStream(ByteSource(io.BytesIO(members[0] + broken + members[2]), ""))
    first = b"".join(iter(stream.read, b""))
    assert stream.broken and first.startswith(texts[0])
    assert stream.recover(lambda head: head.startswith(b"WANTED"))
    assert b"".join(iter(stream.read, b"")) == texts[2]
    assert stream.marks[-1][1] == len(members[0] + broken)
    assert not stream.recover(lambda head: True)  # nothing is broken any more


def test_find_sees_across_blocks() -> None:
    for at in range(BLOCK - 3, BLOCK + 2):
        source = ByteSource(io.BytesIO(bytes(at) + b"abc" + bytes(9)), "")
        assert (source.find(b"abc", 0), source.find(b"abc", at), source.find(b"abc", at + 1)) == (at, at, -1)
