"""The first stage: undecoded pages and records in, cleaned documents out."""

from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from refinery.transforms.core.document import Document, Drop, RawDocument, document_id, text_bytes
from refinery.transforms.core.params import Params, Positive
from refinery.transforms.core.stage import Reason, Stage
from refinery.transforms.extract.blocks.extract_blocks import extract_blocks
from refinery.transforms.extract.blocks.model import load_model
from refinery.transforms.extract.charset import decode_page
from refinery.transforms.extract.clean_text import clean_text
from refinery.transforms.extract.main_text import extract_resiliparse, extract_trafilatura, parse_page
from refinery.transforms.extract.time_limit import call_within
from refinery.transforms.native import htmlscan


class ExtractParams(Params):
    """How text is taken from pages, and what no page may cost."""

    engine: Literal["blocks", "resiliparse", "trafilatura"] = "blocks"
    """`blocks` is the project's own, a model of a page's blocks; `resiliparse` and `trafilatura` are libraries"""
    output: Literal["text", "markdown"] = "text"
    """blocks: whether headings, items, cells, code and quotations are marked as Markdown does"""
    weights: Annotated[str, Field(min_length=1)] | None = None
    """blocks: a model of your own, local or `gs://`, from `refinery train-extractor`; null: the one that comes along"""
    mode: Literal["fast", "standard", "precision", "recall"] = "standard"
    """trafilatura's mode"""
    comments: bool = False
    """resiliparse, trafilatura: keep comment sections"""
    list_bullets: bool = True
    """blocks, resiliparse: list items begin with a bullet"""
    link_density: Annotated[float, Field(gt=0, le=1)] | None = 0.7
    """resiliparse: blocks whose text is links to a larger share are left out; null keeps link lists"""
    trim_end: bool = True
    """resiliparse: what follows the last long paragraph is cut off if it looks like a footer"""
    min_chars: Positive = 1
    """characters that a cleaned text must have"""
    max_raw_bytes: Positive = 10_000_000
    """undecoded bytes of a page"""
    max_depth: Annotated[int, Field(ge=1, le=2048)] = 512
    """resiliparse, trafilatura: nested elements; 512 is where Blink stops nesting, too
    (kMaximumHTMLParserDOMTreeDepth); real pages stay under 60"""
    max_elements: Positive = 500_000
    """elements of a page; blocks: blocks of text"""
    max_attributes: Positive = 1_000
    """resiliparse, trafilatura: attributes of one tag"""
    max_steps: Positive = 1_000_000_000
    """resiliparse, trafilatura: elements and bytes of text times the depth they are at, which is what extraction costs
    (10^9 steps: about 3 s; real pages of 1 MB: 10^7)"""
    seconds: Annotated[float, Field(gt=0)] = 10.0
    """trafilatura's time for a page; a page near it may be dropped on one machine and kept on another, so it is far
    above what real pages take"""


def extract_document(raw: RawDocument, params: ExtractParams) -> Document | Drop:
    """The text of `raw`, main text only where it is HTML, cleaned (`clean_text`), with its id.

    Drops: too-large, too-deep, too-many-elements, too-many-attributes, too-complex, extraction-timeout, empty.
    """
    content = raw.content
    if (len(content) if isinstance(content, bytes) else text_bytes(content)) > params.max_raw_bytes:
        return Drop("too-large")
    text = decode_page(content, raw.charset, raw.is_html) if isinstance(content, bytes) else content
    if raw.is_html:
        if isinstance(content, str) and not content.isascii():
            text = content.encode("utf-8", "ignore").decode()  # without lone surrogates, which no parser takes
        main = _main_text(text, raw.url, params)
        if isinstance(main, Drop):
            return main
        text = main
    text = clean_text(text, from_html=raw.is_html)
    if len(text) < params.min_chars:
        return Drop("empty")
    return Document(document_id(text), text, raw.url, raw.source, raw.origin, raw.position, raw.meta)


def hostile(html: str, params: ExtractParams) -> str:
    """The limit that `html` would break, foreseen before it is parsed, "" for none. `html` without lone surrogates.

    A forecast can be led astray by markup made for that, so the depth of the tree is checked again once there is one.
    Cost: about 500 MB/s.
    """
    depth, elements, attributes, steps = htmlscan.cost(html, params.max_depth, params.max_elements)
    if depth > params.max_depth:
        return "too-deep"
    if elements > params.max_elements:
        return "too-many-elements"
    if attributes > params.max_attributes:
        return "too-many-attributes"
    return "too-complex" if steps > params.max_steps else ""


def _main_text(html: str, url: str, params: ExtractParams) -> str | Drop:
    if params.engine == "blocks":
        model = load_model(params.weights)
        text = extract_blocks(html, url, model, params.output, params.list_bullets, params.max_elements)
        return Drop("too-many-elements") if text is None else text
    reason = hostile(html, params)
    if reason:
        return Drop(reason)
    if params.engine == "trafilatura":
        text = call_within(params.seconds, partial(extract_trafilatura, html, params.mode, params.comments))
        return Drop("extraction-timeout") if text is None else text
    tree = parse_page(html, params.max_depth)
    if tree is None:
        return Drop("too-deep")
    return extract_resiliparse(tree, params.link_density, params.trim_end, params.comments, params.list_bullets)


def check_engine(params: ExtractParams) -> None:
    """Raises ValueError, one line, if the weights are missing or foreign: for the launcher to call."""
    if params.engine == "blocks":
        load_model(params.weights)


def weights_files(params: ExtractParams) -> tuple[str, ...]:
    """A model of the recipe's own: its content decides the result."""
    return () if params.weights is None else (params.weights,)


EXTRACT = Stage(
    name="extract",
    version=3,
    summary="Turn raw pages and records into cleaned documents: main text only where they are HTML.",
    params=ExtractParams,
    judge=extract_document,
    check=check_engine,
    files=weights_files,
    optional=False,
    libraries=("justext", "lxml", "resiliparse", "trafilatura"),
    reasons=(
        Reason(
            "empty",
            "fewer characters than `min_chars` once cleaned",
            "many: pages built by scripts, or `content: html` on plain text",
        ),
        Reason("too-large", "over `max_raw_bytes`", "raise it together with `limits.max_record_bytes`"),
        Reason("too-deep", "elements nested deeper than `max_depth`", "nothing: made to hurt a parser, or broken"),
        Reason("too-many-elements", "over `max_elements`", "raise it if the pages are long tables of interest"),
        Reason("too-many-attributes", "over `max_attributes` on one tag"),
        Reason("too-complex", "over `max_steps`: text times depth", "raise it at the price of seconds per page"),
        Reason(
            "extraction-timeout",
            "trafilatura took longer than `seconds`",
            "raise it; resiliparse has no such limit",
        ),
    ),
)
