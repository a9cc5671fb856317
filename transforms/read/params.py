"""What a recipe says about its sources, the formats of their files, and the sizes above which a record is skipped."""

import re
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from refinery.transforms.core.params import Params, Positive
from refinery.transforms.read.values.dialects import Dialect

Format = Literal["auto", "warc", "wet", "arc", "jsonl", "parquet", "csv", "tsv", "text", "documents"]
Content = Literal["auto", "html", "text"]

COMPRESSIONS = ("", ".gz", ".zst", ".lz4")
ENDINGS: dict[str, Format] = {".warc": "warc", ".wet": "wet", ".arc": "arc"}
ENDINGS |= {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet"}
ENDINGS |= {".csv": "csv", ".tsv": "tsv", ".txt": "text", ".html": "text", ".htm": "text"}

IN_PIECES: frozenset[Format] = frozenset({"parquet", "documents"})  # read where a footer says, so without a checksum


class SourceParams(Params):
    """One source of documents. In a recipe, an element of `sources`."""

    name: str
    """name in the funnel and in provenance: up to 64 lower-case letters, digits, `_` `.` `-`"""
    paths: tuple[str, ...] = ()
    """files, globs or folders: local, `gs://`, `s3://`, `https://` (files alone) or `hf://datasets/NAME@REVISION`; what
    matches nothing stops the run before it starts"""
    path_lists: tuple[str, ...] = ()
    """files of addresses, one a line, as Common Crawl's `warc.paths.gz`; a relative one starts at the list's host or
    bucket, for a local list at its folder"""
    config: str = ""
    """configuration of an `hf://` data set that is named without files; empty: its default"""
    split: Annotated[str, Field(min_length=1)] = "train"
    """splits of such a data set, a glob"""
    enabled: bool = True
    """off: nothing of it is read"""
    max_files: Positive | None = None
    """most files, chosen by hash of `seed` and path: a cheap sample of a source that is too large"""
    target: Positive | None = None
    """most tokens of the source in the corpus: those of a share of its documents, by hash of their ids; needs nothing
    before phase 3 again"""
    format: Format = "auto"
    """`auto` goes by the file's ending"""
    dialect: Dialect = "auto"
    """how CSV and TSV are written: `rfc4180` with quoted fields, quotes in them doubled; `backslash` the same, or a
    backslash before them; `plain` without quoting, a line is a row; `escaped` likewise, with backslash escapes; `auto`:
    CSV is `rfc4180`, and a TSV file is judged by its first fields that begin with a quote"""
    unit: Literal["file", "paragraph", "line"] = "file"
    """what is a document in a text file; paragraphs end at an empty line"""
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
    """`html`: the text is HTML still to be extracted; `text`: it is not; `auto`: by media type in archives, HTML in
    files that end in `.html`, else text"""
    keep_truncated: bool = False
    """what a cut archive (plain, gzip, Zstandard) holds of its last page becomes a document with meta `truncated`, and
    what is missing stays a dead letter"""
    text_field: Annotated[str, Field(min_length=1)] = "text"
    """field that holds the text; `a.b` is field b of object a, unless there is a field `a.b`"""
    url_field: str = "url"
    """field that holds the address, or how it is put together of several: `"{repo}@{commit}/{path}"`, which gives none
    where one of them is missing"""
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
        given = (*self.paths, *self.path_lists)
        if not given or not all(given):
            raise ValueError(f"paths: {list(self.paths)} given, one or more file names or globs are allowed")
        if self.config and not any(path.startswith("hf://") for path in self.paths):
            raise ValueError(f"config: {self.config!r} given, only hf://datasets/NAME@REVISION has configurations")
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


def format_of(path: str, source: str) -> Format:
    """The format that the ending of `path` stands for. Raises ValueError, which names the source, for another one."""
    if re.search(r"\.wat(\.gz|\.zst|\.lz4)?$", path.lower()):
        raise ValueError(
            f"source {source}: {path} is WAT: it holds links and headers, and no text; read the WARC or WET file "
            "of the same name"
        )
    for compression in COMPRESSIONS:
        for ending, name in ENDINGS.items():
            if path.lower().endswith(ending + compression) and (name != "parquet" or not compression):
                return name
    allowed = f"{', '.join(ENDINGS)} (all but .parquet also with {', '.join(COMPRESSIONS[1:])})"
    raise ValueError(f"source {source}: format: {path} has an unknown ending, allowed are {allowed}; or name a format")
