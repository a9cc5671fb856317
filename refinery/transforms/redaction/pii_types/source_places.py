"""Whether a place of a source file is code, or text: a string or a comment. By signs alone, without a grammar.

What is not clearly code counts as text, so a rule that spares code never spares a text by mistake where signs mislead
(a glob such as "src/**", an apostrophe in a comment). All languages are read alike.
"""

import re
from bisect import bisect_right

# What opens and what closes a text of several lines; in whatever stands between them lines look like code.
BLOCKS = ((b"/*", b"*/"), (b"<!--", b"-->"), (b'R"(', b')"'), (b'r#"', b'"#'), (b"\n=begin", b"\n=end"))
FENCES = (b'"""', b"'''", b"`")  # the same sign opens and closes
# Texts of several lines whose end the beginning names: R"x( … )x", r##" … "##, [==[ … ]==], sigils, heredocs.
TAGGED = re.compile(
    rb"R\"(?P<raw>[^\s()\\\"]{1,16})\(|\br(?P<hashes>##+)\"|(?:[=(,]|\breturn|\.\.)[ \t]{0,8}\[(?P<level>={0,8})\[\r?\n"
    rb"|(?:~[a-zA-Z]|%[qQ]|\bqq?(?=\{))(?P<sigil>[(\[{<])"
    rb"|<<[-~<]?[ \t]?(?P<mark>[\"']?)(?P<tag>[A-Za-z_]\w{0,60})(?P=mark)(?!\w)"
)
OPENING = 80  # bytes that TAGGED can match
SIGIL_ENDS = {b"(": b")", b"[": b"]", b"{": b"}", b"<": b">"}
ALONE = re.compile(rb"^[ \t]*([A-Za-z_]\w*)(?=[;,).]*\r?$)", re.MULTILINE)  # the end of a heredoc
DATA = re.compile(rb"^__(?:END|DATA)__\r?$", re.MULTILINE)  # of Perl and Ruby: what follows is read, not run
CLOSED = re.compile(rb"\"{3}|'{3}|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|/\*[^*]*\*/", re.DOTALL)
TEXT = re.compile(rb"[\"']|//|--|/\*|;;|^[ \t]*(?:\*|%|--|#(?![ \t]*(?:define|if|elif|undef|pragma)\b))|[ \t]#[ \t]")
LINE = 400  # bytes of a line that are looked at; what stands farther behind counts as text


class SourcePlaces:
    """The places of one file, asked for in ascending order. Cost: linear in the file for all of them together."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._inside = [False] * len(BLOCKS)
        self._odd = [False] * len(FENCES)
        self._read = 0  # how far TAGGED is looked for
        self._closing: bytes | None = None  # of a tagged text that is open
        self._ends: dict[bytes, list[int]] | None = None
        end = DATA.search(data)
        self._program_ends = end.start() if end else len(data)

    def is_code(self, at: int) -> bool:
        """Whether data[at] is code. at: not before that of the last question."""
        if self.is_inside(at):
            return False
        data, least = self._data, max(0, at - LINE)
        start = data.rfind(b"\n", least, at) + 1
        while start > least and data.endswith((b"\\\n", b"\\\r\n"), least, start):  # goes on: a string, a macro
            start = data.rfind(b"\n", least, start - 1) + 1
        if not start and at > LINE:
            return False
        return TEXT.search(CLOSED.sub(b"", data[start:at])) is None

    def is_inside(self, at: int) -> bool:
        """Whether data[at] is in a text of several lines. at: not before that of the last question."""
        self._advance(at)
        return any(self._inside) or any(self._odd) or self._closing is not None or at > self._program_ends

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
        self._advance_tagged(at)

    def _advance_tagged(self, at: int) -> None:
        data = self._data
        while self._read < at:
            if self._closing is not None:
                end = data.find(self._closing, self._read, at)
                if end < 0:
                    self._read = max(self._read, at - len(self._closing) + 1)
                    return
                self._read, self._closing = end + len(self._closing), None
            opening = TAGGED.search(data, self._read, at)
            if opening is None:
                self._read = max(self._read, at - OPENING)
                return
            self._read, self._closing = opening.end(), self._end_of(opening)

    def _end_of(self, opening: re.Match[bytes]) -> bytes | None:
        """What closes a tagged text; None for a shift, whose name no later line has alone."""
        parts = opening.groupdict()
        if parts["raw"]:
            return b")" + parts["raw"] + b'"'
        if parts["hashes"]:
            return b'"' + parts["hashes"]
        if parts["sigil"]:
            return SIGIL_ENDS[parts["sigil"]]
        if parts["level"] is not None:
            return b"]" + parts["level"] + b"]"
        if self._ends is None:
            self._ends = {}
            for line in ALONE.finditer(self._data):
                self._ends.setdefault(line.group(1), []).append(line.start())
        places = self._ends.get(parts["tag"], [])
        place = bisect_right(places, opening.end())
        if place == len(places):
            return None
        start = places[place]
        return self._data[start - 1 : self._data.index(parts["tag"], start) + len(parts["tag"])]


def text_spans(line: bytes) -> list[tuple[int, int]]:
    """Where the strings and the comment of one line are, in order."""
    spans = [match.span() for match in CLOSED.finditer(line)]
    text = TEXT.search(CLOSED.sub(lambda match: b"_" * len(match.group()), line))
    comment = text.start() if text else len(line)
    return [*((start, end) for start, end in spans if start < comment), (comment, len(line))]
