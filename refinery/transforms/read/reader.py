"""The declaration of a format of sources: everything that the rest of the project must know of it, in its own file.

    MBOX = Reader(
        name="mbox",
        version=1,
        summary="a message of a mailbox",
        offset="byte in the decompressed file",
        read=read_mbox,
    )

From it come what recipes may say, endings, the planning of parts, the check of sources before a run, records read again
at their origins, the reasons of the stage `read`, fingerprints, the pages and the JSON schema. See docs/extending.md,
"A reader". No Beam here.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from refinery.transforms.core.answers import Damaged, Skipped
from refinery.transforms.core.document import RawDocument
from refinery.transforms.core.params import Params
from refinery.transforms.core.stage import Reason
from refinery.transforms.read.byte_source import ByteSource
from refinery.transforms.read.task import LimitParams, ReadTask

Records = Iterator[RawDocument | Skipped | Damaged]

COMPRESSIONS = ("", ".gz", ".zst", ".lz4")
COMPRESSION_LIBRARIES = ("fastwarc", "isal", "zstandard")  # that decompress, for readers that take compressed files
# Fields of `SourceParams` that readers of records with named fields read.
NAMED = ("content", "text_field", "url_field", "date_field", "id_field", "meta_fields", "fields")
NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
ERROR = re.compile(r"[A-Z][A-Za-z0-9]{0,63}")  # what Damaged calls damage
ENDING = re.compile(r"(\.[a-z0-9_+-]+)+")
TUPLES = ("endings", "refused", "magic", "fields", "reasons", "libraries")


def ends_with(path: str, endings: Iterable[str], compressed: bool = True) -> bool:
    """Whether a file's name has one of these endings, in any case; compressed: or that and one of compression."""
    more = COMPRESSIONS if compressed else ("",)
    return path.lower().endswith(tuple(ending + compression for ending in endings for compression in more))


def one_part(task: ReadTask, split_bytes: int) -> int:
    """A file that is read by one reader."""
    return 1


def all_of_it(task: ReadTask, source: ByteSource, offset: int) -> ReadTask:
    """A file of which no part is known that holds an offset."""
    return task


@dataclass(frozen=True)
class Split:
    """How a file is cut into parts, which together give the records of the whole.

    count: called with the task of all of a file and the bytes that a part may have; returns the number of parts, with a
    look at no more than a local file's first bytes. narrow: called with that task, the open file and an offset as in
    origins; returns the task of a part that holds the record there.
    """

    count: Callable[[ReadTask, int], int] = one_part
    narrow: Callable[[ReadTask, ByteSource, int], ReadTask] = all_of_it


WHOLE = Split()


@dataclass(frozen=True, kw_only=True)
class Reader:
    """A format, declared. Frozen; compared by identity of its parts.

    name: what a recipe calls it, of lower-case letters, digits and hyphens. version: raised whenever the same bytes
    give other records; part of the fingerprint. summary: what a record is, for the table of formats. offset: what the
    number in an origin counts, for that table. read: called as read(task, source, limits) -> iterator of RawDocument,
    Skipped and Damaged, in the order of the file. It opens nothing: `source` has the bytes of the file as they are
    stored, `MemberStream(source)` those behind gzip, Zstandard and LZ4. Same bytes, same records. What it raises costs
    the rest of the file as one dead letter; OSError alone, when the storage fails, ends the work on it.

    title: what people call a file of it, "a Parquet file" (default: from the name). endings: of names of files, before
    those of compression. refused: (ending, why) of files that are taken for it, and are not. magic: how a decompressed
    file begins. compressed: whether compressed files are taken.
    split: how a file is cut into parts (default: not). in_pieces: whether it is read where an index says, so there
    is not a checksum of all of it. enters: whether the reader may begin in the middle of a file, at the offset of a
    record. named_fields: whether a record has fields with names, which lanes need that read more than a text.
    keeps_origins: whether records have the origins of an earlier run instead of their own. text_share: bytes of text in
    a decompressed byte, about, for estimates of a run's disk.

    fields: names of the fields of `SourceParams` that it reads. options: the parameter class of what it alone can be
    told, further keys of a source; `task.options` is an instance. reasons: those of its own for Skipped, beside the
    ones of the stage `read`. libraries: distributions whose version decides the result. check: called as check(task)
    before a run; returns a line about what would be misread, "" for nothing. explain: called as explain(task, source)
    where the first records hold no document; returns a line about why, "" where it does not know. NO_DOCUMENT in it
    stands for what was found instead (explain.py). names: called as names(task, source, limits); returns the names of
    the fields of the first records, in order, none where they cannot be read. Without it the text is never looked for
    under a name other than `text_field`.
    """

    name: str
    version: int
    summary: str
    offset: str
    read: Callable[[ReadTask, ByteSource, LimitParams], Records]
    title: str = ""
    endings: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    magic: tuple[bytes, ...] = ()
    compressed: bool = True
    split: Split = WHOLE
    in_pieces: bool = False
    enters: bool = False
    named_fields: bool = False
    keeps_origins: bool = False
    text_share: float = 1.0
    fields: tuple[str, ...] = ()
    options: type[Params] | None = None
    reasons: tuple[Reason, ...] = ()
    libraries: tuple[str, ...] = ()
    check: Callable[[ReadTask], str] | None = None
    explain: Callable[[ReadTask, ByteSource], str] | None = None
    names: Callable[[ReadTask, ByteSource, LimitParams], Iterable[str]] | None = None
    module: str = field(default="", compare=False)  # "module:NAME" of a user's own

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name) or self.name == "auto":
            raise ValueError(f"reader: name {self.name!r} given, lower-case letters, digits and hyphens are allowed")
        if not isinstance(self.version, int) or self.version < 1:
            raise ValueError(f"reader {self.name}: version {self.version!r} given, 1 or more is allowed")
        for what in TUPLES:
            if not isinstance(getattr(self, what), tuple):
                given = type(getattr(self, what)).__name__
                raise ValueError(f"reader {self.name}: {what} of type {given} given, a tuple is allowed")
        if not callable(self.read) or not isinstance(self.split, Split):
            raise ValueError(
                f"reader {self.name}: read {self.read!r}, split {self.split!r} given, a function and a Split"
            )
        if not all(isinstance(reason, Reason) for reason in self.reasons):
            raise ValueError(f"reader {self.name}: reasons {self.reasons!r} given, a tuple of Reason is needed")
        for ending in self.endings:
            if not ENDING.fullmatch(ending) or ending in COMPRESSIONS:
                raise ValueError(f"reader {self.name}: ending {ending!r} given, such as '.{self.name}' is allowed")
        if not all(isinstance(start, bytes) and start for start in self.magic):
            raise ValueError(f"reader {self.name}: magic {self.magic!r} given, bytes that are not empty are allowed")
        if self.options is not None and not (isinstance(self.options, type) and issubclass(self.options, Params)):
            raise ValueError(f"reader {self.name}: options {self.options!r} given, a subclass of Params is needed")

    @property
    def called(self) -> str:
        """What a file of it is, for messages: "a Parquet file"."""
        return self.title or f"a file of the format {self.name}"
