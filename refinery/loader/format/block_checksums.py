"""CRC-32C of every MiB of a file, so a block can be verified without the rest of the file.

The manifest lists them for each .bin as one string: base64 of big-endian uint32, one per MiB, the last one for the
remainder. `combine_blocks` computes the CRC-32C of the whole file from them, so a wrong list is detected.
Cost in the manifest: 5.4 bytes per MiB of tokens.
"""

import base64
import binascii
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

import google_crc32c
import numpy as np

from refinery.loader.errors import FormatError

CHECKSUM_BLOCK = 1 << 20
_POLYNOMIAL = 0x82F63B78  # Castagnoli (RFC 3720), bits reversed: the highest bit is the coefficient of x^0
_ONE = 1 << 31


def _multiply(a: int, b: int) -> int:
    """The product of two polynomials over GF(2), modulo the Castagnoli polynomial."""
    product = 0
    while a:
        if a & _ONE:
            product ^= b
        a = a << 1 & 0xFFFFFFFF
        b = b >> 1 ^ (_POLYNOMIAL if b & 1 else 0)
    return product


@lru_cache(maxsize=1024)
def _zeros(length: int) -> int:
    """x^(8 length) modulo the polynomial: the factor for a checksum when `length` bytes are appended."""
    result, power = _ONE, 1 << 23  # x^0 and x^8
    while length:
        if length & 1:
            result = _multiply(result, power)
        power = _multiply(power, power)
        length >>= 1
    return result


def combine(first: int, second: int, length: int) -> int:
    """CRC-32C of A + B from those of A and B, and the length of B in bytes; about 5 µs.

    >>> hex(combine(google_crc32c.value(b"12345"), google_crc32c.value(b"6789"), 4))
    '0xe3069283'
    """
    return _multiply(_zeros(length), first) ^ second


@lru_cache(maxsize=4)
def _tables(length: int) -> tuple[tuple[int, ...], ...]:
    """Tables of `_multiply(_zeros(length), crc)` for each value of each byte of crc; their XOR is the product."""
    single = [_multiply(_zeros(length), 1 << bit) for bit in range(32)]
    tables = []
    for byte in range(4):
        table = [0]
        for bit in range(8):
            table += [value ^ single[8 * byte + bit] for value in table]
        tables.append(tuple(table))
    return tuple(tables)


def combine_blocks(values: Iterable[int], size: int, block: int = CHECKSUM_BLOCK) -> int:
    """CRC-32C of a file of `size` bytes from those of its blocks of `block` bytes; the last may be shorter.

    Raises ValueError for a wrong number of values. Cost: half a microsecond per block.
    """
    a, b, c, d = _tables(block)
    result = 0
    for value, start in zip(values, range(0, size, block), strict=True):
        if size - start < block:
            result = combine(result, value, size - start)
        else:
            result = a[result & 255] ^ b[result >> 8 & 255] ^ c[result >> 16 & 255] ^ d[result >> 24] ^ value
    return result


def block_values(data: bytes | bytearray) -> list[int]:
    """CRC-32C of each block of `data`."""
    view = memoryview(data)
    return [google_crc32c.value(bytes(view[i : i + CHECKSUM_BLOCK])) for i in range(0, len(view), CHECKSUM_BLOCK)]


class BlockHasher:
    """Block checksums of bytes that arrive in pieces of any size."""

    def __init__(self) -> None:
        self._values: list[int] = []
        self._current = self._filled = 0

    def update(self, data: bytes) -> None:
        position = 0
        while position < len(data):
            piece = data[position : position + CHECKSUM_BLOCK - self._filled]
            self._current = google_crc32c.extend(self._current, piece)
            self._filled += len(piece)
            position += len(piece)
            if self._filled == CHECKSUM_BLOCK:
                self._values.append(self._current)
                self._current = self._filled = 0

    def result(self) -> str:
        """The manifest's string."""
        values = [*self._values, self._current] if self._filled else self._values
        return base64.b64encode(np.array(values, ">u4").tobytes()).decode()


def block_checksums(source: bytes | Path | BinaryIO) -> str:
    """The manifest's string for bytes, a local file, or the rest of a stream. One pass; memory: 1 MiB."""
    if isinstance(source, Path):
        with source.open("rb") as stream:
            return block_checksums(stream)
    hasher = BlockHasher()
    if isinstance(source, bytes):
        hasher.update(source)
    else:
        while piece := source.read(CHECKSUM_BLOCK):
            hasher.update(piece)
    return hasher.result()


def parse_blocks(text: str, size: int, crc32c: str, what: str) -> tuple[int, ...]:
    """The checksums in the manifest's string for a file of `size` bytes with CRC-32C `crc32c` (8 hexadecimal digits).

    Raises FormatError, naming `what`, if the string is invalid, has a wrong number of entries, or does not combine to
    the file's checksum. Cost: a microsecond per MiB of the file.
    """
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise FormatError(f"{what}: block_crc32c is not base64 ({error})") from None
    expected = -(-size // CHECKSUM_BLOCK)
    if len(data) != 4 * expected:
        raise FormatError(f"{what}: {len(data)} bytes of block_crc32c found, {4 * expected} expected for {size} bytes")
    values = tuple(int(value) for value in np.frombuffer(data, ">u4"))
    found = f"{combine_blocks(values, size):08x}"
    if found != crc32c:
        raise FormatError(f"{what}: block_crc32c combine to crc32c {found}, {crc32c} expected for the file")
    return values
