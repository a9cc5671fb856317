"""How the fields of a CSV or TSV file are written, and the rows of a file that is written so.

rfc4180: a field may be quoted, and a quote in it is doubled (RFC 4180). backslash: the same, or a backslash stands
before it, and before another backslash (Spark, Redshift, MySQL's ENCLOSED BY). plain: a line is a row, and quotes are
characters like others (IANA's text/tab-separated-values). escaped: the same with backslashes before what would end a
field, \\t, \\n, \\r, \\b, \\f, \\v, \\0, and \\N for no value (COPY of PostgreSQL, mysqldump --tab).

"auto" is rfc4180 for CSV. For TSV, which is written in either way, the file decides: see `choose_dialect`.
"""

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, Protocol

Dialect = Literal["auto", "rfc4180", "backslash", "plain", "escaped"]

HEAD = 1 << 20  # bytes from the first field on that begins with a quote, by which a TSV file is judged
ROWS = 1000  # that are looked at
BOM = b"\xef\xbb\xbf"
_PAIR = re.compile(r'\\(["\\])|\\')
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "", "Z": "\x1a"}
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


class Lines(Iterator[str]):
    """The lines of a file as text, with the bytes of those that the current row took; each byte that is not UTF-8 is
    one character of U+DC80 to U+DCFF (`surrogateescape`). read: the next bytes, b"" at the end. limit: bytes of a row.
    """

    def __init__(self, read: Callable[[], bytes], limit: int) -> None:
        self.read, self.limit = read, limit
        self.buffer = io.BytesIO()
        self.again = io.BytesIO()  # what was given back
        self.first = True
        self.begin_row()

    def begin_row(self) -> None:
        self.taken = bytearray()
        self.undecodable = self.too_long = self.is_new = False

    def __next__(self) -> str:
        data = self._line()
        if not data:
            raise StopIteration
        if self.first:
            data, self.first = data.removeprefix(BOM), False
        self.taken += data
        if len(self.taken) > self.limit:  # an open quote: the row is given up here
            self.too_long = True
            raise csv.Error("row too long")
        try:
            return data.decode().replace("\0", "")
        except UnicodeDecodeError:
            self.undecodable = True
            return data.decode("utf-8", "surrogateescape").replace("\0", "")

    def give_back(self, kept: int = 0) -> None:
        """Read again what the current row took, except its first `kept` bytes."""
        if self.is_new:
            self.again = io.BytesIO(bytes(self.taken[kept:]))
        else:
            self.again.seek(kept - len(self.taken), io.SEEK_CUR)
        del self.taken[kept:]

    def peek(self, size: int) -> bytes:
        """So many of the next bytes, fewer at the end of the file."""
        rest = bytearray(self.buffer.read())
        while len(rest) < size and (more := self.read()):
            rest += more
        self.buffer = io.BytesIO(bytes(rest))
        return bytes(rest[:size])

    def _line(self) -> bytes:
        if known := self.again.readline():
            return known
        self.is_new = True
        line = bytearray()
        while True:
            piece = self.buffer.readline()
            if len(line) <= self.limit:
                line += piece
            if piece.endswith(b"\n"):
                return bytes(line)
            more = self.read()
            if not more:
                return bytes(line)
            self.buffer = io.BytesIO(more)


class Rows(Protocol):
    """The rows of a file. width: fields of its header, once that is known."""

    width: int

    @property
    def dialect(self) -> Dialect:
        """How the row that `next` gave last is written."""
        ...

    def next(self) -> tuple[list[str] | None, bytes]:
        """The next row and its bytes: [] for a blank line; None for a row that is none, None and b"" at the end."""
        ...


def rows_of(lines: Lines, dialect: Dialect, delimiter: str) -> Rows:
    """The rows of a file that is written so."""
    if dialect == "auto":
        return _TabRows(lines, delimiter) if delimiter == "\t" else _QuotedRows(lines, delimiter)
    if dialect in ("plain", "escaped"):
        return _PlainRows(lines, delimiter, dialect == "escaped")
    return _QuotedRows(lines, delimiter, dialect == "backslash")


