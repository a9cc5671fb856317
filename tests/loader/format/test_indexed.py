import struct
import zlib
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.loader.errors import FormatError
from refinery.loader.format.indexed import IndexedReader, IndexedWriter, dtype_for, index_bytes, read_index

UINT16, INT32 = np.dtype("<u2"), np.dtype("<i4")

# Three documents: [1, 2, 3], [], [65535], as uint16; the same with 65536 for 65535 as int32.
GOLDEN_BIN = {"uint16": "010002000300ffff", "int32": "01000000020000000300000000000100"}
GOLDEN_IDX = {
    "uint16": (
        "4d4d494449445800000100000000000000080300000000000000"
        "0400000000000000030000000000000001000000"
        "000000000000000006000000000000000600000000000000"
        "0000000000000000010000000000000002000000000000000300000000000000"
    ),
    "int32": (
        "4d4d494449445800000100000000000000040300000000000000"
        "0400000000000000030000000000000001000000"
        "00000000000000000c000000000000000c00000000000000"
        "0000000000000000010000000000000002000000000000000300000000000000"
    ),
}


def write(path: Path, documents: list[list[int]], dtype: np.dtype) -> tuple[bytes, bytes]:
    with IndexedWriter(path, dtype) as writer:
        for tokens in documents:
            writer.add(np.array(tokens, np.int64))
    return path.read_bytes(), path.with_suffix(".idx").read_bytes()


def megatron_documents(data: bytes, idx: bytes) -> list[list[int]]:
    """An independent reader, from the description of Megatron's format alone."""
    assert idx[:9] == b"MMIDIDX\x00\x00"
    (version,) = struct.unpack_from("<Q", idx, 9)
    assert version == 1
    (code,) = struct.unpack_from("<B", idx, 17)
    letter, width = {1: ("B", 1), 2: ("b", 1), 3: ("h", 2), 4: ("i", 4), 5: ("q", 8), 8: ("H", 2)}[code]
    sequence_count, document_count = struct.unpack_from("<QQ", idx, 18)
    at = 34
    lengths = struct.unpack_from(f"<{sequence_count}i", idx, at)
    at += 4 * sequence_count
    pointers = struct.unpack_from(f"<{sequence_count}q", idx, at)
    at += 8 * sequence_count
    documents = struct.unpack_from(f"<{document_count}q", idx, at)
    assert at + 8 * document_count == len(idx)
    sequences = [
        list(struct.unpack(f"<{length}{letter}", data[pointer : pointer + length * width]))
        for length, pointer in zip(lengths, pointers, strict=True)
    ]
    return [list(chain.from_iterable(sequences[a:b])) for a, b in pairwise(documents)]


@pytest.mark.parametrize(("dtype", "last"), [(UINT16, 65535), (INT32, 65536)])
def test_golden_bytes(tmp_path: Path, dtype: np.dtype, last: int) -> None:
    data, idx = write(tmp_path / "x.bin", [[1, 2, 3], [], [last]], dtype)
    assert data.hex() == GOLDEN_BIN[dtype.name]
    assert idx.hex() == GOLDEN_IDX[dtype.name]


def test_golden_bytes_of_an_empty_shard(tmp_path: Path) -> None:
    data, idx = write(tmp_path / "x.bin", [], UINT16)
    assert data == b""
    assert idx.hex() == "4d4d4944494458000001000000000000000800000000000000000100000000000000" + "00" * 8
    assert len(IndexedReader(tmp_path / "x.bin")) == 0
    assert megatron_documents(data, idx) == []


token_lists = st.sampled_from([(UINT16, 2**16), (INT32, 2**31)]).flatmap(
    lambda pair: st.tuples(st.just(pair[0]), st.lists(st.lists(st.integers(0, pair[1] - 1), max_size=20), max_size=20))
)


@settings(deadline=None)
@given(token_lists)
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, case: tuple[np.dtype, list[list[int]]]) -> None:
    dtype, documents = case
    path = tmp_path_factory.mktemp("round") / "x.bin"
    data, idx = write(path, documents, dtype)
    assert megatron_documents(data, idx) == documents
    reader = IndexedReader(path)
    assert [reader[i].tolist() for i in range(len(reader))] == documents
    assert reader.index.tokens == sum(map(len, documents))
    assert reader.index.bin_size == len(data)
    assert index_bytes(reader.index.lengths, dtype) == idx
    for i in (len(documents), -len(documents) - 1):
        with pytest.raises(IndexError):
            reader[i]


@pytest.mark.parametrize("documents", [[], [[]], [[1, 2, 3], [], [7]]])
def test_every_flipped_byte_of_the_index_is_caught(tmp_path: Path, documents: list[list[int]]) -> None:
    """Each byte, each bit: the index is redundant, so that nothing of it can change unnoticed but the lengths' sum.

    What read_index itself cannot see (the last length, the dtype) changes the size that .bin must have.
    """
    data, idx = write(tmp_path / "x.bin", documents, UINT16)
    for at in range(len(idx)):
        for bit in range(8):
            damaged = bytearray(idx)
            damaged[at] ^= 1 << bit
            try:
                index = read_index(bytes(damaged))
            except FormatError:
                continue
            assert index.bin_size != len(data), f"byte {at}, bit {bit}"


