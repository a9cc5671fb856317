"""The writers of texts, which a recipe names by `writer`: Parquet, or JSON Lines compressed by Zstandard or gzip."""

import gzip
import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO

import orjson
import pyarrow as pa
import zstandard
from isal import igzip
from pyarrow import json

from refinery.loader.format.parquet.batches import MAX_PAGE, bounded_parquet
from refinery.loader.format.provenance import TEXT_COLUMN, provenance_schema, write_rows
from refinery.loader.format.written import WITH_TEXT
from refinery.transforms.core.data_text.json_members import apart, raw_members
from refinery.transforms.core.document import FIELDS
from refinery.transforms.core.stage import ShardContent, Writer
from refinery.transforms.core.wording import meant
from refinery.transforms.write.shuffle import ShardParams

TEXT = TEXT_COLUMN.name
ZSTD_LEVEL, GZIP_LEVEL = 3, 4
WINDOW = 8 << 20  # bytes of memory that a frame of Zstandard may ask for; this level's ask for 2 MiB
# Bytes of a document in its file: no reader takes a larger page of Parquet, or a longer line. A sound file has none;
# in another one some kilobytes of the file could stand for gigabytes.
MAX_DOCUMENT = MAX_PAGE - (2 << 20)  # a page has up to a MiB of others before it
LITTLE = 1 << 20  # bytes of a line that become objects of Python all at once


def write_parquet(paths: Mapping[str, Path], shard: ShardContent) -> None:
    """A row for each document: its text, then the columns of its provenance. Memory: a row group, as `write_rows`."""
    texts = shard.contents()
    rows = ({TEXT: checked_size(text), **row} for row, text in zip(shard.rows(), texts, strict=True))
    write_rows(paths[WITH_TEXT[0]], rows, provenance_schema(shard.columns, False, True, shard.kept))


def read_parquet(files: Mapping[str, BinaryIO]) -> Iterator[bytes]:
    """The text of each row. Memory: a batch of bounded size."""
    with bounded_parquet(files[WITH_TEXT[0]], "the shard", [TEXT]) as (_, batches):
        for batch in batches:
            column = batch.column(TEXT)
            yield from column.cast("binary").to_pylist()


def checked_size(content: bytes) -> bytes:
    """What becomes a value or a line of a file. Raises ValueError where readers would refuse that."""
    if len(content) > MAX_DOCUMENT:
        raise ValueError(
            f"a document of {len(content):,} bytes, {MAX_DOCUMENT:,} or less are allowed in a file of texts"
        )
    return content


Opened = Callable[[Any], AbstractContextManager[Any]]


def write_lines(paths: Mapping[str, Path], shard: ShardContent, compress: Opened) -> None:
    """A line for each document: `text`, then the columns of its provenance; the id in hexadecimal digits. `meta` is a
    string, as in Parquet: objects with other keys in other lines have no one type, and `datasets` loads none of them.
    The fields that its source keeps follow as they are written there, under their names or, where one is taken, as
    `input_NAME`. Memory: a document."""
    with paths[TEXT].open("wb") as file, compress(file) as out:
        own = {FIELDS, *(column.name for column in shard.kept)}
        documents = zip(shard.rows(), shard.contents(), strict=True)
        for (row, text), kept in zip(documents, shard.fields(), strict=False):  # there may be no end of ""
            row = {name: value for name, value in row.items() if name not in own}
            line = {TEXT: text.decode(), **row, "id": row["id"].hex()}
            if kept:
                line |= named_apart(raw_members(kept), line)
            out.write(checked_size(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)))


def named_apart(kept: Mapping[str, str], taken: Mapping[str, Any]) -> dict[str, orjson.Fragment]:
    """The fields of a record with names that no key of the line has."""
    return {
        name if name not in taken else apart(f"input_{name}", {*taken, *kept}): orjson.Fragment(value)
        for name, value in kept.items()
    }


def read_lines(files: Mapping[str, BinaryIO], inflate: Opened) -> Iterator[bytes]:
    """The text of each line. Raises ValueError for a line that no writer of ours makes. Memory: a line."""
    with inflate(files[TEXT]) as stream:
        lines = io.BufferedReader(stream)
        while line := lines.readline(MAX_DOCUMENT + 1):
            if len(line) > MAX_DOCUMENT:
                raise ValueError(f"a line of more than {MAX_DOCUMENT:,} bytes")
            yield (orjson.loads(line)[TEXT] if len(line) < LITTLE else text_of_long(line)).encode()


