"""What is to be read: the parameters of a source, and the planning that makes tasks of it, one per file or part."""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import orjson

from refinery.transforms.core.document import hash64
from refinery.transforms.core.stage import Note
from refinery.transforms.read.find_files import find_files
from refinery.transforms.read.params import COMPRESSIONS, Content, Format, LimitParams, SourceParams, format_of
from refinery.transforms.read.values.dialects import Dialect
from refinery.transforms.remote.files import Found, is_remote

__all__ = ["Content", "Format", "LimitParams", "ReadTask", "SourceParams", "plan_source", "plan_sources"]

MAX_STRIDES = 8  # readers of one compressed file: each inflates all of it, which costs 1/10 to 1/20 of the funnel
COMPRESSED_RATIO = 4  # compressed text counts four times its size: 64 MB of text per part, 16 MB compressed


@dataclass(frozen=True)
class ReadTask:
    """A file, or part `part` of `parts` of it, and what a reader must know of its source. Travels as JSON bytes.

    file_index: place of the file in the source's sorted listing. size: bytes of the whole file. cap: most documents
    to take from this file, None for all. version: what a remote file's storage knows it by. own_meta: names that stages
    note in meta, which no input may use; carried_meta: those of them that documents of an earlier run may bring along.
    changed: when a local file was last written to, in nanoseconds; 0 if that is not known. crc32c: of all of the file,
    in hexadecimal, where that was known before it is read. poison: worker processes died while they read it; it is one
    dead letter, and not opened. moved: where the file is now, if it is no longer at `path`, under which its records are
    known.
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
    version: str = ""
    unit: str = "file"
    keep_truncated: bool = False
    changed: int = 0
    poison: bool = False
    moved: str = ""
    crc32c: str = ""
    dialect: Dialect = "auto"

    @property
    def place(self) -> str:
        """Where the file is."""
        return self.moved or self.path

    @property
    def share_bytes(self) -> int:
        """Bytes of its share of the file."""
        return self.size // max(1, self.parts)

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
    sources: Sequence[SourceParams],
    split_bytes: int = 64 << 20,
    notes: Sequence[Note] = (),
    readers: Sequence[str] = (),
) -> list[ReadTask]:
    """The tasks that read `sources`, in order of source, file and part. Runs where the job is launched.

    Uncompressed JSONL and Parquet are cut into parts of about `split_bytes` bytes, compressed JSONL into at most 8
    parts of a quarter of that; other files, and files of a source with a cap, are read whole. Lists the files (one
    request for 1,000 files of a pattern, of https:// one per file) and opens none. notes: what the stages of the run
    note in meta. readers: the formats that the run's lane reads; all without any.

    Raises ValueError, one line, if two sources have one name, a pattern matches nothing, or a file's format is unknown
    or none of `readers`.
    """
    names = [source.name for source in sources]
    if len(set(names)) < len(names):
        raise ValueError(f"sources: names {names} given, each name is allowed once")
    if not any(source.enabled for source in sources):
        raise ValueError(f"sources: {names} given, all of them off; at least one that is `enabled` is needed")
    tasks = [task for source in sources if source.enabled for task in plan_source(source, split_bytes, notes)]
    foreign = next((task for task in tasks if readers and task.format not in readers), None)
    if foreign is not None:
        raise ValueError(
            f"source {foreign.source}: format: {foreign.path} is {foreign.format}, {', '.join(readers)} is allowed in "
            "this lane"
        )
    return tasks


def plan_source(source: SourceParams, split_bytes: int, notes: Sequence[Note] = ()) -> list[ReadTask]:
    """The tasks of one source, in order of file and part."""
    files = find_files(source)
    tasks = []
    for index, file in enumerate(files):
        share = None if source.cap is None else source.cap // len(files) + (index < source.cap % len(files))
        if share == 0:
            continue
        whole = whole_file(source, file, index, share, notes)
        parts = 1 if share is not None else count_parts(whole, split_bytes)
        tasks += [replace(whole, part=part, parts=parts) for part in range(parts)]
    return tasks


def changed_at(path: str) -> int:
    """When a local file was last written to, in nanoseconds; 0 for others, and for one that has gone."""
    if "://" in path:
        return 0
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def whole_file(
    source: SourceParams, file: Found, index: int = 0, cap: int | None = None, notes: Sequence[Note] = ()
) -> ReadTask:
    """The task that reads all of one file. index: its place in the source's listing."""
    path = file.path
    return ReadTask(
        path=path,
        format=format_of(path, source.name) if source.format == "auto" or ".wat" in path else source.format,
        source=source.name,
        file_index=index,
        size=file.size,
        cap=cap,
        sample=source.sample,
        seed=source.seed,
        content=source.content,
        keep_truncated=source.keep_truncated,
        text_field=source.text_field,
        url_field=source.url_field,
        date_field=source.date_field,
        id_field=source.id_field,
        version=file.version,
        unit=source.unit,
        dialect=source.dialect,
        meta_fields=source.meta_fields,
        own_meta=tuple(note.name for note in notes),
        carried_meta=tuple(note.name for note in notes if note.carried),
        changed=changed_at(path),
    )


def count_parts(task: ReadTask, split_bytes: int) -> int:
    """Into how many parts the file of `task` is cut."""
    if task.format == "jsonl" or (task.format == "text" and task.unit == "line"):
        if task.path.lower().endswith(COMPRESSIONS[1:]):
            if is_remote(task.path):  # every reader would fetch all of it
                return 1
            return min(MAX_STRIDES, max(1, -(-task.size * COMPRESSED_RATIO // split_bytes)))
        return max(1, -(-task.size // split_bytes))
    if task.format in ("parquet", "documents") and task.size > split_bytes:
        # Parts beyond the row groups are empty, which costs less than a look into thousands of files before each start.
        return -(-task.size // split_bytes)
    return 1
