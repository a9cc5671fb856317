"""The self-contained constructs of a syntax tree: the outermost whole nodes of some kinds (constructs.py)."""

import re
from dataclasses import dataclass

import tree_sitter

from refinery.transforms.code.languages import CLASS_DECL, FUNC_BODY, NAMESPACE, TYPEDEF, SourceLanguage
from refinery.transforms.code.units import WRAPPED, kind_of

ALONE = frozenset({FUNC_BODY, CLASS_DECL, TYPEDEF})
BLANK_LINE = re.compile(rb"\n[ \t\r\f]*\n")
NAMESPACE_WORD = re.compile(rb"\bnamespace\b")
HEAD_BYTES = 400  # in front of a body that are looked at


def construct_places(data: bytes, tree: tree_sitter.Tree, language: SourceLanguage) -> list[tuple[int, int, int]]:
    """(first byte of what is attached, first byte, byte behind it) of every construct, in order.

    Where the parser was lost anywhere among neighbours, none of these counts: what looks like a function may be a
    member of a class whose head it did not understand, or have left its own head behind.
    """
    cursor = tree.walk()
    found: list[tuple[int, int, int]] = []
    levels = [_Level(0)]
    attached: int | None = None  # where the comments and decorators in front of the next node begin
    last = 0
    if not cursor.goto_first_child():
        return []
    while True:
        node = cursor.node or tree.root_node
        if BLANK_LINE.search(data, last, max(last, node.start_byte)):
            attached = None
        if node.type in language.comments or node.type in language.leading:
            attached = node.start_byte if attached is None else attached
        elif node.is_named and _is_open(data, node, cursor.field_name, language) and cursor.goto_first_child():
            attached, last = None, node.start_byte
            levels.append(_Level(len(found)))
            continue
        else:
            levels[-1].lost |= node.has_error
            if node.is_named and _kind(node, language) in ALONE:
                found.append((node.start_byte if attached is None else attached, node.start_byte, node.end_byte))
            attached = None
        last = node.end_byte
        while not cursor.goto_next_sibling():
            done = levels.pop()
            if done.lost:
                del found[done.first :]
            if not levels:
                return found
            cursor.goto_parent()
            attached, last = None, (cursor.node or node).end_byte


@dataclass
class _Level:
    """The children of an opened node. first: how many constructs stood before them; lost: whether the parser was."""

    first: int
    lost: bool = False


def _is_open(data: bytes, node: tree_sitter.Node, field: str | None, language: SourceLanguage) -> bool:
    """Whether what is inside a node is looked at one by one; `field` is its part in a node that was opened."""
    if field == "body" or node.type.startswith("preproc_"):
        return True
    for _ in range(WRAPPED):  # TypeScript: a namespace is an expression, or exported
        if node.type not in language.wrappers or node.named_child_count != 1 or node.child_by_field_name("body"):
            break
        node = node.named_children[0]
    if language.kinds.get(node.type) == NAMESPACE:
        return True
    body = node.child_by_field_name("body")
    if node.type == "linkage_specification":
        return body is not None and body.type == "declaration_list"
    if body is None or kind_of(node, language) != NAMESPACE:
        return False
    head_end = min(body.start_byte, node.start_byte + HEAD_BYTES)
    # behind a macro; a class behind one looks the same to the grammar
    return NAMESPACE_WORD.search(data, node.start_byte, head_end) is not None


def _kind(node: tree_sitter.Node, language: SourceLanguage) -> str:
    """The kind of a node, or of what it wraps: a template, a decorated function."""
    for _ in range(WRAPPED):
        if node.type not in language.wrappers or not node.named_child_count:
            break
        node = max(node.named_children, key=lambda child: child.end_byte - child.start_byte)
    return kind_of(node, language)
