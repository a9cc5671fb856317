"""What this project says to people: prose of Markdown, messages and docstrings of Python, texts of HTML and scripts.

`passages(path)` gives each as `Passage(line, text)`. Fenced code, generated tables and link targets are left out.
`code`, quotations and values of f-strings become one letter, which no rule about words matches.
"""

import ast
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import accumulate
from pathlib import Path

SUFFIXES = {".md", ".py", ".html", ".js"}
CODE = "X"  # replaces code, quotations and values
_GENERATED = re.compile(r"<!-- (?!end\b)[\w-]+(?:: [\w.-]*)? -->\n.*?<!-- end -->", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_FENCE = re.compile(r"^ *(`{3,}|~{3,})[^\n]*\n.*?^ *\1 *$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"\[([^\[\]]*)\]\([^()\s]*\)")
_QUOTED = re.compile(r"“[^”]*”|(?<!\w)\"[^\"\n]*\"(?!\w)")
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_BREAK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+\.|#+|\||>)\s)|(?<=\|) ?\n|\n(?= *\S+(?: \S+)? {2,}\S)")
_SCRIPT = re.compile(
    r"\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`|//[^\n]*|/\*.*?\*/", re.DOTALL
)
_QUOTES = re.compile(r"^\s*f?[rb]?\"|\"\s*[,)]*$")
_VALUE = re.compile(r"\{[^{}]*\}")
_PARAGRAPH = re.compile(r"\n\s*\n|\n(?= {2})")
_WORDS = re.compile(r"[A-Za-z]{2,}[^A-Za-z\s]* +[^A-Za-z\s]*[A-Za-z]")


@dataclass(frozen=True)
class Passage:
    """A piece of prose that is read as one. `starts` are offsets in `text` where a new line of the file begins."""

    line: int
    text: str
    starts: tuple[int, ...] = field(default=(0,))

    def line_at(self, offset: int) -> int:
        """The line of the file (from 1) of a character of `text`."""
        return self.line + bisect_right(self.starts, offset) - 1


def passages(path: Path) -> Iterator[Passage]:
    """Every passage of a file, in its order. Raises ValueError for a suffix that is not in SUFFIXES."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return of_markdown(text)
    if path.suffix == ".py":
        return of_python(text)
    if path.suffix == ".html":
        return of_html(text)
    if path.suffix == ".js":
        return of_script(text)
    raise ValueError(f"{path}: only {', '.join(sorted(SUFFIXES))} files are read")


def of_markdown(text: str) -> Iterator[Passage]:
    """Paragraphs, headings, items and rows of tables, without code, generated blocks and comments."""
    for pattern in (_FENCE, _GENERATED, _COMMENT):
        text = pattern.sub(lambda found: "\n" * found[0].count("\n"), text)
    yield from _pieces(1, text)


def of_html(text: str) -> Iterator[Passage]:
    """Texts between tags, without scripts, styles, `code` and `pre`."""
    reader = _Texts()
    reader.feed(text)
    reader.close()
    for line, piece in reader.found:
        yield from _pieces(line, piece)


def of_script(text: str) -> Iterator[Passage]:
    """Literals of JavaScript that have words in them."""
    for found in _SCRIPT.finditer(text):
        literal = next(filter(None, found.groups()), "")
        if _WORDS.search(literal):
            yield from _pieces(text.count("\n", 0, found.start()) + 1, _TAG.sub(" ", literal))


def of_python(source: str) -> Iterator[Passage]:
    """Docstrings of public names, and all literals that have words in them: messages, help, descriptions, HTML."""
    rows = source.splitlines()
    waiting: list[ast.AST] = [ast.parse(source)]
    found: list[Passage] = []
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                found += _literal(node, node.value, rows)
            continue
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else CODE for part in node.values)
            found += _literal(node, "".join(map(str, parts)), rows)
            waiting += [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
            continue
        docstring = _docstring(node)
        if docstring is not None and not getattr(node, "name", "").startswith("_"):
            found += _pieces(docstring.lineno, str(docstring.value))
        for name, value in vars(node).items():
            if isinstance(value, ast.AST):
                waiting.append(value)
            elif isinstance(value, list):
                skipped = docstring is not None and name == "body"
                waiting += [child for child in value[skipped:] if isinstance(child, ast.AST)]
    yield from sorted(found, key=lambda passage: passage.line)


def _docstring(node: ast.AST) -> ast.Constant | None:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            return first.value
    return None


def _literal(node: ast.expr, text: str, rows: list[str]) -> Iterator[Passage]:
    """A literal of one or several lines. Where it has no newlines of its own, lines are counted by their lengths."""
    text = _TAG.sub(" ", text)
    if _WORDS.search(text):
        lengths = [len(_VALUE.sub(CODE, _QUOTES.sub("", row))) for row in rows[node.lineno - 1 : node.end_lineno]]
        starts = tuple(accumulate(lengths[:-1], initial=0))
        for piece in _PARAGRAPH.split(text):
            yield Passage(node.lineno, _passage(node.lineno, piece).text, starts)


def _pieces(line: int, text: str) -> Iterator[Passage]:
    """`text` cut into what is read as one: at empty lines, items, headings and rows."""
    begin = 0
    for end, after in [*((found.start(), found.end()) for found in _BREAK.finditer(text)), (len(text), len(text))]:
        piece = text[begin:end]
        if piece.strip():
            yield _passage(line + text.count("\n", 0, begin), piece)
        begin = after


def _passage(line: int, text: str) -> Passage:
    """`text` on one line, code and addresses replaced. Each newline stays one character, so lines can be counted."""
    text = _SPAN.sub(lambda found: CODE + "\n" * found[0].count("\n"), text)
    text = _QUOTED.sub(lambda found: CODE + "\n" * found[0].count("\n"), text)
    text = _LINK.sub(r"\1", text)
    starts = (0, *(offset + 1 for offset, letter in enumerate(text) if letter == "\n"))
    return Passage(line, text.replace("\n", " "), starts)


class _Texts(HTMLParser):
    """Texts of a page with their lines."""

    SKIPPED = ("code", "pre", "script", "style")

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[int, str]] = []
        self.depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.depth += tag in self.SKIPPED

    def handle_endtag(self, tag: str) -> None:
        self.depth -= tag in self.SKIPPED

    def handle_data(self, data: str) -> None:
        if not self.depth and data.strip():
            self.found.append((self.getpos()[0], data))
