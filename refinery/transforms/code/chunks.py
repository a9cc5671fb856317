"""Source text cut into chunks at function and class borders, none above an exact number of tokens.

Split, then merge, as cAST does (Zhang et al. 2025, "cAST: Enhancing Code RAG with Structural Chunking via AST"), with
two differences: what is measured is tokens of the tokenizer in use, and where neighbours have to be parted, the cut is
the one at the shallowest border that leaves a chunk at least half full, not the last one that fits.

Exact: a chunk's tokens are those of its text encoded alone, and every chunk has been encoded alone before it is given
out. Estimates (lines encoded once, scaled to the whole) only say what to try.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from refinery.transforms.code.brace_units import BUCKET, brace_units, line_starts
from refinery.transforms.code.estimates import Estimates
from refinery.transforms.code.languages import COMMENT, KINDS, LANGUAGES, OTHER, PREAMBLE
from refinery.transforms.code.parser_frames import UNITS
from refinery.transforms.code.parser_process import PARSER
from refinery.transforms.code.units import SOFT, Unit
from refinery.transforms.tokenize.chunk_notes import Chunk

SYNTAX, BRACES = "syntax", "braces"
PIECES = 8  # to a budget, of what is cut at characters
MARGIN = 98  # percent of what an estimate allows, after it was wrong
SCALE = 256  # parts of a token that estimates are made of
UNIT_NUMBERS = 5  # as parser_child.py answers them
IN_NODE = SOFT // 2  # a cut inside a node that has no children costs more than any between nodes

Int64 = npt.NDArray[np.int64]

CountTokens = Callable[[Sequence[str]], Sequence[int]]
"""Tokens of each of some texts, each encoded alone."""


class Chunks(NamedTuple):
    """All chunks of a text, in order; joined they are the text.

    borders: "syntax", or "braces" for a text that has no grammar, does not parse, or takes too much to parse.
    """

    chunks: tuple[Chunk, ...]
    borders: str


def chunk_source(text: str, language: str, count: CountTokens, budget: int) -> Chunks:
    """Chunks of at most `budget` tokens, for a text in one of LANGUAGES or in "" (no grammar: cut at braces and lines).

    Cost: the text is encoded about three times and parsed once (3.5 MB/s for C++); linear in the text, at any depth of
    nesting. Raises ValueError for a budget below 1, an unknown language, a single character of more than `budget`
    tokens, and lone surrogates.
    """
    if budget < 1:
        raise ValueError(f"budget: {budget} given, 1 or more is allowed")
    if language and language not in LANGUAGES:
        raise ValueError(f"language: {language!r} given, one of {', '.join(LANGUAGES)} is allowed")
    data = text.encode()
    if not data:
        return Chunks((), SYNTAX)
    total = count([text])[0]
    fits = total <= budget
    sizes = _Sizes(data, total, count) if not fits else None
    found = _tree_units(data, language, sizes, budget) if language else None
    borders = SYNTAX if found is not None else BRACES
    units = found or (brace_units(data) if sizes else [Unit(0, 0, OTHER, 0, False)])
    if sizes is None:
        lengths = [end - begin for begin, end in pairwise([*(unit.start for unit in units), len(data)])]
        return Chunks((_chunk(units, lengths, 0, len(text)),), borders)
    units = list(_divided(units, data, sizes, sizes.limit(budget)))
    return Chunks(tuple(_merged(text, data, units, sizes, count, budget)), borders)


def _tree_units(data: bytes, language: str, sizes: "_Sizes | None", budget: int) -> list[Unit] | None:
    """Units by the syntax tree, or None."""
    numbers = PARSER.ask(UNITS, language, data, sizes.numbers(sizes.limit(budget)) if sizes else ())
    if numbers is None:
        return None
    columns = [numbers[i::UNIT_NUMBERS] for i in range(UNIT_NUMBERS)]
    return [
        Unit(start, level, KINDS[kind], depth, bool(whole))
        for start, level, kind, depth, whole in zip(*columns, strict=True)
    ]


class _Sizes(Estimates):
    """Estimated tokens up to any byte of a text, in SCALE parts of a token: its lines encoded alone, once."""

    def __init__(self, data: bytes, total: int, count: CountTokens) -> None:
        starts = line_starts(data, 0, len(data))
        if len(starts):
            starts = starts[np.append(starts[1:] // BUCKET != starts[:-1] // BUCKET, True)]
        marks: list[int] = [0, *starts.tolist(), len(data)]
        counts = count([data[begin:end].decode() for begin, end in pairwise(marks)])
        super().__init__(marks, [0, *accumulate(int(tokens) * SCALE for tokens in counts)])
        self.total = total

    def at_all(self, offsets: Int64) -> Int64:
        """`at` of each offset."""
        marks, upto = np.array(self.marks, np.int64), np.array(self.upto, np.int64)
        i = np.minimum(np.searchsorted(marks, offsets, "right"), len(marks) - 1) - 1
        found: Int64 = upto[i] + (offsets - marks[i]) * (upto[i + 1] - upto[i]) // (marks[i + 1] - marks[i])
        return found

    def limit(self, tokens: int) -> int:
        """What an estimate of so many tokens is, lines encoded alone taking more than lines in a row."""
        return max(1, tokens * self.upto[-1] // max(1, self.total))


def _divided(units: list[Unit], data: bytes, sizes: _Sizes, limit: int) -> Iterator[Unit]:
    """Units, those above the limit divided at their lines, and lines above it between characters."""
    offsets = np.array([*(unit.start for unit in units), len(data)], np.int64)
    estimates = np.diff(sizes.at_all(offsets)).tolist()
    for unit, end, estimate in zip(units, offsets[1:].tolist(), estimates, strict=True):
        yield unit
        if estimate <= limit:
            continue
        lines = [unit.start, *line_starts(data, unit.start, end).tolist(), end]
        for begin, stop in pairwise(lines):
            if begin > unit.start:
                yield unit._replace(start=begin, level=unit.level % SOFT + IN_NODE, whole=False)
            if (size := sizes.between(begin, stop)) > limit:
                step = max(1, (stop - begin) * limit // (PIECES * size))
                for offset in range(begin + step, stop, step):
                    if data[offset] & 0xC0 != 0x80:  # not inside a character
                        yield unit._replace(start=offset, level=SOFT + IN_NODE, whole=False)


def _merged(
    text: str, data: bytes, units: list[Unit], sizes: _Sizes, count: CountTokens, budget: int
) -> Iterator[Chunk]:
    """Chunks of neighbouring units, from the first on: as much as fits, up to the shallowest border.

    What did not fit when it was encoded lowers what is tried for the next chunk, too, which may be twice as much as
    that: a text whose estimate is wrong in one place costs a constant factor.
    """
    offsets = np.array([*(unit.start for unit in units), len(data)], np.int64)
    characters = _characters(data, offsets)
    upto = sizes.at_all(offsets)
    lengths = np.diff(offsets).tolist()
    levels = np.array([*(unit.level for unit in units), 0], np.int64)
    full = limit = sizes.limit(budget)
    first, begin = 0, 0  # unit, character
    while begin < len(text):
        limit = min(full, 2 * limit)
        while True:
            last = _cut(upto, levels, first, int(upto[first]) + limit, int(upto[first]) + limit // 2)
            end = int(characters[last])
            if end <= begin:
                last, end = first + 1, int(characters[first + 1])
            tokens = count([text[begin:end]])[0]
            if tokens <= budget or last == first + 1:
                break
            limit = max(1, min(limit - 1, int(upto[last] - upto[first])) * budget * MARGIN // (tokens * 100))
        if tokens <= budget:
            yield _chunk(units[first:last], lengths[first:last], begin, end)
        else:
            for start, stop in _halves(text, begin, end, count, budget):
                yield Chunk(start, stop, units[first].kind, units[first].depth, False)
        first, begin = last, end


def _cut(upto: Int64, levels: Int64, first: int, most: int, enough: int) -> int:
    """The unit before which to cut: of those with `enough` to `most` before them the one at the shallowest border; of
    several the last. Where all of these are SOFT, the last before them that is not, if any. One beyond the last unit
    for the end of the text; never `first` itself.
    """
    last = max(first + 1, int(np.searchsorted(upto, most, "right")) - 1)
    if last == len(upto) - 1:
        return last
    least = max(first + 1, min(last, int(np.searchsorted(upto, enough))))
    window = levels[least : last + 1]
    if int(window.min()) >= SOFT:
        free = np.flatnonzero(levels[first + 1 : least] < SOFT)
        if len(free):
            return first + 1 + int(free[-1])
    return last - int(window[::-1].argmin())


def _halves(text: str, begin: int, end: int, count: CountTokens, budget: int) -> Iterator[tuple[int, int]]:
    """A range of characters, halved until each half fits. Raises ValueError for a character that never does."""
    stack = [(begin, end)]
    while stack:
        start, stop = stack.pop()
        if count([text[start:stop]])[0] <= budget:
            yield start, stop
        elif stop - start == 1:
            raise ValueError(f"budget: {budget} given, which is less than the tokens of {text[start]!r}")
        else:
            middle = (start + stop) // 2
            stack += [(middle, stop), (start, middle)]


def _chunk(units: Sequence[Unit], sizes: Sequence[int], begin: int, end: int) -> Chunk:
    """The chunk that units of these sizes in bytes make, characters begin to end."""
    amount = dict.fromkeys(KINDS, 0)
    for unit, size in zip(units, sizes, strict=True):
        amount[unit.kind] += size
    main = [kind for kind in KINDS if amount[kind] and kind not in (COMMENT, PREAMBLE)]
    kind = max(main or [COMMENT, PREAMBLE], key=lambda kind: amount[kind])
    parts = [unit for unit in units if unit.kind == kind]
    return Chunk(begin, end, kind, min(unit.depth for unit in parts), all(unit.whole for unit in units))


def _characters(data: bytes, offsets: Int64) -> Int64:
    """Characters that begin before each offset."""
    if data.isascii():
        return offsets
    begins = (np.frombuffer(data, np.uint8) & 0xC0) != 0x80
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(begins)])[offsets]
