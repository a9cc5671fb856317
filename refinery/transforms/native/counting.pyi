from typing import NamedTuple

# Whose units.
DCLM: int
DOLMA: int

MAX_NGRAM: int

class Quality(NamedTuple):
    """Raw counts for Gopher's quality rules, under the names of heuristics.Features. "chars" are code points."""

    words: int  # between white space
    word_chars: int  # of all of them
    double_median_chars: int  # dolma: twice the median length of words; DCLM: 0
    alnum_words: int  # DCLM: words between white space of ASCII or "\0" that begin with a letter or a digit; dolma: all
    alphabetic_words: int  # words with a letter
    letters: int  # 0, as spaceless_letters: scripts without spaces are judged as all others
    spaceless_letters: int
    stop_words: int  # occurrences of the words of the list that has most; DCLM: of words in small letters
    hashes: int  # DCLM: occurrences of "#", "...", ". . ." and "…"; dolma: words with "#" or "…"
    ellipses: int  # 0: they are among the hashes
    lines: int  # DCLM: lines that are not blank; dolma: all
    bullet_lines: int  # DCLM: stripped lines that begin with one of ● • * -; dolma: lines that begin with one of * -
    ellipsis_lines: int  # DCLM: stripped lines that end in "...", ". . ." or "…"; dolma: lines that end in "…"

class RepeatedPieces(NamedTuple):
    """Shares of what occurs more than once, all occurrences. Lines end at "\\n", paragraphs at "\\n\\n"."""

    duplicate_lines: float  # DCLM: stripped lines that are not blank; of none all, 1.0. dolma: all lines
    duplicate_paragraphs: float  # dolma: 0.0
    duplicate_line_chars: float  # dolma: of the characters of words
    duplicate_paragraph_chars: float  # dolma: 0.0

def quality(text: str, stop_words: tuple[tuple[str, ...], ...], units: int, /) -> Quality:
    """One pass. Cost: about 200 MB/s of English. All functions: linear for any text. They raise ValueError for numbers
    out of bounds or 2**31 characters and more; TypeError; MemoryError."""

def repeated_pieces(text: str, units: int, /) -> RepeatedPieces:
    """Lines and paragraphs are equal when their characters are."""

def repeated_ngrams(text: str, most: int, units: int, /) -> tuple[float, ...]:
    """Shares for n from 2 to `most` (at most MAX_NGRAM), of characters of words. n below 5: the most frequent n-gram,
    by its occurrences. DCLM: the longest of several, 0.0 if none occurs twice; dolma: the first. n from 5 on: repeated
    n-grams. DCLM: words in one, each once; dolma: characters of n-grams, on both sides once for each n-gram.
    Words: DCLM those of words_of, dolma those between white space. Cost: about 100 MB/s of English."""

def c4_lines(text: str, ends_alone: bool, min_words: int, /) -> str:
    """The lines that have so many words and, with ends_alone, end in one of . ? ! " before white space."""

def words_of(text: str, /) -> list[str]:
    """Words by the boundaries of Unicode's annex 29, without what does not begin with a letter or a digit.

    Runs of letters, digits, marks and underscores; one of `'’.:·‧` between letters, or of `'’.,;،٬` between digits,
    parts no word; a letter of a script written without spaces is a word, but katakana, which make runs."""

def probe_steps() -> int:
    """Slots that the last call in this process passed over in all its hash tables. For tests."""

def probe_hash_bits(bits: int, /) -> None:
    """From now on look at so many bits of hashes (64: all), so that more are equal; for tests."""
