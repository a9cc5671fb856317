"""Where a text may be cut, as a note of its document: what the code lane writes and the encoder reads.

The note is of one text. A hash of it travels beside the note, so borders of a text that a later stage has changed
are never taken for those of the new one.
"""

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

from refinery.loader.format.chunk_kinds import CHUNK_KINDS

CHUNKS, CHUNKS_OF = "chunks", "chunks_of"  # names of the notes: the chunks, and the hash of their text


class Chunk(NamedTuple):
    """A piece of a text: characters start to end (exclusive).

    kind: one of CHUNK_KINDS, the one of most of its characters; comments and the preamble count where there is nothing
    else. depth: namespaces, classes and functions around its outermost part. whole: whether all its parts are complete.
    """

    start: int
    end: int
    kind: str
    depth: int
    whole: bool


def write_chunks(chunks: Iterable[Chunk]) -> str:
    """Chunks as the note `chunks`: "END:KIND:DEPTH" each, with a "*" behind whole ones, one space between.

    >>> write_chunks((Chunk(0, 90, "FUNC_BODY", 1, True), Chunk(90, 95, "OTHER", 0, False)))
    '90:FUNC_BODY:1* 95:OTHER:0'
    """
    return " ".join(f"{one.end}:{one.kind}:{one.depth}{'*' * one.whole}" for one in chunks)


def read_chunks(note: str) -> tuple[Chunk, ...]:
    """The chunks that `write_chunks` wrote. Raises ValueError for anything else."""
    chunks: list[Chunk] = []
    for word in note.split(" ") if note else ():
        end, kind, depth = word.removesuffix("*").split(":")
        start = chunks[-1].end if chunks else 0
        if kind not in CHUNK_KINDS or int(end) <= start or int(depth) < 0:
            raise ValueError(f"chunks: {word!r} given, END:KIND:DEPTH with ascending ends is allowed")
        chunks.append(Chunk(start, int(end), kind, int(depth), word.endswith("*")))
    return tuple(chunks)


def text_hash(text: str) -> str:
    """The note `chunks_of`: 64 bits of blake2b of the text, in hex. Cost: about 1 GB/s."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
