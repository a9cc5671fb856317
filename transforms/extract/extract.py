"""The first stage: undecoded pages and records in, cleaned documents out."""

from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import apache_beam as beam

from refinery.transforms.core.document import Document, Drop, RawDocument, document_id, text_bytes
from refinery.transforms.core.per_document import PerDocument, RejectParams
from refinery.transforms.extract.charset import decode_page
from refinery.transforms.extract.clean_text import clean_text
from refinery.transforms.extract.main_text import extract_resiliparse, extract_trafilatura, parse_page
from refinery.transforms.extract.time_limit import call_within
from refinery.transforms.native import htmlscan


@dataclass(frozen=True)
class ExtractParams:
    """How text is taken from pages, and what no page may cost.

    engine: resiliparse is fast, trafilatura more precise at a tenth of the speed. mode (trafilatura): fast | standard |
    precision | recall. comments: keep comment sections. list_bullets, link_density, trim_end (resiliparse): see
    `refinery.transforms.extract.main_text`; link_density null keeps link lists.

    min_chars: characters a cleaned text must have. The limits: max_raw_bytes on undecoded content; max_depth on nested
    elements (512, where Blink stops nesting too: kMaximumHTMLParserDOMTreeDepth; real pages stay under 60);
    max_elements; max_attributes of one tag; max_steps, elements and bytes of text times the depth they are at, which
    is what extraction costs (10^9 steps: about 3 s; real pages of 1 MB: 10^7). seconds: trafilatura's time for a page;
    a page near it may be dropped on one machine and kept on another, so it is far above what real pages take.
    """

    engine: Literal["resiliparse", "trafilatura"] = "resiliparse"
    mode: Literal["fast", "standard", "precision", "recall"] = "standard"
    comments: bool = False
    list_bullets: bool = True
    link_density: float | None = 0.7
    trim_end: bool = True
    min_chars: int = 1
    max_raw_bytes: int = 10_000_000
    max_depth: int = 512
    max_elements: int = 500_000
    max_attributes: int = 1_000
    max_steps: int = 1_000_000_000
    seconds: float = 10.0

    def __post_init__(self) -> None:
        if self.engine not in ("resiliparse", "trafilatura"):
            raise ValueError(f"engine: {self.engine!r} given, resiliparse or trafilatura is allowed")
        if self.mode not in ("fast", "standard", "precision", "recall"):
            raise ValueError(f"mode: {self.mode!r} given, fast, standard, precision or recall is allowed")
        if self.link_density is not None and not 0 < self.link_density <= 1:
            raise ValueError(f"link_density: {self.link_density} given, null or 0 < x <= 1 is allowed")
        for name in ("min_chars", "max_raw_bytes", "max_elements", "max_attributes", "max_steps"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: {getattr(self, name)} given, 1 or more is allowed")
        if not 1 <= self.max_depth <= 2048:
            raise ValueError(f"max_depth: {self.max_depth} given, 1 to 2048 is allowed")
        if not self.seconds > 0:
            raise ValueError(f"seconds: {self.seconds} given, a number above 0 is allowed")


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
        reason = hostile(text, params)
        if reason:
            return Drop(reason)
        main = _main_text(text, params)
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


def _main_text(html: str, params: ExtractParams) -> str | Drop:
    if params.engine == "trafilatura":
        text = call_within(params.seconds, partial(extract_trafilatura, html, params.mode, params.comments))
        return Drop("extraction-timeout") if text is None else text
    tree = parse_page(html, params.max_depth)
    if tree is None:
        return Drop("too-deep")
    return extract_resiliparse(tree, params.link_density, params.trim_end, params.comments, params.list_bullets)


@dataclass
class ExtractText(beam.PTransform):
    """Turn raw documents into cleaned ones."""

    params: ExtractParams
    rejects: RejectParams = field(default_factory=RejectParams)

    def expand(self, docs: beam.PCollection[RawDocument]) -> beam.PCollection[Document]:
        return docs | PerDocument("extract", partial(extract_document, params=self.params), rejects=self.rejects)
