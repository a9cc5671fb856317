"""Cut functions, classes and types out of a source file that a file of better rank has, too.

Files that are otherwise different share helpers that one has copied from the other. find.py finds them, this stage cuts
them out; preambles, signatures, members and comments are never looked at alone.
"""

from dataclasses import replace
from typing import Annotated

import pyarrow as pa
from pydantic import Field

from refinery.transforms.core.document import Document, Drop
from refinery.transforms.core.params import Count, Params
from refinery.transforms.core.stage import Note, Reason
from refinery.transforms.dedup.chunk_copies.hashes import CHUNK_SCHEME, construct_column
from refinery.transforms.dedup.cut_substrings import CUT_SUBSTRINGS, SPAN_CUTS, Spans, noted_spans
from refinery.transforms.dedup.cutting_pass import CuttingPass, Hashed, HashedColumn


class ChunkCopyParams(Params):
    """Which copied constructs go, and what must be left."""

    min_tokens: Annotated[int, Field(ge=1, lt=2**32)] = 50  # Lee et al. 2022, section 4.1.1
    """minimum tokens of source code in a function, class or type; shorter ones are common"""
    min_chars: Count = 100  # the lower limit of a file, StarCoder: Li et al. 2023
    """a file that lost a construct and has fewer characters left is dropped: `too-little-left`"""


def cut_constructs(text: str, spans: Spans) -> str:
    """`text` without these spans, and without the blank lines that this makes superfluous. Linear.

    >>> cut_constructs("int a;\\n\\nint f() {}\\n\\nint b;\\n", [(8, 19)])
    'int a;\\n\\nint b;\\n'
    """
    kept: list[str] = []
    at = 0
    blank = True  # nothing, or an empty line, stands before
    for begin, end in spans:
        piece = text[at:begin] if not kept else _after_cut(text[at:begin], blank)
        kept.append(piece)
        blank = piece.endswith("\n\n") or (blank and not piece.strip("\n"))
        at = end
    return "".join([*kept, _after_cut(text[at:], blank)])


def _after_cut(piece: str, blank: bool) -> str:
    return piece.lstrip("\n") if blank else piece


def cut_chunk_copies(doc: Document, params: ChunkCopyParams) -> Document | Drop:
    """The file without the constructs that its meta names; itself where it names none.

    meta["chunks_cut"] is their number, meta["chars_cut"] that of their characters. "too-little-left" for a text of
    fewer than `min_chars` characters after a cut. The id stays: it names the text before the cut.
    """
    if CUT_SUBSTRINGS not in doc.meta:
        return doc
    spans = noted_spans(doc.meta, len(doc.text))
    text = cut_constructs(doc.text, spans)
    if len(text) < params.min_chars or not text:
        return Drop("too-little-left")
    meta = {key: value for key, value in doc.meta.items() if key != CUT_SUBSTRINGS}
    chars = sum(end - begin for begin, end in spans)
    return replace(doc, text=text, meta={**meta, "chunks_cut": len(spans), "chars_cut": chars})


CHUNK_COPIES = CuttingPass(
    name="chunk-copies",
    version=1,
    summary="Cut out functions, classes and types that a source file of better rank also has.",
    params=ChunkCopyParams,
    section="chunk_dup",
    on=False,
    judge=cut_chunk_copies,
    hashed=Hashed(
        name="constructs",
        columns=(HashedColumn("constructs", pa.list_(pa.uint64()), construct_column),),
        scheme=CHUNK_SCHEME,
    ),
    find="refinery.transforms.dedup.chunk_copies.find:find_chunk_copies",
    cuts=SPAN_CUTS,
    notes=(
        Note(CUT_SUBSTRINGS, str, "spans of characters to cut, until they are cut"),
        Note("chunks_cut", int, "copied functions, classes and types that were cut out", column=True),
        Note("chars_cut", int, "their characters"),
    ),
    reasons=(
        Reason(
            "too-little-left",
            "without the constructs that another file has it has fewer than `min_chars` characters",
            "raise `min_tokens`",
            "StarCoder, Li et al. 2023, section 3",
        ),
    ),
)
