"""What `transforms.native.datatrove` counts, a second time, in plain Python."""

import re
from collections.abc import Sequence

from tests.transforms.heuristics_oracle import TERMINALS

_SYMBOLS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~«´»–—’“”„…∶━►、。〈〉《》「」【】！％（），．１：；？～"
_NO_ALNUM = re.compile(r"(?<!\S)(?:[^\w\s]|_)+(?!\S)")
_BULLETS = ("•", "-")


def quality(text: str) -> dict[str, int]:
    """For Gopher's quality rules."""
    symbols = [word for word in _NO_ALNUM.findall(text) if not all(map(_is_symbol, word))]
    lines = text.splitlines()
    return {
        "symbol_words": len(symbols),
        "symbol_word_chars": sum(map(len, symbols)),
        "lines": len(lines),
        "bullet_lines": sum(line.lstrip().startswith(_BULLETS) for line in lines),
    }


def repeated_pieces(text: str) -> dict[str, int]:
    """For the repetition rules."""
    lines = re.split("\n+", text)
    paragraphs = re.split("\n{2,}", text.strip())
    counts = {"lines": len(lines), "paragraphs": len(paragraphs)}
    counts["duplicate_lines"], counts["duplicate_line_chars"] = _met_before(lines)
    counts["duplicate_paragraphs"], counts["duplicate_paragraph_chars"] = _met_before(paragraphs)
    return counts


def kept_lines(text: str, short: int) -> dict[str, int]:
    """For FineWeb's rules."""
    lines = [line for line in text.split("\n") if line.strip()]
    breaks = text.count("\n")
    return {
        "kept_lines": len(lines),
        "kept_terminal_lines": sum(line[-1] in TERMINALS for line in lines),
        "kept_short_lines": sum(len(line) <= short for line in lines),
        "kept_duplicate_line_chars": _met_before(lines)[1],
        "kept_line_breaks": breaks,
        "kept_line_chars": len(text) - breaks,
    }


def stripped_lines(text: str) -> str:
    """Lines without the white space around them, and without the blank ones."""
    return "\n".join(line for each in text.splitlines() if (line := each.strip()))


def _is_symbol(character: str) -> bool:
    return character in _SYMBOLS or character in TERMINALS


def _met_before(pieces: Sequence[str]) -> tuple[int, int]:
    """How many pieces are equal to one before them, and their characters."""
    seen: set[str] = set()
    again = chars = 0
    for piece in pieces:
        if piece in seen:
            again += 1
            chars += len(piece)
        seen.add(piece)
    return again, chars
