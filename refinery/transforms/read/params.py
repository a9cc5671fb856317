"""What a recipe says about its sources. What the formats are, their declarations say: registry.py."""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    Field,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    WrapValidator,
    model_serializer,
    model_validator,
)

from refinery.transforms.core.params import Params, Positive
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

    # Fields that may hold the text where a recipe names none and the default of `text_field` is not there.
    TEXT_FIELDS: ClassVar[Mapping[str, str]] = USUAL_TEXT_FIELDS

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
    """`auto` goes by the file's ending; or a reader of your own: `module:NAME` of its declaration, in a module beside
    the recipe or an installed package, or the name of an entry point in the group `refinery.readers`"""
    options: Mapping[str, Any] = {}
    """parameters of a reader of your own; they may stand in the source itself"""
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
    """field that holds the text; `a.b` is field b of object a, unless there is a field `a.b`. Not given, and no field
    of the default's name there: the one field of a [usual name](sources.md#text-fields) that holds text"""
    url_field: str = "url"
    """field that holds the address, or how it is put together of several: `"{repo}@{commit}/{path}"`, which gives none
    where one of them is missing"""
    date_field: str = "date"
    """field that becomes meta `date`, which `rank.prefer: newest` reads"""
    id_field: str = ""
    """field that becomes meta `record_id`; empty: none"""
    meta_fields: tuple[str, ...] = ()
    """fields that are kept in provenance under their own names; those of objects become JSON"""

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without `options` where there are none: most sources have none, and earlier versions knew of none."""
        data: dict[str, Any] = write(self)
        return {key: value for key, value in data.items() if value or key != "options"}

    @model_validator(mode="after")
    def _check(self) -> Self:
        for field, value in (("name", self.name), ("domain", self.domain or self.name)):
            if not re.fullmatch(r"[a-z0-9][a-z0-9_.-]{0,63}", value):
                named = "up to 64 lower-case letters, digits, '_', '.' and '-' are allowed"
                raise ValueError(f"{field}: {value!r} given, {named}")
        if self.options and not is_own(self.format):
            raise ValueError(f"options: given with format {self.format!r}, a reader of your own may have some")
        given = (*self.paths, *self.path_lists)
        if not given or not all(given):
            raise ValueError(f"paths: {list(self.paths)} given, one or more file names or globs are allowed")
        if self.config and not any(path.startswith("hf://") for path in self.paths):
            raise ValueError(f"config: {self.config!r} given, only hf://datasets/NAME@REVISION has configurations")
        return self
