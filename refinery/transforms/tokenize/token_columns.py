"""The columns that an encoded document has for each token: its characters, and the chunk that it belongs to.

They travel beside the tokens in a compact form, and become columns where packed rows are written. Layout of the bytes,
little-endian: HEADER; for each chunk three int32: its first token, kind (index of CHUNK_KINDS), depth; the tokens'
widths in characters; what lies between a token's start and the end of the one before (negative where both are parts of
one character), unless that is 0 everywhere. No bytes: the document has no columns.
"""

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from refinery.loader.format.chunk_kinds import CHUNK_KINDS
from refinery.loader.format.packed import STRUCTURE, UNKNOWN
from refinery.transforms.tokenize.chunk_notes import CHUNKS, CHUNKS_OF, read_chunks, text_hash
from refinery.transforms.tokenize.tokenizer import Tokenizer

HEADER = struct.Struct("<BBBBI")  # BOS and EOS tokens, bytes of a width, bytes of a gap (0: all are 0), chunks
KINDS = {kind: code for code, kind in enumerate(CHUNK_KINDS)}
# Why a document with chunks has no columns: findings of the encoder, whose groups the funnel counts.
TEXT_CHANGED, NOT_ALIGNED, UNREADABLE = (
    f"no-columns-{why}/{CHUNKS}" for why in ("text-changed", "not-aligned", "unreadable-note")
)


class Lost(ValueError):
    """A document has chunks and gets no columns. The argument is the finding."""


def token_columns(
    text: str, ids: npt.NDArray[Any], meta: Mapping[str, Any], tokenizer: Tokenizer, around: tuple[int, int]
) -> bytes:
    """The columns of a document with the note `chunks`. around: numbers of BOS and EOS tokens.

    A token belongs to the chunk that its first character is in. Raises Lost where the note is of another text, where
    it cannot be read, and where tokens and characters cannot be proved to belong together. Cost: 60 to 100 ns a token;
    tokenizers that normalise encode the text again.
    """
    if meta.get(CHUNKS_OF) != text_hash(text):
        raise Lost(TEXT_CHANGED)
    try:
        chunks = read_chunks(str(meta[CHUNKS]))
        table = np.array([(0, KINDS[chunk.kind], chunk.depth) for chunk in chunks], "<i4").reshape(-1, 3)
    except (ValueError, OverflowError):
        raise Lost(UNREADABLE) from None
    if not chunks or chunks[-1].end != len(text):
        raise Lost(UNREADABLE)
    spans = tokenizer.spans(text, ids)
    if spans is None:
        raise Lost(NOT_ALIGNED)
    table[:, 0] = np.searchsorted(spans.starts, [chunk.start for chunk in chunks])
    widths = spans.ends - spans.starts
    gaps = spans.starts - np.concatenate([[0], spans.ends[:-1]]).astype(np.int32)
    width_size, gap_size = _size(widths, "u"), _size(gaps, "i") if gaps.any() else 0
    header = HEADER.pack(*around, width_size, gap_size, len(chunks))
    parts = [header, table.tobytes(), widths.astype(f"<u{width_size}").tobytes()]
    return b"".join([*parts, gaps.astype(f"<i{gap_size}").tobytes()] if gap_size else parts)


def _size(values: npt.NDArray[np.int32], kind: str) -> int:
    """Bytes of the narrowest integer that holds all."""
    low, high = int(values.min()), int(values.max())
    return next(
        size for size in (1, 2, 4) if np.iinfo(f"{kind}{size}").min <= low and high <= np.iinfo(f"{kind}{size}").max
    )


def _chunks(columns: bytes) -> tuple[tuple[int, ...], npt.NDArray[np.int32], memoryview]:
    """The header's values, the chunks [chunks, 3], and the bytes behind."""
    header = HEADER.unpack_from(columns)
    stop = HEADER.size + 12 * header[-1]
    return header, np.frombuffer(columns[HEADER.size : stop], "<i4").reshape(-1, 3), memoryview(columns)[stop:]


def chunk_borders(columns: bytes) -> list[int]:
    """The tokens, counted with BOS, that chunks begin with, except the first; ascending."""
    (head, _, width_size, gap_size, _), table, rest = _chunks(columns)
    count = len(rest) // (width_size + gap_size)
    return [head + first for first in np.unique(table[:, 0]).tolist() if 0 < first < count]  # others have no token


def read_columns(columns: bytes, length: int) -> dict[str, npt.NDArray[Any]]:
    """Every column of STRUCTURE for a document of so many tokens, [length]; UNKNOWN for its BOS and EOS, and for all of
    a document without columns. Raises ValueError where they are not of that length. Cost: about 10 ns a token."""
    found = {name: np.full(length, UNKNOWN, dtype) for name, dtype in STRUCTURE.items()}
    if not columns:
        return found
    (head, tail, width_size, gap_size, _), table, rest = _chunks(columns)
    count = length - head - tail
    if count < 0 or len(rest) != count * (width_size + gap_size):
        raise ValueError(f"columns of {len(rest)} bytes found for {count} tokens")
    widths = np.frombuffer(rest[: count * width_size], f"<u{width_size}").astype(np.int64)
    gaps = np.frombuffer(rest[count * width_size :], f"<i{gap_size}") if gap_size else 0
    ends = np.cumsum(widths + gaps)
    chunk = np.repeat(np.arange(len(table)), np.diff(table[:, 0], append=count))
    inside = slice(head, head + count)
    found["char_start"][inside], found["char_end"][inside] = ends - widths, ends
    found["chunk_id"][inside] = chunk
    found["chunk_kind"][inside], found["nesting_depth"][inside] = table[chunk, 1], table[chunk, 2]
    return found
