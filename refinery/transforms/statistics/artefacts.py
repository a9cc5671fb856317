"""Signs of badly cleaned text: how many documents have them, before and after the funnel.

A table. Page, docs and statistics.json derive from it; a row more is one more line there. One look at a text says which
patterns it may match (redaction/prefilter); only these are searched for.
"""

from collections.abc import Callable
from dataclasses import dataclass

from refinery.transforms.native import signs as kernel
from refinery.transforms.redaction.pii_types.scan import Hints

WINDOW = 4096  # characters of a text's beginning, and of its end, that are looked at
LINE = 20  # bytes from which on a repeated line counts


@dataclass(frozen=True, slots=True)
class Artefact:
    """name: kebab-case and stable. meaning: what a document has that is counted. pattern: RE2 on the bytes of UTF-8, ""
    for one that `find` finds in them."""

    name: str
    meaning: str
    pattern: str = ""
    find: Callable[[bytes], bool] | None = None


def repeats_lines(text: bytes) -> bool:
    """Whether a line of at least LINE bytes stands in it three times or more."""
    return kernel.repeats_line(text, LINE, 3)


def code_lines(text: bytes) -> bool:
    """Whether three lines in a row end in a bracket or a semicolon, before blanks and tabs."""
    return kernel.lines_end_in(text, b"{};", 3)


def _bytes(text: str) -> str:
    """The pattern of a text's bytes."""
    return "".join(f"\\x{byte:02x}" for byte in text.encode())


# Not every <word>: what stands for personal data is one, too (<EMAIL>, <ADDRESS>, <redacted-path>).
TAGS = (
    "a|abbr|article|aside|b|blockquote|body|br|button|center|code|dd|div|dl|dt|em|embed|figcaption|figure|font|footer|form"
    "|h[1-6]|head|header|hr|html|i|iframe|img|input|label|li|link|main|meta|nav|noscript|object|ol|option|p|picture|pre"
    "|script|section|select|small|span|strong|style|sub|sup|svg|table|tbody|td|th|thead|title|tr|tt|u|ul|video"
)

ARTEFACTS = (
    Artefact(
        "markup",
        "a tag of HTML: <div class=…>, </p>",
        rf"(?i)</?(?:{TAGS})(?:\s+[a-z-]+\s*=[^<>]*)?\s*/?>",
    ),
    Artefact(
        "entities",
        "a character reference: &amp; &#39;",
        r"&(?:#[0-9]+|#x[0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]+);",
    ),
    Artefact("code-lines", "three lines in a row that end in { } or ;", find=code_lines),
    Artefact(
        "scripts",
        "JavaScript: function(…) {, document. or window. with a property and a call, => {",
        r"\bfunction\s*\w*\([^()\n]*\)\s*\{|\b(?:document|window)\.\w+[.(=\[]|=>\s*\{",
    ),
    Artefact("white-space", "five blanks or tabs in a row, or four line ends", r"[ \t]{5}|\n{4}"),
    Artefact("replacement", "U+FFFD, which stands for a byte that could not be decoded", _bytes("\ufffd")),
    Artefact(
        "mojibake",
        "UTF-8 that was read as Windows-1252: â€™ or Ã©",
        _bytes("â€") + "|" + _bytes("Ã") + r"\xc2[\x80-\xbf]",
    ),
    Artefact("control", "a control character other than tab and line end", find=kernel.has_control),
    Artefact(
        "notices",
        "words of a notice: cookie policy, enable JavaScript, all rights reserved, terms of use, sign up, log in",
        r"(?i)cookie policy|accept (?:all )?cookies|we use cookies|enable javascript|javascript is (?:off|disabled)"
        r"|all rights reserved|terms of (?:use|service)|terms and conditions|privacy policy|sign up for"
        r"|subscribe to our|log ?in to|click here|share (?:this )?on",
    ),
    Artefact("repeated-lines", f"a line of {LINE} bytes or more that stands in it three times", find=repeats_lines),
)

PATTERNS = tuple(row for row in ARTEFACTS if row.pattern)
FUNCTIONS = tuple((row.name, row.find) for row in ARTEFACTS if row.find)


HINTS = Hints({row.name: row.pattern.encode() for row in PATTERNS})


def window(text: str) -> bytes:
    """What is looked at, as UTF-8: a short text whole, of a long one its first and last characters."""
    if len(text) > 2 * WINDOW:
        text = text[:WINDOW] + "\n" + text[-WINDOW:]
    return text.encode("utf-8", "surrogatepass")


def find_artefacts(text: bytes) -> list[str]:
    """Names of the artefacts in a `window`. Cost: some 15 microseconds for a page of 5 KB, linear."""
    hints = HINTS.of(text)
    found = [row.name for row in PATTERNS if row.name in hints] if hints else []
    return found + [name for name, find in FUNCTIONS if find(text)]
