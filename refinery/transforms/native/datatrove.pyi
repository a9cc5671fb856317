from typing import NamedTuple

# Cost of all functions: linear for any text. They raise ValueError for numbers out of bounds or 2**31 characters and
# more; TypeError; MemoryError. "chars" are code points. Fields have the names that heuristics.Features has.

class Quality(NamedTuple):
    symbol_words: int  # words between white space without a letter or a digit, but not of punctuation alone
    symbol_word_chars: int
    lines: int  # what str.splitlines yields, blank lines included
    bullet_lines: int  # lines that begin, behind white space, with • or -

class RepeatedPieces(NamedTuple):
    lines: int  # pieces between runs of line breaks ("\n"), with the empty ones before the first and after the last
    duplicate_lines: int  # equal to one before them
    duplicate_line_chars: int
    paragraphs: int  # of the stripped text, pieces between runs of two line breaks or more
    duplicate_paragraphs: int
    duplicate_paragraph_chars: int

class KeptLines(NamedTuple):
    kept_lines: int  # pieces between line breaks ("\n") that are not blank
    kept_terminal_lines: int  # the last character ends a sentence
    kept_short_lines: int  # at most short_line_chars characters
    kept_duplicate_line_chars: int  # of those equal to one before them
    kept_line_breaks: int
    kept_line_chars: int  # all characters but line breaks

def quality(text: str, /) -> Quality:
    """For Gopher's quality rules."""

def repeated_pieces(text: str, /) -> RepeatedPieces:
    """For the repetition rules. Pieces are equal when their characters are."""

def kept_lines(text: str, short_line_chars: int, /) -> KeptLines:
    """For FineWeb's rules."""

def stripped_lines(text: str, /) -> str:
    """What str.splitlines yields, without the white space around each line and without blank lines."""
