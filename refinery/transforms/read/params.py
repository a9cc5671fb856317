"""What a recipe says about its sources. What the formats are, their declarations say: registry.py."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    Field,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    WrapValidator,
    field_validator,
    model_serializer,
    model_validator,
)

from refinery.loader.format.kept_columns import COLUMN_NAME, parse_type
from refinery.transforms.core.params import Params, Positive
from refinery.transforms.core.wording import given
from refinery.transforms.read.registry import REFERENCE, is_own, reader_names
from refinery.transforms.read.task import Content, LimitParams
from refinery.transforms.read.usual_fields import USUAL_TEXT_FIELDS
from refinery.transforms.read.values.dialects import Dialect

__all__ = ["LimitParams", "SourceParams"]

if TYPE_CHECKING:
    Known = str
else:
    Known = Literal["auto", *reader_names()]


def _or_own(value: Any, known: Callable[[Any], str]) -> str:
    return value if isinstance(value, str) and is_own(value) else known(value)


def _describe(schema: dict[str, Any]) -> None:
    """In JSON schemas: one of our names, or module:NAME."""
    schema["anyOf"] = [{"enum": schema.pop("enum")}, {"pattern": f"^{REFERENCE.pattern}$"}]


Format = Annotated[
    Known, WrapValidator(_or_own), PlainSerializer(str, return_type=str), Field(json_schema_extra=_describe)
]


class SourceParams(Params):
    """One source of documents. In a recipe, an element of `sources`."""

    LATER: ClassVar[tuple[str, ...]] = ("fields", "field_types")

    # Fields that may hold the text where a recipe names none and the default of `text_field` is not there.
    TEXT_FIELDS: ClassVar[Mapping[str, str]] = USUAL_TEXT_FIELDS

    name: str
    """name in the funnel and in provenance: up to 64 lower-case letters, digits, `_` `.` `-`"""
    paths: tuple[str, ...] = ()
    """files, globs or folders: local, `gs://`, `s3://`, `https://` (only files) or `hf://datasets/NAME@REVISION`; a
    path that matches nothing stops the run before it starts"""
    path_lists: tuple[str, ...] = ()
    """files with one address a line, such as Common Crawl's `warc.paths.gz`; a relative address starts at the host or
    bucket of the list, or at the folder of a local list"""
    config: str = ""
    """configuration of an `hf://` data set whose path names no files; empty: the default configuration"""
    split: Annotated[str, Field(min_length=1)] = "train"
    """glob of the splits of such a data set"""
    enabled: bool = True
    """off: the source is not read"""
    requester_pays: Annotated[str, Field(pattern="^([a-z0-9.:-]{1,100})?$")] = ""
    """project that pays for reading `gs://` buckets with requester pays; for `s3://` `requester`, and the account pays
    whose keys sign the requests"""
    max_files: Positive | None = None
    """maximum number of files, chosen by hash of `seed` and path; a cheap sample of a large source"""
    target: Positive | None = None
    """maximum tokens of the source in the corpus; documents are sampled by hash of their ids; a new value repeats
    only phase 3"""
    format: Format = "auto"
    """`auto`: by the ending of the file; or your own reader, as `module:NAME` of its declaration, in a module beside
    the recipe or an installed package, or the name of an entry point in the group `refinery.readers`"""
    options: Mapping[str, Any] = {}
    """parameters of your own reader; they may also be keys of the source itself"""
    dialect: Dialect = "auto"
    """how CSV and TSV are written: `rfc4180` with quoted fields, quotes in them doubled; `backslash` the same, or a
    backslash before them; `plain` without quoting, a line is a row; `escaped` likewise, with backslash escapes; `auto`:
    CSV is `rfc4180`, and a TSV file is judged by its first fields that begin with a quote"""
    unit: Literal["file", "paragraph", "line"] = "file"
    """what counts as a document in a text file; paragraphs end at an empty line"""
    domain: str = ""
    """folder of the shards; empty: the source's name"""
    priority: Annotated[int, Field(ge=0, le=65535)] = 0
    """among copies, the document of the source with the lowest number is kept"""
    sample: Annotated[float, Field(gt=0, le=1)] = 1.0
    """share of the records that are read, chosen by hash of `seed` and origin"""
    seed: int = 0
    """decides which records `sample` picks"""
    cap: Positive | None = None
    """maximum number of documents of the source; not a sample, see below"""
    content: Content = "auto"
    """`html`: the text is HTML that must be extracted; `text`: plain text; `auto`: by media type in archives, HTML
    in files that end in `.html`, otherwise text"""
    keep_truncated: bool = False
    """the readable part of the last page of a truncated archive (plain, gzip, Zstandard) becomes a document with meta
    `truncated`; the missing part stays a dead letter"""
    text_field: Annotated[str, Field(min_length=1)] = "text"
    """field that holds the text; `a.b` is field b of object a, unless there is a field `a.b`. Not given, and no field
    of the default's name there: the one field of a [usual name](sources/fields.md#text-fields) that holds text"""
    url_field: str = "url"
    """field that holds the address, or a template of several fields such as `"{repo}@{commit}/{path}"`; a missing field
    means no address"""
    date_field: str = "date"
    """field that becomes meta `date`, which `rank.prefer: newest` reads"""
    id_field: str = ""
    """field that becomes meta `record_id`; empty: none"""
    meta_fields: tuple[str, ...] = ()
    """fields that are kept in provenance under their own names; those of objects become JSON"""
    fields: Literal["keep"] | tuple[str, ...] = ()
    """`keep`: all fields of the records but the text, or the names of some; as a JSON object in the column `fields`, or
    as keys of the lines of JSON Lines"""
    field_types: Mapping[str, Any] = {}
    """names of kept fields to types of columns, in a corpus of texts: [types](sources/fields.md#types); nothing: those
    of Parquet files, as their footers say"""

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without `options` and `requester_pays` where there are none: most sources have none, nor had those of earlier
        versions."""
        data: dict[str, Any] = write(self)
        return {key: value for key, value in data.items() if value or key not in ("options", "requester_pays")}

    def idle(self) -> Iterator[tuple[str, str]]:
        """Keys of sampling and of data sets on the hub that have no effect here."""
        if self.sample == 1 and self.max_files is None:
            yield "seed", "neither sample nor max_files is given"
        if not any(path.startswith("hf://") for path in self.paths):
            yield "split", "only hf:// data sets have splits"
        if not any(path.startswith(("gs://", "s3://")) for path in (*self.paths, *self.path_lists)):
            yield "requester_pays", "no path is on gs:// or s3://"

    @field_validator("fields", mode="before")
    @classmethod
    def _keep_or_names(cls, value: Any) -> Any:
        if value != "keep" and not (isinstance(value, tuple) and all(isinstance(name, str) for name in value)):
            raise ValueError(f"{given(value)} given, `keep` or a list of names is allowed")
        return value

    @field_validator("field_types")
    @classmethod
    def _types(cls, types: Mapping[str, Any]) -> Mapping[str, Any]:
        for name, plain in types.items():
            if not COLUMN_NAME.fullmatch(name):
                raise ValueError(f"{name!r:.80} given, a name of letters, digits and _ is allowed for a column")
            try:
                parse_type(plain)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        return types

    @model_validator(mode="after")
    def _check(self) -> Self:
        for field, value in (("name", self.name), ("domain", self.domain or self.name)):
            if not re.fullmatch(r"[a-z0-9][a-z0-9_.-]{0,63}", value):
                named = "up to 64 lower-case letters, digits, '_', '.' and '-' are allowed"
                raise ValueError(f"{field}: {value!r} given, {named}")
        listed: tuple[str, ...] = () if self.fields == "keep" else self.fields
        if taken := {self.text_field, self.url_field, *self.meta_fields}.intersection(listed):
            raise ValueError(f"fields: {min(taken)!r} given, which has a column of its own; any other field is allowed")
        if self.options and not is_own(self.format):
            raise ValueError(f"options: given with format {self.format!r}, only your own reader can have options")
        given = (*self.paths, *self.path_lists)
        if not given or not all(given):
            raise ValueError(f"paths: {list(self.paths)} given, one or more file names or globs are allowed")
        if self.config and not any(path.startswith("hf://") for path in self.paths):
            raise ValueError(f"config: {self.config!r} given, only hf://datasets/NAME@REVISION has configurations")
        return self
