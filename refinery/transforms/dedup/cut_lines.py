"""Cut lines that too many documents share out of a text, and drop texts of which too little is left.

Navigation, cookie notices and licences occur in thousands of documents that are otherwise different. CCNet removes
repeated paragraphs (Wenzek et al. 2020, section 3.1); Llama 3 lines that appear more than six times in each 30 million
documents (Grattafiori et al. 2024, section 3.1.1), which also removes good text that is frequent, and still improved
the models. line_duplicates.py finds these lines, this stage removes them.

Phase 1 hashes every line. A line is the text between two newlines: `text.split("\\n")`. Its hash depends on its words
alone, so case, punctuation and spacing do not matter (words and their hashes as in signatures.py: runs of letters and
digits with their marks, lower-cased; every character of scripts written without spaces; under the secret of
`SignatureParams.key`, if there is one): S = sum of word hash[i] * ROLL^(words-1-i) mod 2^64, then fmix64(S). The lowest
four bits are then replaced by the number of words, capped at 15; a line without any word has hash 0.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from refinery.transforms.core.document import Document, Drop
from refinery.transforms.core.params import Count, Params
from refinery.transforms.core.stage import Note, Reason
from refinery.transforms.dedup.cutting_pass import Cuts, CuttingPass, Hashed, HashedColumn
from refinery.transforms.dedup.records.record_batch import CUT, CUTS
from refinery.transforms.dedup.signatures import PUBLIC, SignatureParams, character_table, word_key
from refinery.transforms.native import lines as kernel

WORDS_MASK = np.uint64(15)  # the bits of a hash that hold the number of words
CUT_LINES = "cut_lines"  # meta of a kept document that has lines to cut: their numbers from 0, "3,4,17"
LINE_CUTS = Cuts(column="cut", note=CUT_LINES, dtype=CUT, tag=CUTS)


class LineParams(Params):
    """Which lines are cut, and what must be left."""

    LATER: ClassVar[tuple[str, ...]] = ("action",)

    max_documents: Annotated[int, Field(ge=1, lt=2**32)] = 6  # Llama 3, section 3.1.1: per 30 million documents
    """a line that occurs in more documents of the scope is cut out of all of them; documents are counted
    after deduplication, each once"""
    scope: Literal["source", "corpus"] = "corpus"
    """whose documents are counted together: those of all sources (`corpus`) or of one (`source`)"""
    min_line_words: Annotated[int, Field(ge=1, le=15)] = 1
    """lines of fewer words are kept; in scripts written without spaces every character is a word"""
    min_chars: Count = 300  # CCNet's min_len
    """a document that lost a line and has fewer characters left is dropped: `too-little-left`"""
    action: Literal["cut", "note"] = "cut"
    """`cut` cuts these lines out; `note` only counts them (`lines_cut`) and leaves the text as it is"""


def list_values(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """A column of lists of numbers as (offsets of shape (rows + 1,), all values). Raises ValueError for nulls."""
    sizes, values = [np.zeros(1, np.int64)], [pa.array([], column.type.value_type).to_numpy()]
    for chunk in column.chunks:
        if chunk.null_count or chunk.values.null_count:
            raise ValueError(f"column of {column.type} with nulls found, lists of numbers expected")
        places = chunk.offsets.to_numpy().astype(np.int64)  # those of a slice point into the whole
        values.append(chunk.values.to_numpy()[places[0] : places[-1]])
        sizes.append(np.diff(places))
    return np.cumsum(np.concatenate(sizes)), np.concatenate(values)


def cut_text(text: str, numbers: Iterable[int]) -> str:
    """`text` without the lines of these numbers (from 0), and without the blank lines that the cuts make superfluous.

    Where something was cut at most one blank line stays between two others, and none at the beginning or end.
    Raises ValueError for a line that the text does not have. Linear.

    >>> cut_text("title\\n\\nshare this\\n\\nbody", [2])
    'title\\n\\nbody'
    """
    lines = text.split("\n")
    gone = set(numbers)
    if gone and not 0 <= min(gone) <= max(gone) < len(lines):
        raise ValueError(f"line {max(gone)} is to be cut out of a text of {len(lines)} lines")
    kept: list[str] = []
    seam = False  # nothing but blank lines since a cut
    for number, line in enumerate(lines):
        blank = not line or line.isspace()
        if number in gone:
            seam = True
            while len(kept) > 1 and _is_blank(kept[-1]) and _is_blank(kept[-2]):
                kept.pop()
            if len(kept) == 1 and _is_blank(kept[0]):
                kept.pop()
        elif not seam or not blank or (kept and not _is_blank(kept[-1])):
            kept.append(line)
            seam = seam and blank
    while seam and kept and _is_blank(kept[-1]):
        kept.pop()
    return "\n".join(kept)


def _is_blank(line: str) -> bool:
    return not line or line.isspace()


def cut_lines(doc: Document, params: LineParams) -> Document | Drop:
    """The document without the lines that its meta names; itself where it names none.

    meta["lines_cut"] is their number; with action note the text stays. "too-little-left" for a text of fewer than
    `min_chars` characters after a cut.
    The id stays: it names the text before the cut.
    """
    if CUT_LINES not in doc.meta:
        return doc
    numbers = [number for (number,) in LINE_CUTS.read(doc.meta)]
    text = cut_text(doc.text, numbers) if params.action == "cut" else doc.text
    if params.action == "cut" and (len(text) < params.min_chars or not text):
        return Drop("too-little-left")
    meta = {key: value for key, value in doc.meta.items() if key != CUT_LINES}
    return replace(doc, text=text, meta={**meta, "lines_cut": len(set(numbers))})


def hash_lines(texts: Sequence[str], key: bytes = PUBLIC) -> pa.ListArray:
    """list<uint64>, one list per text with one hash per line. Lone surrogates separate words. key: of `word_key`.

    Cost: one pass in C without the GIL and without copying the texts, linear in characters; 8 bytes a line.
    Raises ValueError above 2^31 - 1 lines in all.
    """
    hashes, places = kernel.hash_lines(texts, character_table(), key)
    offsets = np.frombuffer(places, np.int64)
    if offsets[-1] > np.iinfo(np.int32).max:
        raise ValueError(f"{offsets[-1]} lines given, up to 2^31 - 1 are allowed")
    values = np.frombuffer(hashes, np.uint64)
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(values))


def line_column(docs: Sequence[Document], signature: SignatureParams) -> pa.ListArray:
    """`hash_lines` of documents, under the secret of `signature`."""
    return hash_lines([doc.text for doc in docs], word_key(signature))


def word_counts(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Words of the lines with these hashes, capped at 15; 0 for a line without any."""
    return hashes & WORDS_MASK


LINES = CuttingPass(
    name="lines",
    version=1,
    summary="Cut out lines that deduplication found in too many documents.",
    params=LineParams,
    section="line_dup",
    on=False,
    shared=True,
    judge=cut_lines,
    hashed=Hashed(
        name="lines",
        columns=(HashedColumn("lines", pa.list_(pa.uint64()), line_column),),
        keyed_scheme="lines-1/keyed",
        told_off=True,
    ),
    find="refinery.transforms.dedup.line_duplicates:count_lines",
    cuts=LINE_CUTS,
    notes=(
        Note(CUT_LINES, str, "numbers of the lines to cut, until they are cut"),
        Note("lines_cut", int, "lines that too many documents have, cut unless `action` is `note`", counts=True),
    ),
    reasons=(
        Reason(
            "too-little-left",
            "without its frequent lines the text has fewer than `min_chars` characters",
            "raise `max_documents` if it cuts good lines",
            "Wenzek et al. 2020, section 3.1; Grattafiori et al. 2024, section 3.1.1",
        ),
    ),
)
