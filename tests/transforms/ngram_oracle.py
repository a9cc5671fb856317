"""N-grams of benchmarks as ngram_index.py describes them, in plain Python: by words, without a hash."""

import unicodedata
from collections.abc import Iterable, Iterator
from itertools import chain

from refinery.transforms.dedup.signatures import LETTER, MARK, SOLITARY, character_table
from refinery.transforms.filter.ngram_index import MIN_DISTINCT, MIN_WHOLE, SHORTEST, SYMBOLS, WORDS, Item

Word = tuple[str, int, int, bool]  # lower-cased, start, end, whether it is a single character of its own
Ngram = tuple[int, tuple[str, ...]]  # with the salt


def split(text: str, salt: int) -> list[Word]:
    """Words of a text, with their places."""
    table, words, open_, end = character_table(), [], -1, 0

    def close() -> None:
        nonlocal open_
        if open_ >= 0:
            lower = "".join(chr(int(table[ord(c)]) & 0xFFFFFF or ord(c)) for c in text[open_:end])
            words.append((lower, open_, end, alone))
        open_ = -1

    alone = False
    for i, c in enumerate(text):
        kind = int(table[ord(c)]) >> 24
        if kind == 0 and salt == SYMBOLS and unicodedata.category(c)[0] in "PS":
            kind = SOLITARY
        if kind == MARK or (kind == LETTER and open_ >= 0 and not alone):
            end = i + 1
            continue
        close()
        if kind in (LETTER, SOLITARY):
            open_, end, alone = i, i + 1, kind == SOLITARY
    close()
    return words


def has_content(word: Word) -> bool:
    letters = [c for c in word[0] if int(character_table()[ord(c)]) >> 24 != MARK]
    return word[3] or (len(letters) > 1 and not all("0" <= c <= "9" for c in letters))


def ngrams(text: str, salt: int, n: int, is_question: bool) -> set[Ngram]:
    """What of a field may be evidence."""
    words, shortest = split(text, WORDS), SHORTEST
    if 2 * sum(word[3] for word in words) > len(words):
        n, shortest = 2 * n, 2 * shortest
    elif salt == SYMBOLS:
        n *= 2
    words = split(text, salt)
    least = MIN_DISTINCT
    if is_question and shortest <= len(words) < n:
        n, least = len(words), MIN_WHOLE if salt == WORDS else MIN_DISTINCT
    found = set()
    for i in range(len(words) - n + 1):
        window = words[i : i + n]
        if len({word[0] for word in window if salt == SYMBOLS or has_content(word)}) >= least:
            found.add((salt, tuple(word[0] for word in window)))
    return found


def evidence(items: list[Item], n: int, max_items: int, common: Iterable[str]) -> dict[Ngram, list[int]]:
    """N-gram -> numbers of the items that have it, of all that prove something."""
    sizes = ((WORDS, n), (WORDS, 2 * n), (SYMBOLS, 2 * n))
    known = set(chain.from_iterable(windows(text, salt, size) for text in common for salt, size in sizes))

    def good(owners: dict[Ngram, set[int]]) -> dict[Ngram, list[int]]:
        return {g: sorted(o) for g, o in owners.items() if len(o) <= max_items and g not in known}

    owners: dict[Ngram, set[int]] = {}
    for number, item in enumerate(items):
        for is_question, texts in ((True, item.questions), (False, item.others)):
            for text in texts:
                for ngram in ngrams(text, WORDS, n, is_question):
                    owners.setdefault(ngram, set()).add(number)
    found = good(owners)
    symbols: dict[Ngram, set[int]] = {}
    for number, item in enumerate(items):
        for text in item.questions:
            if not any(ngram in found for ngram in ngrams(text, WORDS, n, True)):
                for ngram in ngrams(text, SYMBOLS, n, True):
                    symbols.setdefault(ngram, set()).add(number)
    return found | good(symbols)


def windows(text: str, salt: int, n: int) -> Iterator[Ngram]:
    words = [word[0] for word in split(text, salt)]
    return ((salt, tuple(words[i : i + n])) for i in range(len(words) - n + 1))


def scan(text: str, found: dict[Ngram, list[int]]) -> set[tuple[int, int, int]]:
    """(start, end, first item) of every n-gram of the text that proves something."""
    hits = set()
    for salt in (WORDS, SYMBOLS):
        words = split(text, salt)
        for n in {len(ngram[1]) for ngram in found if ngram[0] == salt}:
            for i in range(len(words) - n + 1):
                window = words[i : i + n]
                if owners := found.get((salt, tuple(word[0] for word in window))):
                    hits.add((window[0][1], window[-1][2], owners[0]))
    return hits
