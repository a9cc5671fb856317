"""The kernel `pages` against google_crc32c and slices of numpy arrays."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import google_crc32c
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.loader.native import pages
from refinery.loader.order.arrays import I64

Block = tuple[int, int, bytes]
LARGE = 1 << 17  # bytes that the kernel reads at once


def crcs(data: bytes, page: int) -> bytes:
    return b"".join(
        google_crc32c.value(data[start : start + page]).to_bytes(4, "little") for start in range(0, len(data), page)
    )


@pytest.mark.parametrize("page", [1, 8, 1 << 10, 1 << 14])
@pytest.mark.parametrize("size", [0, 1, 7, 8, 1023, 1024, 2048, 2049, 40_000])
def test_values(page: int, size: int) -> None:
    data = np.random.default_rng(size).bytes(size)
    assert pages.values(data, page) == crcs(data, page)
    assert pages.values(memoryview(bytearray(b"x" + data))[1:], page) == crcs(data, page)


def test_published_checksums() -> None:
    """RFC 3720, B.4."""
    for data, value in ((bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43), (bytes(range(32)), 0x46DD794E)):
        assert int.from_bytes(pages.values(data, 32), "little") == value


@contextmanager
def blocks_of(folder: Path, contents: list[bytes], page: int) -> Iterator[list[Block]]:
    """Files of these contents, with a footer as cached blocks have one."""
    blocks = []
    try:
        for i, content in enumerate(contents):
            (folder / str(i)).write_bytes(content + b"footer")
            blocks.append((os.open(folder / str(i), os.O_RDWR), len(content), crcs(content, page)))
        yield blocks
    finally:
        for descriptor, _, _ in blocks:
            os.close(descriptor)


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[np.ndarray], int, list[list[int]], list[tuple[int, int]]]:
    """Tokens of blocks, bytes of a page, pieces as (row, block, start, count, place), and bytes to damage."""
    kind = draw(st.sampled_from([np.uint16, np.int32, np.int64]))
    generator = np.random.default_rng(draw(st.integers(0, 999)))
    sizes = draw(st.lists(st.integers(0, 90), min_size=1, max_size=4))
    blocks = [generator.integers(0, 60_000, size).astype(kind) for size in sizes]
    pieces, row = [], 0
    for _ in range(draw(st.integers(0, 12))):
        block = draw(st.integers(0, len(blocks) - 1))
        start = draw(st.integers(0, sizes[block]))
        pieces.append([row, block, start, draw(st.integers(0, sizes[block] - start)), draw(st.integers(0, 10))])
        row += draw(st.integers(0, 1))
    page = draw(st.sampled_from([8, 16, 64, 1 << 14]))
    damage = []
    for block in draw(st.lists(st.integers(0, len(blocks) - 1), max_size=2)):
        if sizes[block]:
            damage.append((block, draw(st.integers(0, blocks[block].nbytes - 1))))
    return blocks, page, pieces, damage


@given(batches())
def test_gather(
    tmp_path_factory: pytest.TempPathFactory,
    made: tuple[list[np.ndarray], int, list[list[int]], list[tuple[int, int]]],
) -> None:
    """Every piece without a damaged page arrives, and only these are counted as copied."""
    tokens, page, given_pieces, damage = made
    pieces = np.array(given_pieces, np.int64).reshape(-1, 5)
    rows = 1 + int(pieces[:, 0].max(initial=0))
    out = np.full((rows, 100), -1)
    with blocks_of(tmp_path_factory.mktemp("blocks"), [each.tobytes() for each in tokens], page) as blocks:
        for block, at in set(damage):
            os.pwrite(blocks[block][0], bytes([os.pread(blocks[block][0], 1, at)[0] ^ 1]), at)
        pieces[:, 0] += 5
        failed = pages.gather(blocks, page, tokens[0].itemsize, pieces, 5, out)
    width = tokens[0].itemsize
    expected = []
    for i, (_, block, start, count, _) in enumerate(given_pieces):
        touched = range(start * width // page, -(-(start + count) * width // page) if count else 0)
        if any(hurt == block and at // page in touched for hurt, at in damage):
            expected.append(i)
    assert failed == expected
    for i, (row, block, start, count, place) in enumerate(given_pieces):
        alone = all(other[0] != row for k, other in enumerate(given_pieces) if k != i)
        if i not in failed and alone:
            assert (out[row, place : place + count] == tokens[block][start : start + count]).all()
            assert (out[row, :place] == -1).all() and (out[row, place + count :] == -1).all()


def test_a_piece_larger_than_what_is_read_at_once(tmp_path: Path) -> None:
    tokens = np.random.default_rng(3).integers(0, 1 << 30, LARGE).astype(np.int32)  # four times as many bytes
    pieces = np.array([[0, 0, 77, LARGE - 100, 23], [1, 0, 0, LARGE, 0], [2, 0, LARGE - 1, 1, 0]])
    out = np.zeros((3, LARGE), np.int64)
    with blocks_of(tmp_path, [tokens.tobytes()], 1 << 14) as blocks:
        assert pages.gather(blocks, 1 << 14, 4, pieces, 0, out) == []
        assert (out[0, 23:-77] == tokens[77:-23]).all() and (out[1] == tokens).all() and out[2, 0] == tokens[-1]
        os.ftruncate(blocks[0][0], 4 * LARGE - 1)
        assert pages.gather(blocks, 1 << 14, 4, pieces, 0, out) == [0, 1, 2]
        closed = os.dup(blocks[0][0])
        os.close(closed)
        assert pages.gather([(closed, *blocks[0][1:])], 1 << 14, 4, pieces, 0, out) == [0, 1, 2]


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="counts what is read as Linux does")
def test_pages_are_read_once_for_pieces_that_follow_each_other(tmp_path: Path) -> None:
    def bytes_read() -> int:
        return int(Path("/proc/self/io").read_text().split()[1])

    tokens = np.arange(64, dtype=np.int64)
    pieces: I64 = np.array([[0, 0, 0, 10, 0], [0, 0, 10, 6, 10]])
    out = np.zeros((1, 16), np.int64)
    with blocks_of(tmp_path, [tokens.tobytes()], 128) as blocks:
        nothing = -(bytes_read() - bytes_read())
        before = bytes_read()
        assert pages.gather(blocks, 128, 8, pieces, 0, out) == []
        assert bytes_read() - before - nothing == 128
    assert (out == tokens[:16]).all()
