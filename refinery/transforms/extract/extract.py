"""The first stage: undecoded pages and records in, cleaned documents out."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from refinery.transforms.core.document import Document, Drop, RawDocument, Scalar, document_id, text_bytes
from refinery.transforms.core.params import Params, Positive
from refinery.transforms.core.stage import Reason, Stage
from refinery.transforms.extract.blocks.extract_blocks import extract_blocks
from refinery.transforms.extract.blocks.model import load_model
from refinery.transforms.extract.charset import decode_page, utf8_or_text
from refinery.transforms.extract.charsets.twice import repaired, repaired_page
from refinery.transforms.extract.clean_text import clean_text
from refinery.transforms.extract.page_rights.page_declarations import license_of_field, page_declarations
from refinery.transforms.extract.page_rights.page_notes import LICENSE, LICENSE_FROM, PAGE_NOTES
from refinery.transforms.extract.time_limit import call_within
from refinery.transforms.extract.trafilatura_engine import extract_trafilatura
from refinery.transforms.native import attributes


class ExtractParams(Params):
    """How text is taken from pages, and what no page may cost."""

    engine: Literal["blocks", "trafilatura"] = "blocks"
    """`blocks`: the project's own model of a page's blocks; `trafilatura`: the library of that name, which is much
    slower"""
    output: Literal["text", "markdown"] = "text"
    """blocks: `markdown` marks headings, items, cells, code and quotations"""
    weights: Annotated[str, Field(min_length=1)] | None = None
    """blocks: your own model, local, `gs://` or `s3://`, from `refinery train-extractor`; null: the bundled
    one"""
    list_bullets: bool = True
    """blocks: list items begin with a bullet"""
    max_elements: Positive = 500_000
    """blocks: maximum number of text blocks of a page"""
    mode: Literal["fast", "standard", "precision", "recall"] = "standard"
    """trafilatura's mode"""
    comments: bool = False
    """trafilatura: keep comment sections"""
    max_attributes: Positive = 20_000
    """trafilatura: maximum number of attributes of one tag, including what looks like tags in comments and scripts; its
    parser compares each attribute with all before it and cannot be stopped (20,000 take it a second, a million an
    hour; of 2,181 real pages the largest number is 13,000, and above 1,000 in 9)"""
    seconds: Annotated[float, Field(gt=0)] = 10.0
    """trafilatura's time limit for a page; a page near the limit may be dropped on one machine and kept on another,
    so the limit is far above what real pages take"""
    repair_encoding: bool = True
    """paragraphs that were encoded twice (`â€™` for `’`) are repaired as by `ftfy.fix_encoding`; nothing else is
    changed"""
    min_chars: Positive = 1
    """minimum characters of a cleaned text"""
    max_raw_bytes: Positive = 10_000_000
    """maximum undecoded bytes of a page"""


def extract_document(raw: RawDocument, params: ExtractParams) -> Document | Drop:
    """The text of `raw`, main text only where it is HTML, cleaned (`clean_text`), with its id; what the page says
    of its use is recorded.

    Drops: too-large, too-many-elements, too-many-attributes, extraction-timeout, empty.
    """
    content = raw.content
    if (len(content) if isinstance(content, bytes) else text_bytes(content)) > params.max_raw_bytes:
        return Drop("too-large")
    page: str | bytes = b""
    if raw.is_html:
        # Text loses its lone surrogates, which no parser takes.
        page = utf8_or_text(content, raw.charset) if isinstance(content, bytes) else content.encode("utf-8", "ignore")
        if params.repair_encoding:
            page = repaired_page(page)
        main = _main_text(page, raw.url, params)
        if isinstance(main, Drop):
            return main
        text = main
    else:
        text = decode_page(content, raw.charset, is_html=False) if isinstance(content, bytes) else content
    if params.repair_encoding:  # before cleaning, which removes the controls that half of such text consists of
        text = repaired(text)
    # Of pages the engine `blocks` has collapsed all runs of spaces but those of code and empty cells.
    text = clean_text(text, from_html=raw.is_html and params.engine != "blocks")
    if len(text) < params.min_chars:
        return Drop("empty")
    meta = _with_notes(raw.meta, page)
    return Document(document_id(text), text, raw.url, raw.source, raw.origin, raw.position, meta)


def _with_notes(meta: Mapping[str, Scalar], page: str | bytes) -> Mapping[str, Scalar]:
    """Notes with what the page says of its use, and a licence that its record names in the form that pages' have."""
    declared = page_declarations(page) if page else {}  # most records have text alone
    if LICENSE.name in meta and LICENSE_FROM.name not in meta:
        declared = {**declared, **license_of_field(str(meta[LICENSE.name]))}
    return {**meta, **declared} if declared else meta


def _main_text(page: str | bytes, url: str, params: ExtractParams) -> str | Drop:
    if params.engine == "blocks":
        model = load_model(params.weights)
        found = extract_blocks(page, url, model, params.output, params.list_bullets, params.max_elements)
        return Drop("too-many-elements") if found is None else found
    if attributes.most(page) > params.max_attributes:
        return Drop("too-many-attributes")
    html = page if isinstance(page, str) else page.decode()
    text = call_within(params.seconds, partial(extract_trafilatura, html, params.mode, params.comments))
    return Drop("extraction-timeout") if text is None else text


def check_engine(params: ExtractParams) -> None:
    """Raises ValueError, one line, if the weights are missing or foreign: for the launcher to call."""
    if params.engine == "blocks":
        load_model(params.weights)


def weights_files(params: ExtractParams) -> tuple[str, ...]:
    """A model of the recipe's own: its content decides the result."""
    return () if params.weights is None else (params.weights,)


EXTRACT = Stage(
    name="extract",
    version=7,
    summary="Turn raw pages and records into cleaned documents: main text only where they are HTML.",
    params=ExtractParams,
    judge=extract_document,
    check=check_engine,
    files=weights_files,
    optional=False,
    notes=PAGE_NOTES,
    libraries=("ftfy", "justext", "lxml", "resiliparse", "trafilatura"),
    reasons=(
        Reason(
            "empty",
            "fewer characters than `min_chars` after cleaning",
            "if there are many, the pages may be built by scripts, or `content: html` may be set on plain text",
        ),
        Reason("too-large", "over `max_raw_bytes`", "raise it together with `limits.max_record_bytes`"),
        Reason("too-many-elements", "over `max_elements`", "raise it if the pages are long tables of interest"),
        Reason("too-many-attributes", "trafilatura: over `max_attributes` on one tag"),
        Reason(
            "extraction-timeout",
            "trafilatura took longer than `seconds`",
            "raise it, or use the engine `blocks`, which has no time limit",
        ),
    ),
)
