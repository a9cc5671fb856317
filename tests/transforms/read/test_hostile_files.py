"""Small files that stand for much: what reading one takes is bounded by its size and the limits."""

import gzip
import io
import json
import random
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from refinery.loader.errors import FormatError
from refinery.loader.format.parquet.pages import MAX_ITEMS, read_footer, read_header
from refinery.transforms.core.answers import Damaged
from refinery.transforms.core.document import RawDocument
from refinery.transforms.read import byte_source, members
from refinery.transforms.read.archives.http_body import MAX_MEMBERS, NoPage, decode_content
from refinery.transforms.read.formats import jsonl
from refinery.transforms.read.http.chunks import dechunk
from refinery.transforms.read.sources import LimitParams
from tests.sampling import scaled
from tests.transforms.read_fixtures import COMPRESSORS, lz4, page, read, summary

MIB = 1 << 20
SMALL = LimitParams(max_record_bytes=100_000, max_decompressed_bytes=MIB)


@contextmanager
def at_most(size: int) -> Iterator[None]:
    """What is done inside holds `size` bytes of Python's at once, and as much of arrow's, at most."""
    pool = pa.default_memory_pool()
    before = pool.bytes_allocated()
    tracemalloc.start()
    try:
        yield
        held = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert held <= size, f"{held:,} bytes held"
    assert pool.bytes_allocated() - before <= size


# Recovery


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes that each try of a place after damage gave out."""
    sizes: list[int] = []
    for name in ("zstd_head",):
        plain: Callable[..., bytes] = getattr(byte_source, name)

        def counted(*args: Any, plain: Callable[..., bytes] = plain) -> bytes:
            data = plain(*args)
            sizes.append(len(data))
            return data

        monkeypatch.setattr(byte_source, name, counted)
    return sizes


def test_tries_after_damage_decode_little_each_and_are_bounded(tmp_path: Path, decoded: list[int]) -> None:
    """Frames of 16 MiB in a few bytes each, none of which is a record: each try stops at its first bytes."""
    bomb = zstandard.compress(bytes(16 * MIB))
    data = zstandard.compress(page(0)) + b"\x28\xb5\x2f\xfdjunk" + bomb * 200
    with at_most(8 * MIB):
        assert summary(read(tmp_path / "a.warc.zst", data))[0] == "html"
    assert decoded and max(decoded) <= members.PROBE_BYTES
    magic = zstandard.compress(page(0)) + b"\x28\xb5\x2f\xfd" * 400_000
    decoded.clear()
    assert summary(read(tmp_path / "a.warc.zst", magic)) == ["html", "!BadZstd"]
    most = (byte_source.PROBED + 2 * len(magic)) // byte_source.PROBE_COST[members.ZSTD] + 1
    assert len(decoded) <= most


def test_an_lz4_frame_is_looked_at_no_further_than_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Magic numbers before blocks of a byte each, to the end of the file: whoever walks it from each needs n * n."""
    sizes: list[int] = []
    plain = byte_source.ByteSource.head

    def counted(source: byte_source.ByteSource, offset: int, size: int) -> bytes:
        sizes.append(size)
        return plain(source, offset, size)

    monkeypatch.setattr(byte_source.ByteSource, "head", counted)
    frame = members.LZ4 + b"\x40\x40\xc0" + b"\x01\x00\x00\x80x" * 20
    for count in (100, 400):
        sizes.clear()
        read(tmp_path / "a.warc.lz4", lz4(page(0)) + b"\x04\x22\x4d\x18\xff" + frame * count)
        assert len(sizes) <= 200 * count + 100


def test_a_first_byte_that_is_damaged_costs_a_member(tmp_path: Path) -> None:
    for ending in (".gz", ".zst", ".lz4"):
        members = [COMPRESSORS[ending](page(number)) for number in range(4)]
        for at in range(4):
            broken = bytearray(members[0])
            broken[at] ^= 0x40
            words = summary(read(tmp_path / f"a.warc{ending}", bytes(broken) + b"".join(members[1:])))
            assert words[1:] == ["html"] * 3 and (words[0] == "html" or words[0].startswith("!Bad")), (ending, at)


