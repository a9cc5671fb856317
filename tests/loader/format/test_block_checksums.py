import base64
import io
from pathlib import Path

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.loader.errors import FormatError
from refinery.loader.format.block_checksums import (
    CHECKSUM_BLOCK,
    BlockHasher,
    block_checksums,
    block_values,
    combine,
    combine_blocks,
    parse_blocks,
)


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_combine(a: bytes, b: bytes) -> None:
    """google_crc32c on the joined bytes is the oracle."""
    assert combine(google_crc32c.value(a), google_crc32c.value(b), len(b)) == google_crc32c.value(a + b)


@pytest.mark.parametrize("length", [0, 1, 255, 4096, CHECKSUM_BLOCK - 1, CHECKSUM_BLOCK, 3 * CHECKSUM_BLOCK + 7])
def test_combine_with_long_parts(length: int) -> None:
    zeros, head = bytes(length), b"head"
    assert combine(google_crc32c.value(head), google_crc32c.value(zeros), length) == google_crc32c.value(head + zeros)


@given(st.binary(max_size=300), st.integers(1, 50))
def test_combine_blocks(data: bytes, block: int) -> None:
    values = [google_crc32c.value(data[i : i + block]) for i in range(0, len(data), block)]
    assert combine_blocks(values, len(data), block) == google_crc32c.value(data)
    with pytest.raises(ValueError):
        combine_blocks([*values, 0], len(data), block)


def trickle(data: bytes) -> io.BytesIO:
    """A stream that gives less than asked for, as sockets do."""

    class Trickle(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(min(size or 0, 300_001))

    return Trickle(data)


@pytest.mark.parametrize(
    "size", [0, 1, CHECKSUM_BLOCK - 1, CHECKSUM_BLOCK, CHECKSUM_BLOCK + 1, 2 * CHECKSUM_BLOCK + 12345]
)
def test_round_trip(size: int, tmp_path: Path) -> None:
    data = bytes(range(251)) * (size // 251 + 1)
    data = data[:size]
    (tmp_path / "x").write_bytes(data)
    text = block_checksums(data)
    assert text == block_checksums(tmp_path / "x") == block_checksums(trickle(data))
    expected = tuple(google_crc32c.value(data[i : i + CHECKSUM_BLOCK]) for i in range(0, size, CHECKSUM_BLOCK))
    assert tuple(block_values(data)) == expected
    assert parse_blocks(text, size, f"{google_crc32c.value(data):08x}", "x.bin") == expected


@pytest.mark.parametrize("size", [997, 100_003, CHECKSUM_BLOCK, 5 * CHECKSUM_BLOCK])
def test_pieces_of_any_size(size: int) -> None:
    data = bytes(range(253)) * 12_000
    hasher = BlockHasher()
    for start in range(0, len(data), size):
        hasher.update(data[start : start + size])
        hasher.update(b"")
    assert hasher.result() == block_checksums(data)


def test_golden() -> None:
    """Base64 of big-endian CRC-32C: of 32 bytes of zeros, 8a9136aa (RFC 3720, appendix B.4)."""
    assert block_checksums(bytes(32)) == "ipE2qg==" == base64.b64encode(bytes.fromhex("8a9136aa")).decode()
    assert block_checksums(b"") == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ipE2qg=", "not base64"),
        ("ipE2 qg==", "not base64"),
        ("ipE2", "3 bytes of block_crc32c found, 4 expected for 32 bytes"),
        ("ipE2qopRNqo=", "8 bytes of block_crc32c found, 4 expected for 32 bytes"),
        ("ipE2qw==", "combine to crc32c 8a9136ab, 8a9136aa expected"),
        ("é", "not base64"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(FormatError, match=f"x.bin: .*{message}"):
        parse_blocks(text, 32, "8a9136aa", "x.bin")
