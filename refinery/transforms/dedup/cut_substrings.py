"""Cut out text that another document has word for word, or drop documents that are mostly such text.

Quotations, press releases, licences and templates occur inside documents that are otherwise different; Lee et al. 2022
(section 4.1) remove substrings of at least 50 tokens that occur elsewhere from all places but one.
substring_duplicates.py finds them, this stage removes them.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import Field

from refinery.transforms.core.document import Document, Drop
from refinery.transforms.core.params import Count, Params, Share
from refinery.transforms.core.stage import Note, Reason
from refinery.transforms.dedup.cut_lines import CUT_LINES, LINE_CUTS, cut_text
from refinery.transforms.dedup.cutting_pass import Cuts, CuttingPass, Hashed, HashedColumn
from refinery.transforms.dedup.records.record_batch import SPAN, SPANS
from refinery.transforms.dedup.signatures import SignatureParams
from refinery.transforms.dedup.substring_hashes import MAX_WORDS, SPAN_WORDS, hash_anchors

# meta of a kept document with repeated text: its spans in characters, "120-980,1400-2200"
CUT_SUBSTRINGS = "cut_substrings"
SPAN_CUTS = Cuts(column="cut_spans", note=CUT_SUBSTRINGS, dtype=SPAN, tag=SPANS)
AFTER = re.compile(r"[^\w\s]*[^\S\n]*")  # what goes with the last word of a span: punctuation, then space

Spans = Sequence[tuple[int, int]]


class SubstringParams(Params):
    """Which repeated text goes, and what must be left."""

    min_words: Annotated[int, Field(ge=SPAN_WORDS, le=MAX_WORDS)] = SPAN_WORDS  # Lee et al. 2022, section 4.1.1: 50
    """minimum number of words in a row that are repeated, in two kept documents or in one; in scripts written
    without spaces every character is a word"""
    action: Literal["cut", "drop", "note"] = "cut"
    """`cut`: repeated text is cut out everywhere except in the document of best rank; `drop`: documents stay whole,
    and those of which more than `max_share` would be cut are dropped; `note`: only its characters are counted
    (`chars_cut`)"""
    max_share: Share = 0.5
    """with `drop`, the share of a text's characters that may be repeated text"""
    min_chars: Count = 300  # as for lines: CCNet's min_len
    """with `cut`, a document that lost text and has fewer characters left is dropped: `too-little-left`"""


def noted_spans(meta: Mapping[str, Any], length: int) -> Spans:
    """The spans that a document's meta notes. Raises ValueError unless they ascend within a text of `length`
    characters."""
    spans = [(begin, end) for begin, end in SPAN_CUTS.read(meta)]
    edges = [0, *(edge for span in spans for edge in span), length]
    if any(after < before for before, after in pairwise(edges)):
        raise ValueError(f"spans {meta[CUT_SUBSTRINGS][:100]} are to be cut out of a text of {length} characters")
    return spans


def empty_spans(text: str, spans: Spans) -> tuple[str, list[int]]:
    """`text` without these spans but with all of its line breaks, and the numbers of the lines that they left without a
    letter or digit. Linear.

    The punctuation and the space behind a span go with it.

    >>> empty_spans("one two. three\\n- four\\nfive", [(4, 7), (17, 21)])
    ('one three\\n- \\nfive', [1])
    """
    kept: list[str] = []
    touched: set[int] = set()
    line = last = 0
    for begin, end in spans:
        begin = max(begin, last)
        behind = AFTER.match(text, max(end, begin))
        end = behind.end() if behind else end
        line += text.count("\n", last, begin)
        breaks = text.count("\n", begin, end)
        touched.update(range(line, line + breaks + 1))
        kept += [text[last:begin], "\n" * breaks]
        line, last = line + breaks, end
    kept.append(text[last:])
    left = "".join(kept)
    lines = left.split("\n")
    return left, [number for number in sorted(touched) if not any(map(str.isalnum, lines[number]))]


def cut_substrings(doc: Document, params: SubstringParams) -> Document | Drop:
    """The document without the spans that its meta names; itself where it names none.

    meta["chars_cut"] is the number of their characters. "too-little-left" for a text of fewer than `min_chars`
    characters after a cut. With action `note` nothing is cut; nor with action `drop`, which gives "mostly-repeated" for
    more than `max_share` of repeated characters. Where lines are to be cut, too, the emptied ones are added to them, so
    their numbers stay true. The id stays: it names the text before the cut.
    """
    if CUT_SUBSTRINGS not in doc.meta:
        return doc
    spans = noted_spans(doc.meta, len(doc.text))
    chars = sum(end - begin for begin, end in spans)
    meta = {key: value for key, value in doc.meta.items() if key != CUT_SUBSTRINGS}
    if params.action == "note":
        return replace(doc, meta={**meta, "chars_cut": chars})
    if params.action == "drop":
        return Drop("mostly-repeated") if chars > params.max_share * len(doc.text) else replace(doc, meta=meta)
    text, emptied = empty_spans(doc.text, spans)
    if CUT_LINES in meta:
        listed = [number for (number,) in LINE_CUTS.read(meta)]
        meta[CUT_LINES] = LINE_CUTS.noted(sorted({*listed, *emptied}))
    else:
        text = cut_text(text, emptied)
    if len(text) < params.min_chars or not text:
        return Drop("too-little-left")
    return replace(doc, text=text, meta={**meta, "chars_cut": chars})


def anchor_column(docs: Sequence[Document], signature: SignatureParams) -> pa.ListArray:
    """`hash_anchors` of documents; anchors are never keyed."""
    return hash_anchors([doc.text for doc in docs])


SUBSTRINGS = CuttingPass(
    name="substrings",
    version=1,
    summary="Cut out text that another document has word for word, or drop documents that are mostly such text.",
    params=SubstringParams,
    section="substring_dup",
    on=False,
    shared=True,
    judge=cut_substrings,
    hashed=Hashed(name="anchors", columns=(HashedColumn("anchors", pa.list_(pa.uint64()), anchor_column),)),
    find="refinery.transforms.dedup.substring_duplicates:find_substrings",
    cuts=SPAN_CUTS,
    keeps=(CUT_LINES,),  # line breaks stay where lines are to be cut
    notes=(
        Note(CUT_SUBSTRINGS, str, "spans of characters to cut, until they are cut"),
        Note("chars_cut", int, "characters of repeated text, which are cut unless `action` is `note`", counts=True),
    ),
    reasons=(
        Reason(
            "too-little-left",
            "without its repeated text it has fewer than `min_chars` characters",
            "raise `min_words`",
            "Lee et al. 2022, section 4.1; the minimum: Wenzek et al. 2020",
        ),
        Reason(
            "mostly-repeated",
            "with `action: drop`, more than `max_share` of its characters are text that another document has",
            "raise `max_share` or `min_words`",
            "Lee et al. 2022, section 4.1",
        ),
    ),
)
