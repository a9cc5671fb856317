"""Benchmarks as a table of hashed n-grams, and the scan of texts for them.

1. Words are those of dedup/signatures.py: runs of letters and digits with their marks, lower-cased one by one; in
   scripts written without spaces every character. So case, punctuation and spacing do not matter.
2. Key of n words: S = sum of fmix64(word hash[i]) * ROLL^(n-1-i) mod 2^64, then fmix64(S xor salt).
3. A field of at least n words has the keys of all its n-grams; n is 13 (GPT-3, Brown et al. 2020, appendix C), and
   twice that where most words are single characters of a script without spaces. A shorter question of at least 8 words
   (GPT-3's minimum; 16 of such characters) has one key, that of all its words. Shorter fields have none.
4. A key is evidence if at least MIN_DISTINCT different words with content are in it (MIN_WHOLE in that of a whole
   question), that is of two characters or more and not only digits, so tables of numbers and alphabets are none;
   if at most `max_items` items have it (GPT-3: 10), so instructions and licences of a benchmark are none; and if
   it is in no text of common notices (boilerplate.py).
5. A question that is left without evidence is looked at once more with every punctuation mark as a word of its own
   (salt SYMBOLS): 26 of these make an n-gram, 8 the shortest question. So formulas and brackets are found as well,
   as far as their marks are kept.

Two different runs of words share a key with odds of 2^-64. A text of n words meets one of m keys by chance with odds of
about n * m / 2^64: 10^13 words against 10 million keys, five times. So the words themselves are not kept.
"""

import tempfile
import unicodedata
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import IO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from refinery.transforms.dedup.signatures import BORDER, SOLITARY, character_table
from refinery.transforms.native import ngrams

WORDS, SYMBOLS = 0, 1  # salts of the two ways to read a text
MIN_DISTINCT = 5  # of 8 to 13 words; "0 1 2 3 …" has none, "a b c d …" neither
MIN_WHOLE = 3
SHORTEST = ngrams.TAIL  # words of the shortest question: GPT-3's minimum
SHARED = np.uint32(1 << 31)  # in an owner: other items have the n-gram, too
FILTER_BITS = 16  # per key: less than one word in 100 costs a search
TAIL_BITS = 256  # of the few short questions: a tail that is in the filter costs a search for every length
PARTITIONS = 64  # the keys are sorted in so many pieces, which bounds what sorting needs
BATCH_KEYS = 1 << 18

Keys = NDArray[np.uint64]
ROW = np.dtype([("key", "<u8"), ("field", "<u4")])


@dataclass(frozen=True, slots=True)
class Item:
    """A task of a benchmark. benchmark: its number. questions, others: texts of its fields."""

    benchmark: int
    name: str
    questions: tuple[str, ...]
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class NgramIndex:
    """keys: sorted. owners: of each key the number of the first item that has it, with SHARED. filter: of the keys.
    lengths, shorter: of each salt, the lengths of n-grams and of whole questions; tails: a filter of the last words of
    these. names, benchmarks: of items.
    searchable: whether an item has a key at all. 14 to 16 bytes a key.
    """

    keys: Keys
    owners: NDArray[np.uint32]
    filter: NDArray[np.uint64]
    tails: NDArray[np.uint64]
    lengths: tuple[NDArray[np.int64], ...]
    shorter: tuple[NDArray[np.int64], ...]
    names: pa.StringArray
    benchmarks: NDArray[np.uint16]
    searchable: NDArray[np.bool_]

    def scan(self, text: str) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """(spans, owners): int64 of shape (hits, 2), text[start:end] of every n-gram that is in the table.

        Cost: linear in characters and in the number of lengths, without the GIL; memory: 40 bytes a hit.
        """
        found = [np.empty((0, 3), np.int64)]
        arrays = [array.view(np.int64) for array in (self.keys, self.filter, self.tails)]
        for salt, (lengths, shorter) in enumerate(zip(self.lengths, self.shorter, strict=True)):
            if len(lengths) or len(shorter):
                hits = ngrams.scan(text, tables()[salt], salt, lengths, shorter, *arrays)
                found.append(np.frombuffer(hits, np.int64).reshape(-1, 3))
        every = np.concatenate(found)
        return every[:, :2], self.owners[every[:, 2]]

    def found(self, owners: NDArray[np.uint32]) -> list[int]:
        """Items that these hits stand for, ascending: those with an n-gram of their own, else the first of the items
        that share one."""
        own = owners[owners & SHARED == 0]
        return [int(item) for item in np.unique(own if len(own) else owners & ~SHARED)]


