"""Markdown as CommonMark and GitHub read it, of values that come from anywhere: names, addresses, recipes.

Whatever a value says, it is shown and not obeyed: it makes no heading, link, image, element of HTML or new row, and no
character in it changes the order of those around it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from refinery.pipelines.reports.pages.markup import CONTROLS, visible

# What means something inside a line: emphasis, code, links, elements, entities, cells, mathematics, and what GitHub
# takes for an address without any mark.
INLINE = re.compile(r"[\\`*_\[\]<>|~@$]|&(?=[#\w])|:(?=//)|(?<=www)\.", re.IGNORECASE)
BEGIN = re.compile(r"[#+\-=:]|\d{1,9}[.)]")  # what means something at the beginning of one
RUN_OF_TICKS = re.compile("`+")


def line_of(value: object) -> str:
    """A value on one line, with what is not to be seen written out."""
    return visible(str(value)).replace("\n", "\\n").replace("\t", "\\t").strip()


def text(value: object) -> str:
    """A value as text of a paragraph or a cell: what Markdown would take for a mark is escaped.

    >>> text("[a](https://b) <i>"), text("1. www.b.c"), text("too-few-words")
    ('\\\\[a\\\\](https\\\\://b) \\\\<i\\\\>', '1\\\\. www\\\\.b.c', 'too-few-words')
    """
    line = escaped(line_of(value))
    begin = BEGIN.match(line)
    return f"{line[: begin.end() - 1]}\\{line[begin.end() - 1 :]}" if begin else line


def escaped(line: str) -> str:
    """A part of a line behind its beginning."""
    return INLINE.sub(lambda found: "\\" + found[0], visible(line))


def code(value: object) -> str:
    """A value as code, in a paragraph or a cell; nothing for an empty one.

    >>> code("a`b|c"), code("")
    ('`` a`b\\\\|c ``', '')
    """
    line = line_of(value)
    if not line:
        return ""
    longest = max(map(len, RUN_OF_TICKS.findall(line)), default=0)
    fence, space = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{space}{line.replace('|', chr(92) + '|')}{space}{fence}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Lines of a table, with an empty one behind it. Cells are Markdown already."""
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def fenced(content: str, language: str = "") -> Iterator[str]:
    """Lines of a block of code, with an empty one behind it, whatever the content."""
    lines = [visible(line) for line in content.rstrip("\n").split("\n")]
    longest = max((len(run) for line in lines for run in RUN_OF_TICKS.findall(line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}{language}"
    yield from lines
    yield fence
    yield ""


def quoted(value: str) -> Iterator[str]:
    """Somebody's words as a quotation, a line each, with an empty line behind it."""
    yield from (f"> {text(line)}".rstrip() for line in value.strip().split("\n"))
    yield ""


def to_yaml(value: Mapping[str, Any]) -> str:
    """Plain data as YAML that reads back as it was. Characters that are not to be seen are written as escapes."""
    options: dict[str, Any] = {"sort_keys": False, "width": 120}
    plain = yaml.safe_dump(value, allow_unicode=True, **options)
    return str(yaml.safe_dump(value, **options) if CONTROLS.search(plain) else plain)
