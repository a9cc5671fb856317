"""Whether a place of a source file is code, or text: a string or a comment. By signs alone, without a grammar.

What is not clearly code counts as text, so a rule that spares code never spares a text by mistake where signs mislead
(a glob such as "src/**", an apostrophe in a comment). All languages are read alike.
"""

import re

# What opens and what closes a text of several lines; in whatever stands between them lines look like code.
BLOCKS = ((b"/*", b"*/"), (b"<!--", b"-->"), (b'R"(', b')"'), (b'r#"', b'"#'), (b"\n=begin", b"\n=end"))
FENCES = (b'"""', b"'''", b"`")  # the same sign opens and closes
CLOSED = re.compile(rb"\"{3}|'{3}|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|/\*[^*]*\*/")
TEXT = re.compile(rb"[\"']|//|--|/\*|;;|^[ \t]*(?:\*|%|--|#(?![ \t]*(?:define|if|elif|undef|pragma)\b))|[ \t]#[ \t]")
LINE = 400  # bytes of a line that are looked at; what stands farther behind counts as text


class SourcePlaces:
    """The places of one file, asked for in ascending order. Cost: linear in the file for all of them together."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._inside = [False] * len(BLOCKS)
        self._odd = [False] * len(FENCES)

    def is_code(self, at: int) -> bool:
        """Whether data[at] is code. at: not before that of the last question."""
        self._advance(at)
        if any(self._inside) or any(self._odd):
            return False
        start = self._data.rfind(b"\n", max(0, at - LINE), at) + 1
        if not start and at > LINE:
            return False
        return TEXT.search(CLOSED.sub(b"", self._data[start:at])) is None

    def _advance(self, at: int) -> None:
        data, last = self._data, self._at
        if at <= last:
            return
        for i, (opening, closing) in enumerate(BLOCKS):
            opened, closed = data.rfind(opening, last, at), data.rfind(closing, last, at)
            if opened != closed:
                self._inside[i] = opened > closed
        for i, fence in enumerate(FENCES):
            self._odd[i] ^= data.count(fence, last, at) % 2 == 1
        self._at = at