@cache
def tables() -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Characters as the two ways to read a text take them: for SYMBOLS, marks of punctuation are words, too."""
    words = character_table()
    symbols = words.copy()
    for code in np.flatnonzero(words >> 24 == BORDER).tolist():
        if unicodedata.category(chr(code))[0] in "PS":
            symbols[code] = SOLITARY << 24 | code
    symbols.flags.writeable = False
    return words, symbols


@dataclass
class Lengths:
    """Lengths of n-grams and of whole questions of one salt, and the keys of the questions' last words."""

    ngrams: set[int] = field(default_factory=set)
    whole: set[int] = field(default_factory=set)
    tails: set[int] = field(default_factory=set)


def field_keys(text: str, salt: int, ngram: int, is_question: bool, lengths: Lengths) -> Keys:
    """Keys of a field that may be evidence; what finds them again is added to `lengths`."""
    table, shortest = tables()[salt], SHORTEST
    packed, distinct, words, solitary = ngrams.windows(text, tables()[WORDS], ngram, WORDS)
    if 2 * solitary > words:
        shortest *= 2
    if salt == SYMBOLS or 2 * solitary > words:
        ngram *= 2
        packed, distinct, words, _ = ngrams.windows(text, table, ngram, salt)
    least = MIN_DISTINCT
    whole = is_question and shortest <= words < ngram
    if whole:
        packed, distinct, _, _ = ngrams.windows(text, table, words, salt)
        least = MIN_WHOLE if salt == WORDS else MIN_DISTINCT
    keys = np.frombuffer(packed, np.uint64)
    keys = np.unique(keys[np.frombuffer(distinct, np.uint8) >= least])
    if len(keys) and whole:
        lengths.whole.add(words)
        lengths.tails.add(int(np.frombuffer(ngrams.windows(text, table, ngrams.TAIL, salt)[0], np.uint64)[-1]))
    elif len(keys):
        lengths.ngrams.add(ngram)
    return keys


class _Rows:
    """(key, field) rows on their way into the table, in a temporary file, by range of the key; in each by ascending
    field. Memory: a batch."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.pieces: list[list[tuple[int, int]]] = [[] for _ in range(PARTITIONS)]  # (offset, rows)
        self.batch: list[tuple[Keys, int]] = []
        self.size = self.offset = 0

    def add(self, keys: Keys, field: int) -> None:
        self.batch.append((keys, field))
        self.size += len(keys)
        if self.size >= BATCH_KEYS:
            self.flush()

    def flush(self) -> None:
        rows = np.empty(self.size, ROW)
        at = 0
        for keys, number in self.batch:
            rows["key"][at : at + len(keys)], rows["field"][at : at + len(keys)] = keys, number
            at += len(keys)
        part = rows["key"] >> np.uint64(64 - PARTITIONS.bit_length() + 1)
        self.file.seek(self.offset)
        for number in np.unique(part).tolist():
            inside = rows[part == number]
            self.file.write(inside.tobytes())
            self.pieces[number].append((self.offset, len(inside)))
            self.offset += inside.nbytes
        self.batch, self.size = [], 0

    def take(self) -> Iterator[tuple[Keys, NDArray[np.uint32]]]:
        """The rows of each range, sorted by key and field."""
        self.flush()
        for pieces in self.pieces:
            rows = np.empty(sum(count for _, count in pieces), ROW)
            at = 0
            for offset, count in pieces:
                self.file.seek(offset)
                rows[at : at + count] = np.frombuffer(self.file.read(count * ROW.itemsize), ROW)
                at += count
            rows = rows[np.argsort(rows["key"], kind="stable")]
            yield rows["key"].copy(), rows["field"].copy()
        self.pieces = [[] for _ in range(PARTITIONS)]


class _Table:
    """What is evidence: keys and owners, and which fields have any."""

    def __init__(self, max_items: int, common: Keys) -> None:
        self.max_items, self.common = max_items, common
        self.pieces: list[tuple[Keys, NDArray[np.uint32]]] = []

    def add(self, rows: _Rows, item_of: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Take the rows in; returns which fields have evidence."""
        has = np.zeros(len(item_of), np.bool_)
        for keys, fields in rows.take():
            if not len(keys):
                continue
            items = item_of[fields]
            first = np.ones(len(keys), np.bool_)
            first[1:] = keys[1:] != keys[:-1]
            other = first.copy()
            other[1:] |= items[1:] != items[:-1]
            starts = np.flatnonzero(first)
            count = np.add.reduceat(other.astype(np.int64), starts)
            good = (count <= self.max_items) & ~np.isin(keys[starts], self.common)
            has[fields[np.repeat(good, np.diff([*starts, len(keys)]))]] = True
            owners = items[starts] | np.where(count > 1, SHARED, np.uint32(0))
            if good.any():
                self.pieces.append((keys[starts[good]], owners[good]))
        return has

    def sorted(self) -> tuple[Keys, NDArray[np.uint32]]:
        """All keys and owners, by key; of two ways to read one range, the pieces are merged."""
        size = sum(len(keys) for keys, _ in self.pieces)
        keys, owners = np.empty(size, np.uint64), np.empty(size, np.uint32)
        end = size
        self.pieces.sort(key=lambda piece: int(piece[0][0]))
        while self.pieces:  # from the end, each given up once it is copied
            piece = self.pieces.pop()
            start = end - len(piece[0])
            keys[start:end], owners[start:end] = piece
            end = start
        if not np.all(keys[1:] > keys[:-1]):
            order = np.argsort(keys, kind="stable")
            keys, owners = keys[order], owners[order]
        return keys, owners


