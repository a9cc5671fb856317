"""What a reader is given: which file, or part of one, how its source is to be read, and within which sizes."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, Literal, Self

import orjson
from pydantic import Field, model_validator

from refinery.transforms.core.document import OFFSET_BITS, hash64
from refinery.transforms.core.params import Params, Positive
from refinery.transforms.read.values.dialects import Dialect

# Groups of findings: records, or columns of tables, that have the name of a label.
CLASH, COLUMN_CLASH = "field-and-label", "column-and-label"
# Fields that a task has no word of where it has none: most tasks have not, nor had those of earlier versions.
OMITTED = ("options", "fields", "labels", "may_lack_text", "payer", "poison_records")
Content = Literal["auto", "html", "text"]
# What sources of the lane chat hold: conversations, or texts that bring the spans that are trained.
CHAT, SPANS = "chat", "spans"
AUTO = "auto"  # text_field of these: the usual ones
TURNS = ("messages", "conversations")
LOSS_SPANS = "loss_spans"  # of a record of SPANS: pairs of characters, start and end
FURTHER: Mapping[str, tuple[str, ...]] = {
    CHAT: ("tools", "functions", "system", "finish_reason", "weight", "train", "masked"),
    SPANS: (LOSS_SPANS,),
}


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
    max_window_bytes: Annotated[int, Field(ge=1 << 10, le=1 << 31)] = 1 << 27
    """what a Zstandard file may ask for to look back into, beside the bound above; 2147483648 for dumps that were made
    with `--long=31`; above: dead letter `WindowTooLarge`"""

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
    to take from this file, None for all. version: what a remote file's storage knows it by. own_meta: names that stages
    note in meta, which no input may use; carried_meta: those of them that documents of an earlier run may bring along.
    changed: when a local file was last written to, in nanoseconds; 0 if that is not known. crc32c: of all of the file,
    in hexadecimal, where that was known before it is read. poison: worker processes died while they read it; it is one
    dead letter, and not opened. poison_records: origins, as they are printed, of records on which they died; each is a
    dead letter. moved: where the file is now, if it is no longer at `path`, under which its records are
    known. fields: what is kept of its records beside the text, as in `SourceParams`. labels: names of fields that rows
    will get; a record that has one of that name already says so (CLASH). may_lack_text: whether a line of JSON without
    the field is one with an empty text, and no damage. options: parameters of a reader that declares its own; an
    instance of their class inside the reader, plain data on the way there. payer: the project that pays for reading it.
    """

    path: str
    format: str
    source: str
    file_index: int
    size: int
    part: int = 0
    parts: int = 1
    cap: int | None = None
    sample: float = 1.0
    seed: int = 0
    content: Content | Literal["chat", "spans"] = "auto"
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
    fields: Literal["keep"] | tuple[str, ...] = ()
    options: Any = field(default_factory=dict, hash=False)
    labels: tuple[str, ...] = ()
    may_lack_text: bool = False
    payer: str = ""
    poison_records: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Where the file is."""
        return self.moved or self.path

    @property
    def share_bytes(self) -> int:
        """Bytes of its share of the file."""
        return self.size // max(1, self.parts)

    @property
    def content_fields(self) -> tuple[str, ...]:
        """The fields of a record one of which it must have: that of the text, or of the turns."""
        if self.text_field != AUTO or self.content not in FURTHER:
            return (self.text_field,)
        return TURNS if self.content == CHAT else ("text",)

    @property
    def further_fields(self) -> tuple[str, ...]:
        """The fields beside them of records that go on as a whole."""
        return FURTHER.get(self.content, ())

    def to_json(self) -> bytes:
        plain = asdict(self)
        for name in OMITTED:
            if not plain[name]:
                del plain[name]
        return orjson.dumps(plain, option=orjson.OPT_SORT_KEYS)

    @classmethod
    def from_json(cls, data: bytes) -> "ReadTask":
        task = cls(**orjson.loads(data))
        own, carried = tuple(task.own_meta), tuple(task.carried_meta)
        fields = task.fields if task.fields == "keep" else tuple(task.fields)
        meta, labels, poison = tuple(task.meta_fields), tuple(task.labels), tuple(task.poison_records)
        task = replace(task, meta_fields=meta, own_meta=own, carried_meta=carried, fields=fields)
        return replace(task, labels=labels, poison_records=poison)

    def clashes(self, names: Collection[str], group: str = CLASH) -> tuple[str, ...]:
        """What a record with fields of these names, or a row of such a table, says of labels of the same names."""
        return tuple(f"{group}/{label}" for label in self.labels if label in names)

    def origin(self, offset: int) -> str:
        return f"{self.path}@{offset}"

    def position(self, offset: int) -> int:
        return self.file_index << OFFSET_BITS | offset

    def samples(self, origin: str) -> bool:
        """Whether the record at `origin` belongs to the sample."""
        return self.sample >= 1 or hash64("sample", self.seed, origin) < self.sample * 2**64