class _QuotedRows:
    """Text behind a closing quote is not a row, and no matter where it is not quoted at all: `5" pipe`.

    What is not a row costs its first line. Where the quotes in that do not come in pairs, its last field may go on
    in the lines that follow: these are not rows, until one closes the quote, or is surely a row again (it has the
    header's width, and quoted fields or, where the last row had numbers, numbers). Otherwise half a text would look
    like a row.
    """

    def __init__(self, lines: Lines, delimiter: str, backslash: bool = False) -> None:
        self.lines, self.backslash = lines, backslash
        self.width = 0
        self.form = {"delimiter": delimiter, "strict": True, "escapechar": "\\" if backslash else None}
        self.rows = csv.reader(map(self._kept, lines) if backslash else lines, **self.form)  # type: ignore[arg-type]
        field = rf'(?:"[^"]*(?:""[^"]*)*"|[^"{delimiter}\r\n]*)'
        self.clean = re.compile(rf"{field}(?:{delimiter}{field})*[\r\n]*")
        self.last: Sequence[str] = ()
        self.is_open = False

    @property
    def dialect(self) -> Dialect:
        return "backslash" if self.backslash else "rfc4180"

    def next(self) -> tuple[list[str] | None, bytes]:
        lines = self.lines
        lines.begin_row()
        before = csv.field_size_limit(lines.limit)  # of the whole process, so it is put back
        try:
            row = self._behind() if self.is_open else next(self.rows, None)
            self.last = row or self.last
            return row, bytes(lines.taken)
        except csv.Error:
            if not lines.too_long:  # the quote may have been open from the first line on
                lines.give_back(lines.taken.find(b"\n") + 1 or len(lines.taken))
                self.is_open = self._quotes(lines.taken.decode("latin-1")) % 2 == 1
            return None, bytes(lines.taken)
        finally:
            csv.field_size_limit(before)

    def _kept(self, line: str) -> str:
        """The line, such that csv leaves the backslashes that escape nothing as they are."""
        return _PAIR.sub(lambda found: found[0] if found[1] else r"\\", line) if "\\" in line else line

    def _quotes(self, line: str) -> int:
        return (_PAIR.sub("", line) if self.backslash else line).count('"')

    def _behind(self) -> list[str] | None:
        """The next line, behind one whose quotes do not come in pairs."""
        line = next(self.lines, None)
        if line is None:
            return None
        doubled = _PAIR.sub(lambda found: '""' if found[1] == '"' else "", line) if self.backslash else line
        if self.clean.fullmatch(doubled):
            (row,) = list(csv.reader([self._kept(line) if self.backslash else line], **self.form)) or [[]]  # type: ignore[arg-type]
            if len(row) == self.width and ('"' in line or have_numbers(row, self.last)):
                self.is_open = False
                return row
        self.is_open = self._quotes(line) % 2 == 0
        return None


class _PlainRows:
    """A line is a row; with escapes one goes on behind a backslash at its end."""

    def __init__(self, lines: Lines, delimiter: str, escapes: bool = False) -> None:
        self.lines, self.delimiter, self.escapes = lines, delimiter, escapes
        self.width = 0

    @property
    def dialect(self) -> Dialect:
        return "escaped" if self.escapes else "plain"

    def next(self) -> tuple[list[str] | None, bytes]:
        self.lines.begin_row()
        try:
            line = next(self.lines, None)
            while self.escapes and line and _is_open(line[:-1].removesuffix("\r")) and (more := next(self.lines, "")):
                line += more
        except csv.Error:
            return None, bytes(self.lines.taken)
        return None if line is None else self.split(line), bytes(self.lines.taken)

    def split(self, line: str) -> list[str]:
        line = line.removesuffix("\n").rstrip("\r")
        fields = line.split(self.delimiter) if line else []
        if not self.escapes or "\\" not in line:
            return fields
        joined: list[str] = []
        for field in fields:
            if joined and _is_open(joined[-1]):
                joined[-1] += self.delimiter + field
            else:
                joined.append(field)
        return [_unescaped(field) for field in joined]


class _TabRows(_PlainRows):
    """Plain, up to the first field that begins with a quote; then as the file is written."""

    quoted: _QuotedRows | None = None
    is_chosen = False

    @property
    def dialect(self) -> Dialect:
        return "rfc4180" if self.quoted else "plain"

    def next(self) -> tuple[list[str] | None, bytes]:
        if self.quoted is None:
            row, data = super().next()
            if self.is_chosen or row is None or not _begins_with_quote(row):
                return row, data
            width = self.width or len(row)
            head = data + self.lines.peek(HEAD)
            self.is_chosen = True
            if choose_dialect(head, self.delimiter, width, not self.width, len(head) >= HEAD) == "plain":
                return row, data
            self.lines.give_back()
            self.quoted = _QuotedRows(self.lines, self.delimiter)
        self.quoted.width = self.width
        return self.quoted.next()


