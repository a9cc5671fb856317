from typing import NamedTuple

# What `flags` may hold, or-ed together.
WORDS: int  # fill stop_words, window_unique_words and, up to max_ngram, the n-gram counts
LINES: int  # fill duplicate_lines, duplicate_line_chars and kept_duplicate_line_chars
PARAGRAPHS: int  # fill paragraphs, duplicate_paragraphs and duplicate_paragraph_chars
NEED_TERMINAL: int  # remove lines that do not end in terminal punctuation or a quote, or that end in "..."
NO_JAVASCRIPT: int  # remove lines with "javascript" (ASCII letters in either case)
NO_POLICY: int  # remove lines with one of C4's cookie and policy phrases
C4_ENDS: int  # with NEED_TERMINAL: the five marks of C4's code alone end a line: . ? ! " '
UNSPLIT: int  # letters of scripts written without spaces are no words of their own (and spaceless_letters stays 0)
LONE_NGRAMS: int  # of n-grams that occur once the first counts as the most frequent; all words stand one space apart

WINDOW_WORDS: int  # words of one window of window_unique_words

class Features(NamedTuple):
    """Raw counts. "chars" are code points; a line is a non-blank one, without its line end."""

    words: int
    alnum_words: int  # words with a letter or a digit, and their characters
    alnum_word_chars: int
    alphabetic_words: int  # words with a letter
    letters: int  # characters with str.isalpha; of those, letters of scripts written without spaces
    spaceless_letters: int
    stop_words: int  # distinct words of the list that has most of them in the text
    window_unique_words: int  # distinct words of each run of WINDOW_WORDS words, summed
    punctuation: int  # characters of Unicode categories P and S
    hashes: int
    ellipses: int  # "…" and non-overlapping "..."
    curly_brackets: int  # lines with "{" that min_line_words, max_word_chars, NEED_TERMINAL, NO_JAVASCRIPT leave
    lorem_ipsum: int  # lines with "lorem ipsum" that the same leave, without NO_JAVASCRIPT
    lines: int
    bullet_lines: int
    ellipsis_lines: int
    code_lines: int
    duplicate_lines: int  # lines met before
    duplicate_line_chars: int
    paragraphs: int  # runs of lines between blank lines; their characters: the lines joined by one character
    duplicate_paragraphs: int
    duplicate_paragraph_chars: int
    top_2_gram_chars: int
    top_3_gram_chars: int
    top_4_gram_chars: int
    duplicate_5_gram_chars: int
    duplicate_6_gram_chars: int
    duplicate_7_gram_chars: int
    duplicate_8_gram_chars: int
    duplicate_9_gram_chars: int
    duplicate_10_gram_chars: int
    kept_lines: int  # from here on: of the text that is left when lines are removed
    kept_words: int
    kept_sentences: int
    kept_line_breaks: int
    kept_line_chars: int  # all characters but line breaks
    kept_terminal_lines: int
    kept_short_lines: int
    kept_duplicate_line_chars: int
    text: str | None  # the text that is left; None when nothing was removed

def measure(
    text: str,
    stop_words: tuple[tuple[str, ...], ...],
    max_ngram: int,
    short_line_chars: int,
    min_line_words: int,
    max_word_chars: int,
    flags: int,
    /,
) -> Features:
    """Count everything in one pass. 0 switches a limit off; lines under min_line_words or with a word over
    max_word_chars are removed. Cost: about 150 MB/s of English with everything on. Raises ValueError for a negative
    limit, max_ngram above 10, unknown flags, or 2**31 characters and more; TypeError; MemoryError."""

def probe_steps() -> int:
    """Slots that the last call of measure in this process passed over in all its hash tables. For tests."""
