"""What is to be read: the parameters of a source, and the planning that makes tasks of it, one per file or part."""

import os
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

import orjson
import pyarrow.parquet as pq
from apache_beam.io.filesystem import BeamIOError, FileMetadata
from apache_beam.io.filesystems import FileSystems

from refinery.transforms.core.document import hash64
from refinery.transforms.core.resources import check_place
from refinery.transforms.read.byte_source import open_source

Format = Literal["auto", "warc", "wet", "arc", "jsonl", "parquet", "documents"]
Content = Literal["auto", "html", "text"]

COMPRESSIONS = ("", ".gz", ".zst", ".lz4")
ENDINGS: dict[str, Format] = {".warc": "warc", ".wet": "wet", ".arc": "arc"}
ENDINGS |= {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet"}

# What the stages themselves note about a document; an input must not pretend to have been through them.
OWN_META = frozenset(
    ("language", "language_score", "quality", "toxicity", "pii", "copies", "copy_sources", "cut_lines", "lines_cut")
)

MAX_STRIDES = 8  # readers of one compressed file: each inflates all of it, which costs 1/10 to 1/20 of the funnel
COMPRESSED_RATIO = 4  # compressed text counts four times its size: 64 MB of text per part, 16 MB compressed


@dataclass(frozen=True)
class SourceParams:
    """One source of documents. In a recipe, an element of `sources`.

    name: in counters and provenance; lower case letters, digits, "_", ".", "-". paths: files or globs, local or gs://.
    format: "auto" goes by the file's ending. domain: folder of the shards ("": the name). priority: lower wins among
    copies. sample: share of the records that is read, by hash of seed and origin. cap: most documents taken from the
    source; a file of n in the sorted listing takes cap // n of them, one more if it is among the first cap % n.
    content: whether text is HTML still to be extracted ("auto": text in JSONL and Parquet, the payload's type in WARC).
    *_field: names of fields; "a.b" is field b of object a unless a field "a.b" exists. id_field is kept as meta
    "record_id", date_field as meta "date", meta_fields under their own names. meta_fields of objects become JSON.
    """

    name: str
    paths: tuple[str, ...]
    format: Format = "auto"
    domain: str = ""
    priority: int = 0
    sample: float = 1.0
    seed: int = 0
    cap: int | None = None
    content: Content = "auto"
    text_field: str = "text"
    url_field: str = "url"
    date_field: str = "date"
    id_field: str = ""
    meta_fields: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field, value in (("name", self.name), ("domain", self.domain or self.name)):
            if not re.fullmatch(r"[a-z0-9][a-z0-9_.-]{0,63}", value):
                allowed = "up to 64 lower-case letters, digits, '_', '.' and '-' are allowed"
                raise ValueError(f"{field}: {value!r} given, {allowed}")
        if not self.paths or not all(self.paths):
            raise ValueError(f"paths: {list(self.paths)} given, one or more file names or globs are allowed")
        if not 0 <= self.priority <= 65535:
            raise ValueError(f"priority: {self.priority} given, 0 to 65535 is allowed")
        if not 0 < self.sample <= 1:
            raise ValueError(f"sample: {self.sample} given, a number above 0 and up to 1 is allowed")
        if self.cap is not None and self.cap < 1:
            raise ValueError(f"cap: {self.cap} given, 1 or more is allowed (null: no cap)")
        own = sorted(set(self.meta_fields) & OWN_META)
        if own:
            raise ValueError(
                f"meta_fields: {own[0]!r} given, any but the funnel's own names is allowed: {sorted(OWN_META)}"
            )
        if not self.text_field:
            raise ValueError("text_field: '' given, the name of a field is allowed")


@dataclass(frozen=True)
class LimitParams:
    """Sizes above which a record is skipped as "too-large".

    max_record_bytes: one document's raw content, decoded. max_decompressed_bytes: what may be held to get at it: a
    record of an archive, a line of JSONL, a layer of content encoding. A reader's memory stays under four times that.
    max_meta_bytes: a JSONL or Parquet record's address and meta fields together ("meta-too-large"): they are held for
    whole batches of documents.
    """

    max_record_bytes: int = 10_000_000
    max_decompressed_bytes: int = 64_000_000
    max_meta_bytes: int = 65_536

    def __post_init__(self) -> None:
        if self.max_meta_bytes < 1:
            raise ValueError(f"max_meta_bytes: {self.max_meta_bytes} given, 1 or more is allowed")
        if not 1 <= self.max_record_bytes <= self.max_decompressed_bytes:
            raise ValueError(
                f"max_record_bytes: {self.max_record_bytes} given, 1 to max_decompressed_bytes is allowed"
                f" ({self.max_decompressed_bytes})"
            )
        if self.max_decompressed_bytes > 1 << 30:
            raise ValueError(f"max_decompressed_bytes: {self.max_decompressed_bytes} given, up to 2^30 is allowed")


@dataclass(frozen=True)
class ReadTask:
    """A file, or part `part` of `parts` of it, and what a reader must know of its source. Travels as JSON bytes.

    file_index: place of the file in the source's sorted listing. size: bytes of the whole file. cap: most documents
    to take from this file, None for all.
    """

    path: str
    format: Format
    source: str
    file_index: int
    size: int
    part: int = 0
    parts: int = 1
    cap: int | None = None
    sample: float = 1.0
    seed: int = 0
    content: Content = "auto"
    text_field: str = "text"
    url_field: str = "url"
    date_field: str = "date"
    id_field: str = ""
    meta_fields: tuple[str, ...] = ()

    def to_json(self) -> bytes:
        return orjson.dumps(asdict(self), option=orjson.OPT_SORT_KEYS)

    @classmethod
    def from_json(cls, data: bytes) -> "ReadTask":
        task = cls(**orjson.loads(data))
        return replace(task, meta_fields=tuple(task.meta_fields))

    def origin(self, offset: int) -> str:
        return f"{self.path}@{offset}"

    def position(self, offset: int) -> int:
        return self.file_index << 40 | offset

    def samples(self, origin: str) -> bool:
        """Whether the record at `origin` belongs to the sample."""
        return self.sample >= 1 or hash64("sample", self.seed, origin) < self.sample * 2**64


def plan_sources(sources: Sequence[SourceParams], split_bytes: int = 64 << 20) -> list[ReadTask]:
    """The tasks that read `sources`, in order of source, file and part. Runs where the job is launched.

    Uncompressed JSONL and Parquet are cut into parts of about `split_bytes` bytes, compressed JSONL into at most 8
    parts of a quarter of that; WARC files, and files of a source with a cap, are read whole. Lists the files (one
    request per pattern) and opens large Parquet files for their number of row groups.

    Raises ValueError, one line, if two sources have one name, a pattern matches nothing, or a file's format is unknown.
    """
    names = [source.name for source in sources]
    if len(set(names)) < len(names):
        raise ValueError(f"sources: names {names} given, each name is allowed once")
    return [task for source in sources for task in plan_source(source, split_bytes)]


def plan_source(source: SourceParams, split_bytes: int) -> list[ReadTask]:
    """The tasks of one source, in order of file and part."""
    files = list_files(source)
    tasks = []
    for index, (path, size) in enumerate(sorted(files.items())):
        share = None if source.cap is None else source.cap // len(files) + (index < source.cap % len(files))
        if share == 0:
            continue
        whole = ReadTask(
            path=path,
            format=source.format if source.format != "auto" else format_of(path, source),
            source=source.name,
            file_index=index,
            size=size,
            cap=share,
            sample=source.sample,
            seed=source.seed,
            content=source.content,
            text_field=source.text_field,
            url_field=source.url_field,
            date_field=source.date_field,
            id_field=source.id_field,
            meta_fields=source.meta_fields,
        )
        parts = 1 if share is not None else count_parts(whole, split_bytes)
        tasks += [replace(whole, part=part, parts=parts) for part in range(parts)]
    return tasks


def list_files(source: SourceParams) -> dict[str, int]:
    """Path -> bytes of every file that the source's patterns match; a file matched twice is there once."""
    files = {}
    for pattern in source.paths:
        try:
            check_place(pattern)
            found: list[FileMetadata] = FileSystems.match([pattern])[0].metadata_list
        except (BeamIOError, OSError, ValueError) as error:
            raise ValueError(f"source {source.name}: paths: {pattern!r} cannot be listed: {error}") from error
        if not found and "://" not in pattern and os.path.isfile(pattern):  # its name holds a glob's characters
            found = [FileMetadata(pattern, os.path.getsize(pattern))]
        kept = [file for file in found if "://" in file.path or os.path.isfile(file.path)]
        if not kept:
            raise ValueError(f"source {source.name}: paths: {pattern!r} given, no file matches it")
        for file in kept:
            path = file.path if "://" in file.path else os.path.normpath(file.path)
            if not path.isprintable():  # also a name that is not UTF-8: it cannot be written to provenance
                raise ValueError(f"source {source.name}: paths: file {path!r} found, printable names are allowed")
            files[path] = file.size_in_bytes
    return files


def format_of(path: str, source: SourceParams) -> Format:
    """The format that the ending of `path` stands for."""
    for compression in COMPRESSIONS:
        for ending, name in ENDINGS.items():
            if path.lower().endswith(ending + compression) and (name != "parquet" or not compression):
                return name
    allowed = f"{', '.join(ENDINGS)} (all but .parquet also with {', '.join(COMPRESSIONS[1:])})"
    raise ValueError(
        f"source {source.name}: format: {path} has an unknown ending, allowed are {allowed}; or name a format"
    )


def count_parts(task: ReadTask, split_bytes: int) -> int:
    """Into how many parts the file of `task` is cut."""
    if task.format == "jsonl":
        if task.path.lower().endswith(COMPRESSIONS[1:]):
            return min(MAX_STRIDES, max(1, -(-task.size * COMPRESSED_RATIO // split_bytes)))
        return max(1, -(-task.size // split_bytes))
    if task.format in ("parquet", "documents") and task.size > split_bytes:
        return max(1, min(-(-task.size // split_bytes), count_row_groups(task.path)))
    return 1


def count_row_groups(path: str) -> int:
    """Row groups of a Parquet file; 0 if it is none: the reader then reports it as damaged."""
    try:
        with open_source(path) as source:
            return int(pq.ParquetFile(source.file).metadata.num_row_groups)
    except (OSError, ValueError):  # pyarrow's errors are subclasses of these
        return 0
