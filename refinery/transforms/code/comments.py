"""Comments of a source file, by its syntax tree: how many of them explain nothing, and where the first ones are.

A run is comments without a blank line or code between them. Runs at the head that say the licence are left out. Runs
that explain code stand at the head, or right before or behind it. What is left are comments for themselves: texts about
nothing, more text than code can need, and code that was switched off.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

import tree_sitter

from refinery.transforms.code.generated import HEAD
from refinery.transforms.code.languages import LANGUAGES, SourceLanguage, load_grammar
from refinery.transforms.code.parse import Parsed

DEPTH = 200  # of the tree, below which comments are not looked for: at each node the query looks at all above it
WIDE = 2_000  # children of one ERROR node, from which on no query is used: at each it looks at those behind it
SPACE = b" \t\n\r\x0b\x0c"
EXPLAINED = 10  # bytes of comments that a byte of code can need: zlib.h has 7, RocksDB's options.h 5
VISIBLE = re.compile(rb"[!-~]")
LICENCE = re.compile(rb"licen[sc]e|copyright|\(c\) *[12][0-9]{3}|spdx|all rights reserved|redistribut", re.IGNORECASE)


class Comments(NamedTuple):
    """loose: bytes of comments for themselves. size: of the file without its licence. Neither has white space. first:
    (begin, end) of the comments that begin in the first HEAD bytes."""

    loose: int
    size: int
    first: list[tuple[int, int]]


class _Run(NamedTuple):
    """Comments without a blank line or code between them. at_head: no code stands before it. at_code: code is right
    before or behind it."""

    begin: int
    end: int
    size: int
    at_head: bool
    at_code: bool


@cache
def _query(language: str) -> tree_sitter.Query:
    types = " ".join(f"({name})" for name in sorted(LANGUAGES[language].comments))
    return tree_sitter.Query(load_grammar(language), f"[{types}] @comment")


def comment_places(data: bytes, parsed: Parsed, language: SourceLanguage) -> list[tuple[int, int]]:
    """(begin, end) of the comments, in order, without those inside another one. Linear."""
    found = _walked if parsed.widest >= WIDE else _queried
    places: list[tuple[int, int]] = []
    for begin, end in sorted((node.start_byte, node.end_byte) for node in found(parsed.tree, language)):
        if not places or begin >= places[-1][1]:
            places.append((_sign(data, begin, end), end))
    return places


def _sign(data: bytes, begin: int, end: int) -> int:
    """Where a comment's sign is. After an error, grammars of JavaScript have white space before it in the comment, also
    such as U+2028, which is not in SPACE."""
    visible = VISIBLE.search(data, begin, end)
    return visible.start() if visible else begin


def _queried(tree: tree_sitter.Tree, language: SourceLanguage) -> Iterable[tree_sitter.Node]:
    cursor = tree_sitter.QueryCursor(_query(language.name))
    cursor.set_max_start_depth(DEPTH)
    return cursor.captures(tree.root_node).get("comment", [])


def _walked(tree: tree_sitter.Tree, language: SourceLanguage) -> Iterator[tree_sitter.Node]:
    """The same nodes; some times slower for most trees."""
    cursor, depth = tree.walk(), 0
    while True:
        node = cursor.node
        if node is not None and node.type in language.comments:
            yield node
        if depth < DEPTH and cursor.goto_first_child():
            depth += 1
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return
            depth -= 1


def look_at_comments(data: bytes, parsed: Parsed, language: SourceLanguage) -> Comments:
    """What a file's comments are. Linear."""
    places = comment_places(data, parsed, language)
    size = code = len(data.translate(None, SPACE))
    loose = explaining = 0
    for run in _runs(data, places):
        code -= run.size
        if run.at_head and LICENCE.search(data, run.begin, run.end):
            size -= run.size
        elif run.at_head or run.at_code:
            explaining += run.size
        else:
            loose += run.size
    loose += max(0, explaining - EXPLAINED * code)
    return Comments(loose, size, [place for place in places if place[0] < HEAD])


def _runs(data: bytes, places: list[tuple[int, int]]) -> Iterator[_Run]:
    at_head, behind_code = True, False
    begin = last = size = 0
    for i, (start, end) in enumerate(places):
        if not i or data[last:start].strip(SPACE) or _has_blank_line(data[last:start]):
            at_head, behind_code = _code_before(data, last, start, at_head)
            begin, size = start, 0
        size += len(data[start:end].translate(None, SPACE))
        last = end - 1 if data[end - 1 : end] == b"\n" else end  # of a language whose comments have their line ends
        following = places[i + 1][0] if i + 1 < len(places) else len(data)
        gap = data[last:following]
        code = gap.strip(SPACE)
        if code or _has_blank_line(gap) or following == len(data):
            before_code = bool(code) and not _has_blank_line(gap[: gap.index(code[:1])])
            yield _Run(begin, last, size, at_head, behind_code or before_code)


def _code_before(data: bytes, last: int, start: int, at_head: bool) -> tuple[bool, bool]:
    """(whether no code is before a run, whether code is right before it). last: end of the run before, or 0."""
    gap = data[last:start]
    if not gap.strip(SPACE):
        return at_head, False
    return False, not _has_blank_line(gap[len(gap.rstrip(SPACE)) :])


def _has_blank_line(gap: bytes) -> bool:
    return gap.count(b"\n") > 1