def choose_dialect(head: bytes, delimiter: str, width: int, is_header: bool, is_cut: bool) -> Dialect:
    """Whether lines are "plain" or "rfc4180". head: from the first on that has a field that begins with a quote;
    is_header: this is the file's first one. is_cut: more follow.

    Where not every line has the header's number of fields, that with fewer rows at fault; if equal, rfc4180 where a tab
    or a newline is inside of quotes. Where every line has it, rows end where lines do, and quotes are quoting only if
    that fits the whole head and something speaks for it: the header is quoted, or all fields but numbers, or a quote
    inside of one is doubled.
    """
    head = head[: head.rfind(b"\n") + 1] if is_cut else head
    plain = count_faults(head, "plain", delimiter, width, is_cut)
    quoted = count_faults(head, "rfc4180", delimiter, width, is_cut)
    if plain:
        rows = first_rows(head, "rfc4180", delimiter, is_cut, width)
        inside = any(len(row) == width and re.search("[\t\n]", "".join(row)) for row, _ in rows if row)
        return "rfc4180" if quoted < plain + inside else "plain"
    lines = head.decode("utf-8", "replace").removeprefix("\ufeff").split("\n")[:ROWS]
    table = [line.rstrip("\r").split(delimiter) for line in lines if line.rstrip("\r")]
    begun = [field for row in table for field in row if field.startswith('"')]
    whole = re.compile(r'"[^"]*(?:""[^"]*)*"')
    if quoted or not all(whole.fullmatch(field) for field in begun):
        return "plain"
    if is_header and _begins_with_quote(table[0]):
        return "rfc4180"
    if any('""' in field[1:-1] for field in begun):
        return "rfc4180"
    is_all = all(not field or field.startswith('"') or _NUMBER.fullmatch(field) for row in table for field in row)
    columns = {number for row in table for number, field in enumerate(row) if field.startswith('"')}
    return "rfc4180" if is_all and len(columns) > 1 else "plain"


def propose_dialect(head: bytes, delimiter: str, is_cut: bool) -> tuple[Dialect, int]:
    """The dialect in which each of the first rows of a file is one, and how many are none as the file is read by
    itself; ("auto", 0) where nothing is to be said."""
    faults = count_faults(head, "auto", delimiter, 0, is_cut) if b"\\" in head else 0
    if faults and not count_faults(head, "backslash", delimiter, 0, is_cut):
        return "backslash", faults
    if faults and not count_faults(head, "escaped", delimiter, 0, is_cut):
        quoted = any(_begins_with_quote(row) for row, _ in first_rows(head, "escaped", delimiter, is_cut) if row)
        return ("auto", 0) if quoted and delimiter == "," else ("escaped", faults)
    return "auto", 0


def settle_dialect(head: bytes, dialect: Dialect, delimiter: str, is_cut: bool) -> Dialect:
    """What "auto" means for a file that begins so."""
    if dialect != "auto" or delimiter != "\t":
        return "rfc4180" if dialect == "auto" else dialect
    rows = rows_of(_lines_of(head), "auto", delimiter)
    for _ in _first_of(rows, head, is_cut):
        pass
    return "rfc4180" if isinstance(rows, _TabRows) and rows.quoted else "plain"


def count_faults(head: bytes, dialect: Dialect, delimiter: str, width: int, is_cut: bool) -> int:
    """Rows of the first ROWS that are none, or have not `width` fields (0: those of the first row)."""
    faults = 0
    for row, _ in first_rows(head, dialect, delimiter, is_cut, width):
        width = width or len(row or ())
        faults += row is None or len(row) != width
    return faults


def first_rows(
    head: bytes, dialect: Dialect, delimiter: str, is_cut: bool, width: int = 0
) -> Iterator[tuple[list[str] | None, int]]:
    """The first rows of a file that begins with `head`, blank lines left out, each with the number of its last line,
    from 1. is_cut: the file goes on; what may go on behind the head is left out. width: fields of its header, 0 where
    that is its first row."""
    rows = rows_of(_lines_of(head), dialect, delimiter)
    rows.width = width
    return _first_of(rows, head, is_cut)


def _lines_of(head: bytes) -> Lines:
    pieces = iter([head])
    return Lines(lambda: next(pieces, b""), 2 * len(head) + 1)


def _first_of(rows: Rows, head: bytes, is_cut: bool) -> Iterator[tuple[list[str] | None, int]]:
    read = line = 0
    for _ in range(ROWS):
        row, data = rows.next()
        read, line = read + len(data), line + data.count(b"\n")
        if not data or (is_cut and read >= len(head) and len(data) < len(head) // 2):
            return
        if row is None or row:
            rows.width = rows.width or len(row or ())
            yield row, line


def have_numbers(row: Sequence[str], last: Sequence[str]) -> bool:
    """Whether a row has numbers wherever the last one had, at least one."""
    numbers = [number for number, field in enumerate(last) if _NUMBER.fullmatch(field)]
    return bool(numbers) and all(number < len(row) and _NUMBER.fullmatch(row[number]) for number in numbers)


def _begins_with_quote(row: Sequence[str]) -> bool:
    return any(field.startswith('"') for field in row)


def _is_open(text: str) -> bool:
    """Whether a text ends in a backslash that escapes what follows."""
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1


def _unescaped(field: str) -> str:
    return "" if field == r"\N" else _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), field)