def test_a_file_that_only_is_named_compressed_is_read_as_it_is(tmp_path: Path) -> None:
    lines = b'{"text": "Otters"}\n' * 3
    assert summary(read(tmp_path / "a.jsonl.gz", lines, "jsonl")) == ["text"] * 3
    assert summary(read(tmp_path / "a.warc.zst", page(0) + page(1))) == ["html"] * 2


# Memory


def test_a_window_beyond_the_limit_is_refused_before_it_is_allocated(tmp_path: Path) -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=20, enable_ldm=False)
    writer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    data = writer.compress(b'{"text": "Otters"}\n') + writer.flush()
    path = tmp_path / "a.jsonl.zst"
    assert summary(read(path, data, "jsonl", LimitParams(max_window_bytes=1 << 19))) == ["!WindowTooLarge"]
    assert summary(read(path, data, "jsonl", LimitParams(max_window_bytes=1 << 20))) == ["text"]


@pytest.mark.parametrize("piece", [b"{},", b"[],", b'{"a":1},', b"123456789,"])
def test_a_line_of_tiny_values_is_not_parsed(tmp_path: Path, piece: bytes) -> None:
    limits = LimitParams(max_record_bytes=100_000, max_decompressed_bytes=4 * MIB)
    line = b'{"text": "Otters", "more": [' + piece * (4 * MIB // len(piece) - 30) + b"0]}\n"
    with at_most(24 * MIB):
        assert summary(read(tmp_path / "a.jsonl", line + b'{"text": "Otters"}\n', "jsonl", limits)) == [
            "too-large",
            "text",
        ]


def test_what_a_line_takes_is_not_underestimated() -> None:
    """Python's own count of what the parsed values hold, at most the estimate (and a little for small ones)."""
    rng = random.Random(3)

    def value(depth: int) -> Any:
        kind = rng.randrange(7 if depth else 4)
        if kind < 4:
            return [rng.random(), rng.randrange(10**9), "x" * rng.randrange(9), None][kind]
        inner = [value(depth - 1) for _ in range(rng.randrange(5))]
        return inner if kind < 6 else {f"k{rng.randrange(10**6)}": part for part in inner}

    for _ in range(100):
        data = json.dumps([value(5) for _ in range(50)]).encode()
        tracemalloc.start()
        parsed = orjson.loads(data)
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert parsed is not None and held <= jsonl.parsed_bytes(data) + 4096


def test_a_line_that_fits_whatever_its_bytes_are_is_not_counted() -> None:
    limits = LimitParams(max_record_bytes=1, max_decompressed_bytes=1)
    longest = jsonl.PARSED_LEAST // (jsonl.PLAIN + jsonl.OBJECT)
    for size in (longest, longest + 1):
        for byte in (b"{", b",", b"[", b"a"):
            assert jsonl.fits(byte * size, limits) == (jsonl.parsed_bytes(byte * size) <= jsonl.PARSED_LEAST)
    assert jsonl.fits(b"{" * longest, limits) and not jsonl.fits(b"{" * (longest + 1), limits)


def test_want_of_memory_is_not_taken_for_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(data: bytes) -> Any:
        raise orjson.JSONDecodeError("Not enough memory to allocate buffer for parsing", "", 0)

    monkeypatch.setattr(jsonl.orjson, "loads", refuse)
    with pytest.raises(MemoryError):
        read(tmp_path / "a.jsonl", b'{"text": "Otters"}\n', "jsonl")


def test_chunks_of_a_byte_take_what_their_content_takes() -> None:
    count = scaled(200_000, 20_000)
    body = b"1\r\nx\r\n" * count + b"0\r\n\r\n"
    with at_most(10 * count):  # an object for each chunk takes four times as much
        assert dechunk(body) == b"x" * count


def test_a_gzip_body_of_empty_members_is_an_encoding_error() -> None:
    empty = gzip.compress(b"", mtime=0)
    fine = empty * (MAX_MEMBERS - 1) + gzip.compress(b"<p>Otters</p>")
    assert decode_content(fine, "gzip", 1000, 1000) == b"<p>Otters</p>"
    assert decode_content(empty + fine, "gzip", 1000, 1000) == NoPage(error="BadEncoding")
    layers = empty * 100_000
    for _ in range(2):
        layers = gzip.compress(layers)
    assert decode_content(layers, "gzip, gzip, gzip", MIB, 8 * MIB) == NoPage(error="BadEncoding")


# Parquet


def parquet(path: Path, values: Any, **options: Any) -> bytes:
    pq.write_table(pa.table({"text": values}), path, compression="zstd", store_schema=False, **options)
    return path.read_bytes()


def test_a_dictionary_of_one_long_value_is_read_a_few_rows_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    rows = scaled(5_000, 2_000)  # 180 MB, beyond what other tests of this process have held
    data = parquet(path, ["x" * 90_000] * rows, dictionary_pagesize_limit=1 << 30)
    assert len(data) < 2_000
    before = pa.default_memory_pool().max_memory()
    outcomes = read(path, data, "parquet", SMALL)
    assert [type(one) for one in outcomes] == [RawDocument] * rows
    grown = pa.default_memory_pool().max_memory() - before
    assert grown <= 6 * MIB, f"{grown:,}"


def test_a_page_beyond_the_limit_costs_its_row_group_unread(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    data = parquet(path, ["x" * 3 * MIB] * 4 + ["Otters"] * 4, row_group_size=4, use_dictionary=False)
    outcomes = read(path, data, "parquet", SMALL)
    assert summary(outcomes) == ["!PageTooLarge"] + ["text"] * 4
    assert isinstance(outcomes[0], Damaged) and outcomes[0].size > 0


def test_prefixes_that_repeat_are_bounded_like_a_dictionary(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    values = ["x" * 80_000 + str(number) for number in range(2_000)]
    data = parquet(path, values, use_dictionary=False, column_encoding="DELTA_BYTE_ARRAY")
    before = pa.default_memory_pool().max_memory()
    outcomes = read(path, data, "parquet", SMALL)
    assert [one.content for one in outcomes if isinstance(one, RawDocument)] == values
    assert pa.default_memory_pool().max_memory() - before <= 8 * MIB


@pytest.mark.parametrize(
    "data", [b"", b"\x15", b"\x15\x00", b"\x2c" * 50, b"\xff" * 60, b"\x15\x00\x15\x01\x15\x00\x00"]
)
def test_headers_of_pages_that_are_none(data: bytes) -> None:
    with pytest.raises(FormatError):
        read_header(data)


@pytest.mark.parametrize("items", [1, MAX_ITEMS, 3 * MAX_ITEMS])
def test_a_footer_of_empty_row_groups_ends_with_the_first(items: int) -> None:
    """A byte each, which would take 72 of memory and a microsecond or two."""
    count = bytes(
        items >> shift & 127 | (128 if items >> shift + 7 else 0) for shift in range(0, 28, 7) if items >> shift
    )
    footer = b"\x49\xfc" + count + bytes(items + 1)  # field 4: a list of structs
    file = b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    with pytest.raises(FormatError, match="a damaged footer"):
        read_footer(io.BytesIO(file))  # what a process keeps from its first call is not counted
    with at_most(4 * len(footer) + 10_000), pytest.raises(FormatError, match="a damaged footer"):
        read_footer(io.BytesIO(file))


def test_headers_of_pages_are_read_as_arrow_writes_them(tmp_path: Path) -> None:
    """The sum of what the headers say is what the footer says, for every codec and version of data pages."""
    rng = random.Random(5)
    values = ["".join(rng.choices("abc ", k=rng.randrange(2_000))) for _ in range(scaled(3_000, 300))]
    sizes = {"data_page_size": scaled(1 << 20, 1 << 15), "dictionary_pagesize_limit": scaled(1 << 20, 1 << 17)}
    for codec in ("none", "snappy", "gzip", "zstd"):
        for version in ("1.0", "2.0"):
            path = tmp_path / f"{codec}-{version}.parquet"
            table = pa.table({"text": values})
            pq.write_table(table, path, compression=codec, data_page_version=version, write_batch_size=20, **sizes)
            column = pq.ParquetFile(path).metadata.row_group(0).column(0)
            data = path.read_bytes()
            at = column.dictionary_page_offset or column.data_page_offset
            end, total, pages = at + column.total_compressed_size, 0, 0
            while at < end:
                pages += 1
                header = read_header(data[at:])
                total += header.size + header.header_bytes
                at += header.compressed + header.header_bytes
            assert (at, total) == (end, column.total_uncompressed_size)
            assert pages > 3
