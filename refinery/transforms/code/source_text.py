"""The first stage of the lane of source code: files as they are read become texts, and stay as they are otherwise.

Main-text extraction and the cleaning of prose (`transforms/extract/`) have no place here: indentation, runs of empty
lines, form feeds and characters outside NFC are part of a program. What is made one form is what git and editors make
one form: the encoding, a byte order mark, and line ends.
"""

from collections.abc import Mapping
from typing import ClassVar

from refinery.transforms.core.document import Document, Drop, RawDocument, document_id
from refinery.transforms.core.params import Params
from refinery.transforms.core.stage import Note, Reason, Stage
from refinery.transforms.extract.charset import decode_page
from refinery.transforms.read.params import SourceParams
from refinery.transforms.read.usual_fields import USUAL_CODE_FIELDS

FIELDS = (
    Note("repo", str, "the repository"),
    Note("commit", str, "its commit"),
    Note("path", str, "the file's path in it"),
    Note("repo_license", str, "SPDX expression of the nearest licence file"),
)


class SourceFilesParams(SourceParams):
    """A source of files: records with `repo`, `commit`, `path` and `content`, as `SourceParams` with other defaults."""

    TEXT_FIELDS: ClassVar[Mapping[str, str]] = USUAL_CODE_FIELDS

    text_field: str = "content"
    """field that holds the file's text"""
    url_field: str = "{repo}@{commit}/{path}"
    """field that holds the address, or how it is put together of several, which gives none where one of them is
    missing"""
    meta_fields: tuple[str, ...] = tuple(field.name for field in FIELDS)
    """fields that are kept in provenance under their own names; the lane reads `path` and `repo_license`, the SPDX
    expression of the nearest licence file"""


class SourceTextParams(Params):
    """How files become texts."""

    line_feeds: bool = True
    """CRLF and CR become LF; off: line ends stay as they are"""


def read_source_text(raw: RawDocument, params: SourceTextParams) -> Document | Drop:
    """The file's text with its id: decoded, without a byte order mark, lines ended alike, nothing else changed.

    Bytes are decoded as `decode_page` does it: by a byte order mark, as UTF-8, or by what their words say. A NUL makes
    a file binary, as it does to git (buffer_is_binary in its xdiff-interface.c). HTML stays as it is: it is source.
    Linear; the size of a record is limited where it is read.
    """
    content = raw.content
    text = decode_page(content, raw.charset, is_html=False) if isinstance(content, bytes) else content
    text = text.removeprefix("\ufeff")
    if "\0" in text:
        return Drop("binary")
    if params.line_feeds and "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text or text.isspace():
        return Drop("empty")
    return Document(document_id(text), text, raw.url, raw.source, raw.origin, raw.position, raw.meta)


SOURCE_TEXT = Stage(
    name="source-text",
    version=2,
    summary="Turn files into texts: one encoding, one kind of line end, and nothing else changed.",
    params=SourceTextParams,
    judge=read_source_text,
    optional=False,
    libraries=("resiliparse",),
    reasons=(
        Reason("binary", "a NUL among its characters", "nothing: no source file", "git, buffer_is_binary"),
        Reason("empty", "no text, or only white space"),
    ),
)