def build_index(
    read: Callable[[], Iterable[Item]], ngram: int = 13, max_items: int = 10, common: Sequence[str] = ()
) -> NgramIndex:
    """The table of these items; `read` gives them, the same each time it is called. common: texts that prove nothing.

    The same items give the same table. Cost: about a second for a million n-grams; memory: some 20 bytes an n-gram and
    60 for each item; 12 bytes an n-gram of a temporary file.
    """
    with tempfile.TemporaryFile(prefix="refinery-") as file:
        return _fill(_Rows(file), read, ngram, max_items, common)


def _fill(
    rows: _Rows, read: Callable[[], Iterable[Item]], ngram: int, max_items: int, common: Sequence[str]
) -> NgramIndex:
    notices = [
        ngrams.windows(text, tables()[salt], size, salt)[0]
        for text in common
        for salt, size in ((WORDS, ngram), (WORDS, 2 * ngram), (SYMBOLS, 2 * ngram))
    ]
    table = _Table(max_items, np.unique(np.frombuffer(b"".join(notices), np.uint64)))
    lengths = Lengths(), Lengths()
    names, benchmarks, item_of, questions = [], array("H"), array("I"), array("B")
    for number, item in enumerate(read()):
        names.append(item.name)
        benchmarks.append(item.benchmark)
        for is_question, texts in ((True, item.questions), (False, item.others)):
            for text in texts:
                rows.add(field_keys(text, WORDS, ngram, is_question, lengths[WORDS]), len(item_of))
                item_of.append(number)
                questions.append(is_question)
    packed_names = pa.array(names, pa.string())
    del names
    items = np.array(item_of, np.uint32)
    has = table.add(rows, items)

    unclear = np.array(questions, np.bool_) & ~has
    first = 0
    for item in read() if unclear.any() else ():
        for place, text in enumerate(item.questions):
            if unclear[first + place]:
                rows.add(field_keys(text, SYMBOLS, ngram, True, lengths[SYMBOLS]), first + place)
        first += len(item.questions) + len(item.others)
    has |= table.add(rows, items)

    searchable = np.zeros(len(packed_names), np.bool_)
    searchable[items[has]] = True
    keys, owners = table.sorted()
    return NgramIndex(
        keys=keys,
        owners=owners,
        filter=make_filter(keys),
        tails=make_filter(np.array(sorted(set().union(*(each.tails for each in lengths))), np.uint64), TAIL_BITS),
        lengths=tuple(np.array(sorted(each.ngrams), np.int64) for each in lengths),
        shorter=tuple(np.array(sorted(each.whole), np.int64) for each in lengths),
        names=packed_names,
        benchmarks=np.array(benchmarks, np.uint16),
        searchable=searchable,
    )


def make_filter(keys: Keys, bits_per_key: int = FILTER_BITS) -> NDArray[np.uint64]:
    """A blocked Bloom filter: a power of 2 of words, `bits_per_key` or more bits per key, three of them in one word.

    The words are chosen by the highest bits of a key, so all its memory is used once, in order, for sorted keys.
    """
    bits = max(0, (bits_per_key * len(keys) - 1).bit_length() - 6)
    found = np.zeros(1 << bits, np.uint64)
    one, six, low = np.uint64(1), np.uint64(6), np.uint64(63)
    for start in range(0, len(keys), BATCH_KEYS):
        batch = keys[start : start + BATCH_KEYS]
        mask = one << (batch & low) | one << (batch >> six & low) | one << (batch >> six >> six & low)
        np.bitwise_or.at(found, (batch >> one >> np.uint64(63 - bits)).astype(np.intp), mask)
    return found
