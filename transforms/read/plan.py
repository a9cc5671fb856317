"""What is to be read: the parameters of a source, and the planning that makes tasks of it, one per file or part."""

import os
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Literal, Self

import orjson
import pyarrow.parquet as pq
from apache_beam.io.filesystem import BeamIOError, FileMetadata
from apache_beam.io.filesystems import FileSystems
from pydantic import Field, model_validator

from refinery.transforms.core.document import hash64
from refinery.transforms.core.params import Params, Positive
from refinery.transforms.core.resources import check_place
from refinery.transforms.core.stage import Note
from refinery.transforms.read.byte_source import open_source

Format = Literal["auto", "warc", "wet", "arc", "jsonl", "parquet", "documents"]
Content = Literal["auto", "html", "text"]

COMPRESSIONS = ("", ".gz", ".zst", ".lz4")
ENDINGS: dict[str, Format] = {".warc": "warc", ".wet": "wet", ".arc": "arc"}
ENDINGS |= {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet"}

MAX_STRIDES = 8  # readers of one compressed file: each inflates all of it, which costs 1/10 to 1/20 of the funnel
COMPRESSED_RATIO = 4  # compressed text counts four times its size: 64 MB of text per part, 16 MB compressed


class SourceParams(Params):
    """One source of documents. In a recipe, an element of `sources`."""

    name: str
    """name in the funnel and in provenance: up to 64 lower-case letters, digits, `_` `.` `-`"""
    paths: tuple[str, ...]
    """files or globs, local or `gs://`; a glob without a match stops the run before it starts"""
    format: Format = "auto"
    """`auto` goes by the file's ending"""
    domain: str = ""
    """folder of the shards; empty: the source's name"""
    priority: Annotated[int, Field(ge=0, le=65535)] = 0
    """among copies the source with the lower number keeps its document"""
    sample: Annotated[float, Field(gt=0, le=1)] = 1.0
    """share of the records that is read, by hash of `seed` and origin"""
    seed: int = 0
    """which records `sample` picks"""
    cap: Positive | None = None
    """most documents of the source; not a sample, see below"""
    content: Content = "auto"
    """`html`: the text is HTML still to be extracted; `text`: it is not; `auto`: text in JSONL and Parquet, by media
    type in archives"""
    text_field: Annotated[str, Field(min_length=1)] = "text"
    """field that holds the text; `a.b` is field b of object a, unless there is a field `a.b`"""
    url_field: str = "url"
    """field that holds the address"""
    date_field: str = "date"
    """field that becomes meta `date`, which `rank.prefer: newest` reads"""
    id_field: str = ""
    """field that becomes meta `record_id`; empty: none"""
    meta_fields: tuple[str, ...] = ()
    """fields that are kept in provenance under their own names; those of objects become JSON"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        for field, value in (("name", self.name), ("domain", self.domain or self.name)):
            if not re.fullmatch(r"[a-z0-9][a-z0-9_.-]{0,63}", value):
                named = "up to 64 lower-case letters, digits, '_', '.' and '-' are allowed"
                raise ValueError(f"{field}: {value!r} given, {named}")
        if not self.paths or not all(self.paths):
            raise ValueError(f"paths: {list(self.paths)} given, one or more file names or globs are allowed")
        return self


class LimitParams(Params):
    """Sizes above which a record is skipped as "too-large". A reader's memory stays under four times
    max_decompressed_bytes."""

    max_record_bytes: Positive = 10_000_000
    """one document's raw content, decoded; larger ones are skipped as `too-large`"""
    max_decompressed_bytes: Annotated[int, Field(ge=1, le=1 << 30)] = 64_000_000
    """what may be held to get at it: a record of an archive, a line of JSONL, a layer of content encoding"""
    max_meta_bytes: Positive = 65_536
    """address and meta fields of a record of JSONL, Parquet or documents together, which are held for whole batches of
    documents; above: `meta-too-large`"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.max_record_bytes > self.max_decompressed_bytes:
            raise ValueError(
                f"max_record_bytes: {self.max_record_bytes} given, 1 to max_decompressed_bytes is allowed"
                f" ({self.max_decompressed_bytes})"
            )
        return self


@dataclass(frozen=True)
class ReadTask:
    """A file, or part `part` of `parts` of it, and what a reader must know of its source. Travels as JSON bytes.

    file_index: place of the file in the source's sorted listing. size: bytes of the whole file. cap: most documents
    to take from this file, None for all. own_meta: names that stages note in meta, which no input may use;
    carried_meta: those of them that documents of an earlier run may bring along.
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
    own_meta: tuple[str, ...] = ()
    carried_meta: tuple[str, ...] = ()

    def to_json(self) -> bytes:
        return orjson.dumps(asdict(self), option=orjson.OPT_SORT_KEYS)

    @classmethod
    def from_json(cls, data: bytes) -> "ReadTask":
        task = cls(**orjson.loads(data))
        own, carried = tuple(task.own_meta), tuple(task.carried_meta)
        return replace(task, meta_fields=tuple(task.meta_fields), own_meta=own, carried_meta=carried)

    def origin(self, offset: int) -> str:
        return f"{self.path}@{offset}"

    def position(self, offset: int) -> int:
        return self.file_index << 40 | offset

    def samples(self, origin: str) -> bool:
        """Whether the record at `origin` belongs to the sample."""
        return self.sample >= 1 or hash64("sample", self.seed, origin) < self.sample * 2**64


def plan_sources(
    sources: Sequence[SourceParams], split_bytes: int = 64 << 20, notes: Sequence[Note] = ()
) -> list[ReadTask]:
    """The tasks that read `sources`, in order of source, file and part. Runs where the job is launched.

    Uncompressed JSONL and Parquet are cut into parts of about `split_bytes` bytes, compressed JSONL into at most 8
    parts of a quarter of that; WARC files, and files of a source with a cap, are read whole. Lists the files (one
    request per pattern) and opens large Parquet files for their number of row groups. notes: what the stages of the run
    note in meta.

    Raises ValueError, one line, if two sources have one name, a pattern matches nothing, or a file's format is unknown.
    """
    names = [source.name for source in sources]
    if len(set(names)) < len(names):
        raise ValueError(f"sources: names {names} given, each name is allowed once")
    return [task for source in sources for task in plan_source(source, split_bytes, notes)]


def plan_source(source: SourceParams, split_bytes: int, notes: Sequence[Note] = ()) -> list[ReadTask]:
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
            own_meta=tuple(note.name for note in notes),
            carried_meta=tuple(note.name for note in notes if note.carried),
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
            # Beam finds nothing for a bare "*.jsonl": it lists the folder "".
            placed = pattern if "/" in pattern else f"./{pattern}"
            found: list[FileMetadata] = FileSystems.match([placed])[0].metadata_list
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
