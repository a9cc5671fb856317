"""Syntax trees of untrusted source, under limits that are counts, so every machine decides the same.

tree-sitter is linear for real code and, through its parallel parses of ambiguous text, up to thirty times as dear for
`a<a<a<…`. Its progress callback comes every 100 operations of the parser: calls are the measure of work. Real C and C++
takes 2 to 26 of them per 1,000 bytes, at most 12 in files of more than 100 kB (1,301 files of five libraries).

Its lexers look as far ahead as they like: for each `/*` that nothing closes that is to the end of the file, which the
parser's operations do not show. So the text is handed out in small blocks, and blocks are counted: real code takes each
1 to 13 times (those and 250 files of Python and JavaScript). What needs more of either is refused.
"""

from dataclasses import dataclass

import tree_sitter

from refinery.transforms.code.languages import SourceLanguage

MAX_BYTES = 2_000_000  # of a file that is parsed: braces alone cost 250 bytes of memory each
LONG = 50_000  # bytes of a file beyond which less work is allowed: long files are much of everything
WORK, WORK_BEYOND = 60, 20  # calls per 1,000 bytes
FREE_WORK = 500  # calls that any file may take
BLOCK = 512  # bytes that the parser is given at a time; what is read again inside of one is not seen
READS, FREE_READS = 40, 500  # of each block, and of any file


@dataclass(frozen=True, slots=True)
class Parsed:
    """A syntax tree. error_share: share of the bytes that the grammar could not place."""

    tree: tree_sitter.Tree
    error_share: float


def parse(data: bytes, language: SourceLanguage) -> Parsed | None:
    """The tree of UTF-8 source; None for a file that is too long or takes too much work. Cost: 0.3 s per MB of C++."""
    if len(data) > MAX_BYTES:
        return None
    beyond = max(0, len(data) - LONG)
    left = FREE_WORK + (WORK * (len(data) - beyond) + WORK_BEYOND * beyond) // 1000
    reads = FREE_READS + READS * (len(data) // BLOCK)

    def is_too_much(offset: int, has_error: bool) -> bool:
        nonlocal left
        left -= 1
        return left < 0 or reads < 0

    def read(offset: int, point: tree_sitter.Point) -> bytes:
        nonlocal reads
        reads -= 1
        return data[offset : offset + BLOCK] if reads >= 0 else b""  # the end, which the lexer cannot look beyond

    try:
        tree = language.parser().parse(read, progress_callback=is_too_much)
    except ValueError:  # what the binding says of a parse that was stopped
        if left < 0 or reads < 0:
            return None
        raise
    if left < 0 or reads < 0 or tree is None:
        return None
    return Parsed(tree, _error_bytes(tree.root_node) / max(1, len(data)))


def _error_bytes(root: tree_sitter.Node) -> int:
    """Bytes of the tokens that stand directly in ERROR nodes.

    Not the size of those nodes: a macro that opens a namespace makes one of the whole file, whose functions are parsed.
    """
    if not root.has_error or root.child_count == 0:
        return len(root.text or b"") if root.has_error else 0
    total, in_error = 0, [root.is_error]
    cursor = root.walk()
    cursor.goto_first_child()
    while True:
        node = cursor.node or root
        if node.child_count == 0:
            total += (node.end_byte - node.start_byte) if in_error[-1] else 0
        elif node.has_error:
            in_error.append(node.is_error)
            cursor.goto_first_child()
            continue
        while not cursor.goto_next_sibling():
            cursor.goto_parent()
            in_error.pop()
            if not in_error:
                return total
