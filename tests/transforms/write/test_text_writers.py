"""What the writers of texts promise beside `refinery.testing.WriterTests`: files that every reader takes, and readers
that take no more than that."""

import gzip
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest
import zstandard

from refinery.loader.format import provenance
from refinery.loader.format.parquet.batches import check_pages
from refinery.transforms.core.stage import ShardContent
from refinery.transforms.write import text_writers
from refinery.transforms.write.text_writers import LITTLE, MAX_DOCUMENT, TEXT_WRITERS, WINDOW


def shard_of(texts: list[bytes]) -> ShardContent:
    def rows() -> Iterator[dict[str, Any]]:
        for at, text in enumerate(texts):
            facts = {"id": at.to_bytes(16, "big"), "url": "u", "source": "s", "origin": f"o@{at}"}
            yield {**facts, "copies": 1, "sources": ["s"], "text_bytes": len(text), "meta": '{"a":{"b":1}}'}

    return ShardContent(rows, lambda: iter(texts))


def written(name: str, texts: list[bytes], folder: Path) -> Path:
    """The file with the documents."""
    writer = TEXT_WRITERS[name]
    ((kind, ending),) = writer.files.items()
    writer.write({kind: folder / f"shard{ending}"}, shard_of(texts))
    return folder / f"shard{ending}"


def read(name: str, data: bytes) -> list[bytes]:
    (kind,) = TEXT_WRITERS[name].files
    return list(TEXT_WRITERS[name].read({kind: io.BytesIO(data)}))


def test_long_texts_have_pages_that_readers_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page is not as long as a thousand of them, and a row group ends with the text that fills it."""
    monkeypatch.setattr(provenance, "GROUP_BYTES", 8 << 20)
    texts = [bytes([65 + at % 26]) * 300_000 for at in range(60)]
    path = written("text", texts, tmp_path)
    with path.open("rb") as file:
        pages = check_pages(file, "shard")
    assert len(pages) == 3 and max(each.largest for each in pages) < 2 << 20
    assert read("text", path.read_bytes()) == texts


@pytest.mark.parametrize("name", TEXT_WRITERS)
def test_a_document_that_no_reader_would_take_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_writers, "MAX_DOCUMENT", 2000)
    assert len(read(name, written(name, [b"x" * 1500], tmp_path).read_bytes())) == 1
    with pytest.raises(ValueError, match=r"a document of \d,\d+ bytes, 2,000 or less are allowed in a file of texts"):
        written(name, [b"x" * 2500], tmp_path)


def test_a_row_has_the_text_first_and_no_dictionary_of_it(tmp_path: Path) -> None:
    path = written("text", [b"one", "zwei Bären".encode()], tmp_path)
    assert pq.read_schema(path).names[:3] == ["text", "id", "url"]
    assert "PLAIN_DICTIONARY" not in pq.read_metadata(path).row_group(0).column(0).encodings


@pytest.mark.parametrize("name", list(TEXT_WRITERS)[1:])
def test_a_line_is_a_document(name: str, tmp_path: Path) -> None:
    """`meta` as in Parquet: a string, since libraries give a column of objects the keys of the first."""
    data = written(name, ["eins\nzwei \u2028 “🐻”".encode()], tmp_path).read_bytes()
    plain = gzip.decompress(data) if name.endswith("gzip") else zstandard.ZstdDecompressor().stream_reader(data).read()
    (line,) = plain.splitlines()
    found = orjson.loads(line)
    assert list(found)[:2] == ["text", "id"] and found["text"] == "eins\nzwei \u2028 “🐻”"
    assert found["id"] == "0" * 32 and found["meta"] == '{"a":{"b":1}}' and found["sources"] == ["s"]


def zstd(lines: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(lines)


PACKED: dict[str, Callable[[bytes], bytes]] = {"text-jsonl": zstd, "text-jsonl-gzip": gzip.compress}


@pytest.mark.parametrize("name", PACKED)
def test_a_line_has_a_bound(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it is made of: some kilobytes of a file stand for gigabytes."""
    with pytest.raises(ValueError, match=f"a line of more than {MAX_DOCUMENT:,} bytes"):
        read(name, PACKED[name](b" " * (MAX_DOCUMENT + 1)))
    long = b'{"more":[' + b"{}," * LITTLE + b'{}],"text":"a \\u00e9"}\n'
    assert read(name, PACKED[name](long + b'{"text":"b"}\n')) == ["a é".encode(), b"b"]
    with pytest.raises(ValueError, match="JSON"):
        read(name, PACKED[name](b'{"text":["' + b"x" * LITTLE + b'"]}\n'))


def test_a_frame_has_a_bound() -> None:
    """It says how much memory it needs before it is read."""
    parameters = zstandard.ZstdCompressionParameters(window_log=WINDOW.bit_length(), compression_level=1)
    with io.BytesIO() as out:
        with zstandard.ZstdCompressor(compression_params=parameters).stream_writer(out, closefd=False) as stream:
            stream.write(b'{"text":"a"}\n' * (WINDOW // 4))
        data = out.getvalue()
    with pytest.raises(zstandard.ZstdError, match="memory"):
        read("text-jsonl", data)