def test_truncated_and_extended_index(tmp_path: Path) -> None:
    _, idx = write(tmp_path / "x.bin", [[1], [2, 3]], UINT16)
    for size in range(len(idx)):
        with pytest.raises(FormatError, match="bytes found"):
            read_index(idx[:size])
    with pytest.raises(FormatError, match=rf"some\.idx: {len(idx) + 1} bytes found, {len(idx)} expected"):
        read_index(idx + b"\0", "some.idx")


def packed(magic: bytes, version: int, code: int, n: int, entries: int, *arrays: list[int]) -> bytes:
    lengths, pointers, documents = arrays or ([], [], [0])
    head = struct.pack("<9sQBQQ", magic, version, code, n, entries)
    body = struct.pack(f"<{len(lengths)}i{len(pointers)}q{len(documents)}q", *lengths, *pointers, *documents)
    return head + body


IDX_MAGIC = b"MMIDIDX\0\0"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "0 bytes found, at least 34 expected"),
        (zlib.compress(bytes(100)).ljust(40), "starts with"),
        (packed(IDX_MAGIC, 2, 8, 0, 1), "version 2 found, 1 expected"),
        (packed(IDX_MAGIC, 1, 6, 0, 1), "dtype code 6 found"),
        (packed(IDX_MAGIC, 1, 8, 0, 0), "0 entries in the document index found, 1 expected for 0 sequences"),
        (packed(IDX_MAGIC, 1, 8, 2**64 - 1, 0), "entries"),
        (packed(IDX_MAGIC, 1, 8, 2**63, 2**63 + 1), "bytes found"),
        (packed(IDX_MAGIC, 1, 8, 2, 3, [-1, 5], [0, -2], [0, 1, 2]), "sequence 0 has length -1"),
        (packed(IDX_MAGIC, 1, 8, 2, 3, [1, 5], [0, 4], [0, 1, 2]), "pointer of sequence 1 is 4, 2 expected"),
        (packed(IDX_MAGIC, 1, 8, 2, 3, [1, 5], [2, 4], [0, 1, 2]), "pointer of sequence 0 is 2, 0 expected"),
        (packed(IDX_MAGIC, 1, 8, 2, 3, [1, 5], [0, 2], [0, 2, 2]), "document index entry 1 is 2, 1 expected"),
    ],
)
def test_wrong_index_is_named(data: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=f"x.idx: .*{message}"):
        read_index(data, "x.idx")


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (np.array([[1]]), "one-dimensional array of integers"),
        (np.array(1), "one-dimensional array of integers"),
        (np.array([1.0]), "one-dimensional array of integers"),
        (np.array([-1]), "ids -1 to -1 given, 0 to 65535"),
        (np.array([0, 65536]), "ids 0 to 65536 given"),
        (np.broadcast_to(np.uint16(0), 2**31), "a document of 2147483648 given"),
    ],
)
def test_writer_refuses(tmp_path: Path, tokens: np.ndarray, message: str) -> None:
    writer = IndexedWriter(tmp_path / "x.bin", UINT16)
    with pytest.raises(ValueError, match=message):
        writer.add(tokens)
    writer.add(np.array([], np.float64))
    writer.close()
    writer.close()
    assert len(IndexedReader(tmp_path / "x.bin")) == 1


def test_writer_refuses_negative_int32_and_other_dtypes(tmp_path: Path) -> None:
    with IndexedWriter(tmp_path / "x.bin", np.int32) as writer, pytest.raises(ValueError, match="ids -2 to 0 given"):
        writer.add(np.array([0, -2], np.int32))
    with pytest.raises(ValueError, match="dtype: uint32 given"):
        IndexedWriter(tmp_path / "x.bin", np.uint32)


def test_writer_takes_any_layout(tmp_path: Path) -> None:
    with IndexedWriter(tmp_path / "x.bin", UINT16) as writer:
        writer.add(np.arange(10, dtype=np.uint16)[::3])
        writer.add(np.array([258], ">u2"))
    reader = IndexedReader(tmp_path / "x.bin")
    assert [reader[0].tolist(), reader[1].tolist()] == [[0, 3, 6, 9], [258]]
    assert not reader[0].flags.writeable


def test_failed_writer_leaves_no_index(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), IndexedWriter(tmp_path / "x.bin", UINT16):
        raise RuntimeError
    assert not (tmp_path / "x.idx").exists()


@pytest.mark.parametrize("extra", [b"", b"\1\0\1", b"\1\0\1\0\1\0"])
def test_reader_refuses_another_size(tmp_path: Path, extra: bytes) -> None:
    write(tmp_path / "x.bin", [[1, 1]], UINT16)
    (tmp_path / "x.bin").write_bytes(extra)
    with pytest.raises(FormatError, match=rf"x\.bin: {len(extra)} bytes found, 4 expected"):
        IndexedReader(tmp_path / "x.bin")


@pytest.mark.parametrize(("size", "name"), [(1, "uint16"), (65_500, "uint16"), (65_501, "int32"), (2**31, "int32")])
def test_dtype_for(size: int, name: str) -> None:
    assert dtype_for(size).name == name


@pytest.mark.parametrize("size", [0, -1, 2**31 + 1])
def test_dtype_for_refuses(size: int) -> None:
    with pytest.raises(ValueError, match=f"vocab_size: {size} given"):
        dtype_for(size)
