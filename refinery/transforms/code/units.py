"""Where a source text may be cut: units, each beginning where the one before it ends, and how bad a cut there would be.

From a syntax tree only nodes above the budget are opened: what fits stays one unit. `level` is what a cut before the
unit costs: how many nodes were opened to get there, so the border between two functions of a file costs less than the
one between two statements. Cuts that leave something behind that cannot be understood without the rest cost SOFT more,
and are made only where there are no others: inside a line, between a comment and what it explains, between a signature
and its body, after the preamble.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import tree_sitter

from refinery.transforms.code.languages import (
    CLASS_DECL,
    CLASS_MEMBER,
    COMMENT,
    FUNC_BODY,
    FUNC_SIGNATURE,
    NAMESPACE,
    OTHER,
    PREAMBLE,
    SourceLanguage,
)

SOFT = 1 << 20
WRAPPED = 8  # wrappers around wrappers that are looked through
_HEADS = (
    "namespace_identifier",
    "type_identifier",
    "nested_namespace_specifier",
    "identifier",
    "preproc_def",
    "string_literal",
)
_BLANK_LINE = re.compile(rb"\n[ \t\r\f]*\n")


class Unit(NamedTuple):
    """A piece that is cut last of all inside. start: offset; it ends where the next one starts.

    kind: one of KINDS. depth: namespaces, classes and functions around it. whole: whether it is a complete construct.
    """

    start: int
    level: int
    kind: str
    depth: int
    whole: bool


@dataclass(frozen=True, slots=True)
class _Frame:
    """An opened node. scope: which kind of node its children stand in; "" for the file, a namespace or a wrapper."""

    level: int
    depth: int
    scope: str
    in_head: bool  # children before the field "body" are the head of a function or class
    is_error: bool = False


class _Border(NamedTuple):
    start: int
    level: int


class TreeUnits:
    """Units of a parsed file. Offsets are bytes.

    at: how much there is before an offset, in the measure of the budget; a budget of None opens nothing. Cost: linear
    in the nodes that are looked at, and none is looked at inside a unit; no recursion, at any depth of nesting.
    """

    def __init__(self, data: bytes, language: SourceLanguage, at: Callable[[int], int], budget: int | None) -> None:
        self.data, self.language, self.at, self.budget = data, language, at, budget
        self.units: list[Unit] = []
        self.end = 0  # of what has been placed
        self.before = 0  # at(end)
        self.leading = 0  # tokens of the preamble so far, as long as nothing else has come
        self.in_preamble = True
        self.glued = False  # to what follows: a comment, an attribute, the preamble's last line

    def split(self, tree: tree_sitter.Tree) -> list[Unit]:
        """Units from 0 to the end of the data; the first starts at 0."""
        cursor = tree.walk()
        frames = [_Frame(0, 0, "", False)]
        border: _Border | None = None  # of a node whose first child comes next
        if not cursor.goto_first_child():
            return [Unit(0, 0, OTHER, 0, True)]
        while True:
            node, frame = cursor.node or tree.root_node, frames[-1]
            if node.end_byte > node.start_byte and node.end_byte > self.end:
                is_body = cursor.field_name == "body"
                border = border or self._border(node, frame.level, is_body)
                after = self.at(node.end_byte)
                if self._is_too_large(after) and node.child_count:
                    frames.append(self._opened(node, frame, is_body))
                    cursor.goto_first_child()
                    continue
                self._add(node, frame, border, after)
                border = None
                if frame.is_error and node.type in ("{", "}"):  # what tokens say of nesting that the parser lost
                    step = 1 if node.type == "{" else -1
                    frames[-1] = replace(frame, level=max(frames[-2].level + 1, frame.level + step))
            while not cursor.goto_next_sibling():
                cursor.goto_parent()
                frames.pop()
                if not frames:
                    return self.units or [Unit(0, 0, OTHER, 0, True)]

    def _is_too_large(self, after: int) -> bool:
        if self.budget is None:
            return False
        room = self.budget - self.leading if self.in_preamble and 2 * self.leading <= self.budget else self.budget
        return after - self.before > room

    def _border(self, node: tree_sitter.Node, level: int, is_body: bool) -> _Border:
        """Where a cut before this node would be: at the start of its line, if nothing else stands before it there."""
        if not self.units:
            return _Border(0, level)
        line = self.data.rfind(b"\n", self.end, node.start_byte) + 1
        if not line and self.data[self.end - 1] == 0x0A:
            line = self.end
        at_line = bool(line) and not self.data[line : node.start_byte].strip()
        gap = self.data[self.end - 1 : node.start_byte]
        loose = not self.glued or (not self.in_preamble and _BLANK_LINE.search(gap) is not None)
        free = at_line and loose and node.is_named and not is_body and node.type not in self.language.trailing
        return _Border(line if at_line else node.start_byte, level if free else level + SOFT)

    def _opened(self, node: tree_sitter.Node, frame: _Frame, is_body: bool) -> _Frame:
        kind = kind_of(node, self.language)
        level = frame.level + 1
        if is_body:
            return _Frame(level, frame.depth, frame.scope, False)
        if kind in (FUNC_BODY, CLASS_DECL, NAMESPACE) and frame.scope != FUNC_BODY:
            scope = "" if kind == NAMESPACE else kind
            return _Frame(level, frame.depth + 1, scope, kind != NAMESPACE)
        known = node.type in self.language.wrappers or frame.scope
        return _Frame(level, frame.depth, frame.scope if known else OTHER, frame.in_head, node.is_error)

    def _add(self, node: tree_sitter.Node, frame: _Frame, border: _Border, after: int) -> None:
        kind, whole = self._kind(node, frame)
        comment = node.type in self.language.comments
        if self.in_preamble:
            if kind == PREAMBLE or comment or not node.is_named or _is_head(node):
                self.leading += after - self.before
                kind = kind if comment else PREAMBLE
            else:
                self.in_preamble = False
        self.glued = self.in_preamble or comment or node.type in self.language.leading
        self.units.append(Unit(border.start, border.level, kind, frame.depth, whole))
        self.end, self.before = node.end_byte, after

    def _kind(self, node: tree_sitter.Node, frame: _Frame) -> tuple[str, bool]:
        """The kind of a node that stays one unit, and whether it is a whole one."""
        language = self.language
        if node.type in language.comments:
            return COMMENT, True
        if frame.scope in (FUNC_BODY, OTHER):
            return (FUNC_SIGNATURE if frame.in_head else frame.scope), False
        if frame.scope == CLASS_DECL and frame.in_head:
            return CLASS_DECL, False
        for _ in range(WRAPPED):
            if node.type not in language.wrappers or not node.named_child_count:
                break
            node = max(node.named_children, key=lambda child: child.end_byte - child.start_byte)
        kind = kind_of(node, language)
        if frame.scope == CLASS_DECL and kind != CLASS_DECL:
            kind = CLASS_MEMBER
        return kind, True


def _is_head(node: tree_sitter.Node) -> bool:
    """Whether a node is the name of a namespace or of a guard that has been opened, or a guard's #define."""
    return node.type in _HEADS


def kind_of(node: tree_sitter.Node, language: SourceLanguage) -> str:
    """What a node is by itself. C and C++: a declaration of a function is its signature, and a "function" without a
    declarator of one is a namespace behind a macro (`ABSL_NAMESPACE_BEGIN namespace a {`), as the grammar reads it.
    """
    kind = language.kinds.get(node.type, OTHER)
    if node.type in language.declarations:
        return FUNC_SIGNATURE if _declares_function(node, language) else OTHER
    if kind == FUNC_BODY and language.declarators and not _declares_function(node, language):
        return NAMESPACE
    return kind


def _declares_function(node: tree_sitter.Node, language: SourceLanguage) -> bool:
    for _ in range(WRAPPED):
        below = node.child_by_field_name("declarator")
        if below is None:
            below = node.child_by_field_name("name")  # A::operator bool() is a qualified name
        if below is None:  # references have no such field
            below = next((child for child in node.named_children if child.type.endswith("declarator")), None)
        if below is None or below.type in language.declarators:
            return below is not None
        node = below
    return False
