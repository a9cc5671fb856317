"""Heuristics for source files, cheapest first; each with a reason and a switch of its own."""

import math
import re
from collections import Counter
from dataclasses import replace

import numpy as np

from refinery.transforms.code.code_rules import (
    COMMENT_LINE,
    DATA,
    MINIFIED,
    REASONS,
    CodeHeuristicsParams,
)
from refinery.transforms.code.comment_bound import comment_bound
from refinery.transforms.code.comments import Comments
from refinery.transforms.code.generated import HEAD, has_generated_form, has_mark, is_named_generated
from refinery.transforms.code.languages import LIBRARIES, language_of
from refinery.transforms.code.parser_frames import COMMENTS
from refinery.transforms.code.parser_process import PARSER
from refinery.transforms.code.paths import VENDORED
from refinery.transforms.core.document import Document, Drop, text_bytes
from refinery.transforms.core.stage import Note, Stage

_SAYS_ENOUGH = re.compile(r"(?:\w\W*){8}\w", re.ASCII).search
_BAD = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ufffd]")


def entropy(text: str) -> float:
    """Shannon entropy of the ASCII bytes of a text, in bits; 0 for none. Linear.

    Other bytes are left out: comments in Chinese are not encoded data.
    """
    counts = np.bincount(np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8), minlength=256)[:128]
    total = int(counts.sum())
    return -sum(n / total * math.log2(n / total) for n in counts.tolist() if n) if total else 0.0


def data_share(text: str) -> float:
    """Share of the characters that are elements of tables of numbers, base64 or escaped bytes. Linear."""
    return sum(map(len, DATA.findall(text.encode("utf-8", "surrogatepass")))) / max(1, len(text))


def look_at(text: str, language: str) -> Comments | None:
    """The comments of a text; None without a grammar or a tree. Cost: one parse. Its errors are those of PARSER.ask."""
    found = PARSER.ask(COMMENTS, language, text.encode()) if language else None
    if found is None:
        return None
    return Comments(found[0], found[1], list(zip(found[2::2], found[3::2], strict=True)))


def comment_share(found: Comments | None) -> float:
    """Share of comments that explain no code among the bytes that are not whitespace; 0 where it is not known."""
    return found.loose / max(1, found.size) if found else 0.0


def is_marked(text: str, found: Comments | None) -> bool:
    """Whether comments at the head of a text say that a program wrote it. Code that writes such a mark has it, too."""
    head = text[:HEAD]
    if found is None:
        comments = "\n".join(COMMENT_LINE.findall(head))
    else:
        data = head.encode()
        comments = "\n".join(data[begin:end].decode("utf-8", "replace") for begin, end in found.first)
    return has_mark(comments)


def judge_code(doc: Document, params: CodeHeuristicsParams) -> Document | Drop:
    """`doc` with its language noted, or Drop with the first rule that fails.

    The path is the note `path`, else the url. Cost: linear; a parse, 0.3 s per MB of C++, only for what has very many
    comments or a mark of generated files. Raises ValueError for lone surrogates, and what PARSER.ask raises.
    """
    p, text = params, doc.text
    path = str(doc.meta.get("path") or doc.url)
    name = path.rsplit("/", 1)[-1].lower()
    if p.endings is not None and not name.endswith(p.endings):
        return Drop("code-ending")
    if p.drop_vendored and VENDORED.search(path):
        return Drop("code-vendored")
    if p.drop_generated and (is_named_generated(path) or has_generated_form(text, name)):
        return Drop("code-generated")
    reason = _size(text, p) or _lines(text, name, p)
    if reason is None and p.max_data is not None and data_share(text) > p.max_data:
        reason = "code-encoded-data"
    if reason is None and p.max_entropy is not None and entropy(text) > p.max_entropy:
        reason = "code-high-entropy"
    language = language_of(path, text)
    if reason is None:
        reason = _comments(text, language, p)
    if reason is not None:
        return Drop(reason)
    return replace(doc, meta=dict(doc.meta) | {"code_language": language})


def _comments(text: str, language: str, p: CodeHeuristicsParams) -> str | None:
    marks = p.drop_generated and has_mark(text[:HEAD])
    many = p.max_comments is not None and comment_bound(text.encode(), language) >= p.max_comments
    if not marks and not many:
        return None
    found = look_at(text, language)
    if marks and is_marked(text, found):
        return "code-generated"
    return "code-comments" if p.max_comments is not None and comment_share(found) >= p.max_comments else None


def _size(text: str, p: CodeHeuristicsParams) -> str | None:
    size = text_bytes(text)
    if p.min_bytes is not None and size < p.min_bytes:
        return "code-too-small"
    if p.max_bytes is not None and size > p.max_bytes:
        return "code-too-large"
    if p.max_bad_characters is not None and len(_BAD.findall(text)) > p.max_bad_characters * len(text):
        return "code-bad-characters"
    return None


def _lines(text: str, name: str, p: CodeHeuristicsParams) -> str | None:
    lines = text.split("\n")
    if p.max_line_chars is not None and max(map(len, lines)) > p.max_line_chars:
        return "code-long-line"
    full = [line for line in map(str.strip, lines) if line]
    count = max(1, len(full))
    if p.max_mean_line_chars is not None and (
        MINIFIED.search(name) or sum(map(len, full)) > p.max_mean_line_chars * count
    ):
        return "code-minified"
    if p.min_unique_lines is not None and count - _repeated(full) <= p.min_unique_lines * count:
        return "code-repeated-lines"
    return None


def _repeated(lines: list[str]) -> int:
    """How many lines have stood before; of those that say enough to be compared, or of all, where none does."""
    times = Counter(lines)
    again = len(lines) - len(times)
    if not again or not any(map(_SAYS_ENOUGH, times)):
        return again
    return sum(number - 1 for line, number in times.items() if number > 1 and _SAYS_ENOUGH(line))


CODE_HEURISTICS = Stage(
    name="code-heuristics",
    version=4,
    summary="Drop source files that are vendored, generated, minified, data, or nearly all comments.",
    params=CodeHeuristicsParams,
    judge=judge_code,
    libraries=LIBRARIES,
    notes=(
        Note(
            "code_language",
            str,
            "programming language, by the ending of its name",
            column=True,
            carried=True,
            category=True,
        ),
    ),
    reasons=REASONS,
)
