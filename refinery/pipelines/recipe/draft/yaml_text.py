"""Lines of a recipe: values from strangers' names, quoted so that they mean what they are, and comments."""

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping

from refinery.transforms.core.safe_text import safe

WIDTH = 120
# What YAML reads as this text without quotes, whatever its version: words that are no number, boolean or null.
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(?:[./][A-Za-z0-9_-]+)*")
_WORDS = frozenset({"on", "off", "yes", "no", "y", "n", "true", "false", "null"})


def quoted(text: str) -> str:
    """A text as a YAML scalar: plain where that is certain, else in double quotes with what is not printable escaped.

    >>> quoted("body"), quoted("no"), quoted('a "b": #c')
    ('body', '"no"', '"a \\\\"b\\\\": #c"')
    """
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped) + '"'


def listed(texts: Iterable[str]) -> str:
    """Texts as a list on one line."""
    return f"[{', '.join(map(quoted, texts))}]"


def comment(text: str, indent: str = "") -> Iterator[str]:
    """Lines of a comment; nothing in `text` can end it."""
    width = WIDTH - len(indent) - 2
    for line in textwrap.wrap(safe(text), width, break_long_words=True, break_on_hyphens=False) or [""]:
        yield f"{indent}# {line}".rstrip()


def source_lines(fields: Mapping[str, str | int | list[str]], notes: Iterable[str]) -> Iterator[str]:
    """An element of `sources` below its comment. Many paths are one a line."""
    for note in notes:
        yield from comment(note, "  ")
    start = "  - "
    for key, value in fields.items():
        if isinstance(value, list) and len(line := f"{start}{key}: {listed(value)}") > WIDTH:
            yield f"{start}{key}:"
            yield from (f"      - {quoted(each)}" for each in value)
        else:
            shown = listed(value) if isinstance(value, list) else quoted(value) if isinstance(value, str) else value
            yield line if isinstance(value, list) else f"{start}{key}: {shown}"
        start = "    "