def text_of_long(line: bytes) -> str:
    """The text of a line, whatever else it has: a list of a million objects is not made for it."""
    reading = json.ReadOptions(block_size=len(line) + 1, use_threads=False)
    parsing = json.ParseOptions(explicit_schema=pa.schema([TEXT_COLUMN]), unexpected_field_behavior="ignore")
    (text,) = json.read_json(io.BytesIO(line), reading, parsing)[TEXT].to_pylist()
    return str(text)


def compress_zstd(file: BinaryIO) -> Any:
    """A stream whose bytes go to `file` as one frame with a checksum."""
    return zstandard.ZstdCompressor(level=ZSTD_LEVEL, write_checksum=True).stream_writer(file, closefd=False)


def inflate_zstd(file: BinaryIO) -> Any:
    """What a file of Zstandard frames holds. Raises EOFError where it ends inside of one."""
    decompressor = zstandard.ZstdDecompressor(max_window_size=WINDOW)
    return _WholeFrames(decompressor.stream_reader(file, read_across_frames=True, closefd=False))


class _WholeFrames(io.RawIOBase):
    """A file of JSON Lines without a newline at its end was cut: zstandard reads a cut frame as if it ended there."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._last = stream, b"\n"

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = int(self._stream.readinto(buffer))
        if count:
            self._last = bytes(memoryview(buffer)[count - 1 : count])
        elif self._last != b"\n":
            raise EOFError("the file ends inside a line")
        return count


def compress_gzip(file: BinaryIO) -> Any:
    """A stream whose bytes go to `file` as one member without a name or a time. By zlib, since what ISA-L writes may
    depend on the processor."""
    return gzip.GzipFile(filename="", mode="wb", compresslevel=GZIP_LEVEL, fileobj=file, mtime=0)


def inflate_gzip(file: BinaryIO) -> Any:
    """What a gzip file holds. Raises EOFError where it was cut."""
    return igzip.IGzipFile(fileobj=file, mode="rb")  # type: ignore[no-untyped-call]  # stub


def write_zstd(paths: Mapping[str, Path], shard: ShardContent) -> None:
    """`write_lines`, by Zstandard."""
    write_lines(paths, shard, compress_zstd)


def read_zstd(files: Mapping[str, BinaryIO]) -> Iterator[bytes]:
    """`read_lines`, by Zstandard."""
    return read_lines(files, inflate_zstd)


def write_gzip(paths: Mapping[str, Path], shard: ShardContent) -> None:
    """`write_lines`, by gzip."""
    write_lines(paths, shard, compress_gzip)


def read_gzip(files: Mapping[str, BinaryIO]) -> Iterator[bytes]:
    """`read_lines`, by gzip."""
    return read_lines(files, inflate_gzip)


def _of_lines(
    name: str,
    ending: str,
    library: str,
    write: Callable[[Mapping[str, Path], ShardContent], None],
    read: Callable[[Mapping[str, BinaryIO]], Iterator[bytes]],
) -> Writer:
    return Writer(
        name=name,
        version=1,
        summary=f"Shuffle the documents and write them as JSON Lines ({ending}), with provenance.",
        files={TEXT: ending},
        libraries=("pyarrow", "orjson", *([library] if library else [])),
        write=write,
        read=read,
    )


PARQUET = Writer(
    name="text",
    version=1,
    summary="Shuffle the documents and write them as Parquet, each row with its text and its provenance.",
    files=dict([WITH_TEXT]),
    libraries=("pyarrow",),
    write=write_parquet,
    read=read_parquet,
)
TEXT_WRITERS: dict[str, Writer] = {
    writer.name: writer
    for writer in (
        PARQUET,
        _of_lines("text-jsonl", ".jsonl.zst", "zstandard", write_zstd, read_zstd),
        _of_lines("text-jsonl-gzip", ".jsonl.gz", "", write_gzip, read_gzip),
    )
}


def check_writer(writer: Writer, name: str, shards: ShardParams) -> None:
    """Raises ValueError where a recipe names a writer that is neither its lane's nor one of texts, or wants an order
    that its writer does not have. name: the one in the recipe."""
    if name not in ("", writer.name):
        known = ["", *TEXT_WRITERS]
        raise ValueError(
            f"writer: {name!r:.80} given, {', '.join(known[1:])} is allowed, or nothing for the lane's own"
            f"{meant(name, known)}"
        )
    if shards.order == "input" and writer.counts_tokens:
        raise ValueError(
            "shards.order: input given, it needs a writer of texts (`writer: text`): loader, exports and takedowns of "
            "tokens rely on documents in shuffled order"
        )
