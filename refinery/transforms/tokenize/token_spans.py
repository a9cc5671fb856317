"""Which characters of a text each of its tokens stands for, and the proof that it is so.

Two ways, and both end in None rather than in a guess:

- By spelling. Where every token stands for certain bytes, the tokens' bytes one behind the other must be the text's, or
  a space and the text's where the tokenizer puts one in front. Equality is the proof: the tokens tile the text.
- By the library's own offsets, for tokenizers that normalise. They must belong to the same ids, go from the start of
  the text to its end without going back, and leave nothing out but whitespace.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

I32 = npt.NDArray[np.int32]

BLOCK = 1 << 16  # tokens that are spelt at once: bounds the memory
LONGEST = 2**31 - 1  # bytes of a text whose places fit


class Spans(NamedTuple):
    """Token i stands for characters starts[i] to ends[i] (exclusive), int32 [tokens] both, neither ever going back.

    A token that is only a part of a character has that character; a space that the tokenizer put in has none.
    """

    starts: I32
    ends: I32


@dataclass(frozen=True)
class Spelling:
    """The bytes that each id stands for; none for an id that no text gives. Memory: 60 bytes an id."""

    table: Sequence[bytes]

    @cached_property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Number of bytes, [ids]."""
        return np.fromiter(map(len, self.table), np.int64, len(self.table))

    @cached_property
    def words(self) -> npt.NDArray[np.object_]:
        """The bytes, [ids]: numpy looks many up without a Python number for each."""
        return np.array(self.table, np.object_)


def spelt_spans(text: str, ids: npt.NDArray[Any], spelling: Spelling) -> Spans | None:
    """Spans by the tokens' bytes; None where these are not the text's. ids: [tokens], without BOS and EOS.

    Cost: linear, about 50 ns a token, and 10 ns a byte more where the text is not ASCII.
    """
    data = text.encode()
    ends = np.cumsum(spelling.sizes[ids])
    put_in = (int(ends[-1]) if len(ends) else 0) - len(data)  # a space in front
    if put_in not in (0, 1) or len(data) > LONGEST:
        return None
    expected, place = b" " * put_in + data, 0
    for first in range(0, len(ids), BLOCK):
        part = b"".join(spelling.words[ids[first : first + BLOCK]].tolist())
        if part != expected[place : place + len(part)]:
            return None
        place += len(part)
    ends = np.maximum(ends - put_in, 0)
    starts = np.concatenate([[0], ends[:-1]])[: len(ends)]
    if not text.isascii():
        begun = np.cumsum((np.frombuffer(data, np.uint8) & 0xC0) != 0x80, dtype=np.int32)  # characters, up to a byte
        upto = np.concatenate([[0], begun])
        starts, ends = np.maximum(upto[np.minimum(starts + 1, len(data))] - 1, 0), upto[ends]
    return Spans(starts.astype(np.int32), ends.astype(np.int32))


def offset_spans(
    text: str, ids: npt.NDArray[Any], found: Sequence[int] | npt.NDArray[Any], offsets: Sequence[tuple[int, int]]
) -> Spans | None:
    """Spans by a library's offsets, in characters; None where they prove nothing. found: the ids that they are of.

    Cost: linear, 200 ns a token.
    """
    if len(text) > LONGEST or not np.array_equal(ids, np.asarray(found, np.int64)):
        return None
    pairs = np.array(offsets, np.int64).reshape(-1, 2)
    starts, ends = pairs[:, 0], pairs[:, 1]
    if not len(pairs) or (np.diff(starts) < 0).any() or (np.diff(ends) < 0).any() or (starts > ends).any():
        return None
    if starts[0] < 0 or ends[-1] > len(text):
        return None
    before, after = np.append(0, ends), np.append(starts, len(text))
    left_out = np.flatnonzero(after > before)
    if not all(text[a:b].isspace() for a, b in zip(before[left_out], after[left_out], strict=True)):
        return None
    return Spans(starts.astype(np.int32), ends.astype(np.int32))
