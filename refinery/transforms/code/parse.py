"""Syntax trees of untrusted source, under limits that are counts, so every machine decides the same.

tree-sitter is linear for real code. Hostile text can take it a thousand times as much, in three ways that need three
counts. What needs more of any is refused, so the cost of a parse is bounded whatever the text is.

*Calls.* Parallel parses of ambiguous text (`a<a<a<…`) cost up to thirty times as much. The progress callback comes
every 100 operations of the parser. Real C and C++ takes 2 to 26 calls per 1,000 bytes, at most 12 in files of more than
100 kB (1,301 files of five libraries); minified JavaScript takes 22.

*Reads.* The lexers look as far ahead as they like: for each `/*` that nothing closes that is to the end of the file,
which the parser's operations do not show. So the text is handed out in small blocks, and blocks are counted: real code
takes each 1 to 13 times (those and 250 files of Python and JavaScript).

*Memory.* At an error the parser tries all that might follow, and copies its stacks: `a,` costs Rust 80 times as much
as code, `a=>` costs C seconds for 8 kB. Neither shows in its operations; both show in the memory that it asks for
(transforms/native/meter.c). Real code takes 10 to 81 bytes for each of its own; the most of 1,300 files in nine
languages was 173. This bounds the memory in use, too.
"""

from dataclasses import dataclass

import tree_sitter

from refinery.transforms.code.languages import SourceLanguage
from refinery.transforms.native.meter import Meter

MAX_ERROR_SHARE = 0.2  # of a file's bytes, beyond which its tree says less than its braces
MAX_BYTES = 2_000_000  # of a file that is parsed: braces alone cost 250 bytes of memory each
LONG = 50_000  # bytes of a file beyond which less work is allowed: long files are much of everything
WORK, WORK_BEYOND = 60, 20  # calls per 1,000 bytes
FREE_WORK = 500  # calls that any file may take
BLOCK = 512  # bytes that the parser is given at a time; what is read again inside of one is not seen
READS, FREE_READS = 40, 500  # of each block, and of any file
MEMORY, MEMORY_BEYOND = 300, 150  # bytes asked for, and 1,000 for each block that grows, per byte
FREE_MEMORY = 500_000


@dataclass(frozen=True, slots=True)
class Parsed:
    """A syntax tree. error_share: share of the bytes that the grammar could not place. widest: the most children of an
    ERROR node. It has them side by side, so looking at the siblings of each is quadratic there."""

    tree: tree_sitter.Tree
    error_share: float
    widest: int


def parse(data: bytes, language: SourceLanguage) -> Parsed | None:
    """The tree of source in valid UTF-8; None for one that is too long or takes too much. Cost: 0.3 s per MB of C++."""
    if len(data) > MAX_BYTES:
        return None
    meter = _meter(data)
    try:
        tree = language.parser().parse(meter.read, progress_callback=meter.is_too_much)
    except ValueError:  # what the binding says of a parse that was stopped
        if meter.end():
            return None
        raise
    if meter.end() or tree is None:
        return None
    error_bytes, widest = _errors(tree.root_node)
    return Parsed(tree, error_bytes / max(1, len(data)), widest)


def _meter(data: bytes) -> Meter:
    beyond = max(0, len(data) - LONG)
    within = len(data) - beyond
    return Meter(
        data,
        BLOCK,
        calls=FREE_WORK + (WORK * within + WORK_BEYOND * beyond) // 1000,
        reads=FREE_READS + READS * (len(data) // BLOCK),
        memory=FREE_MEMORY + MEMORY * within + MEMORY_BEYOND * beyond,
    )


def _errors(root: tree_sitter.Node) -> tuple[int, int]:
    """Bytes of the tokens that stand directly in ERROR nodes, and the most children that one of these has.

    Not the size of those nodes: a macro that opens a namespace makes one of the whole file, whose functions are parsed.
    """
    if not root.has_error or root.child_count == 0:
        return len(root.text or b"") if root.has_error else 0, 0
    total, in_error = 0, [root.is_error]
    widest = root.child_count if root.is_error else 0
    cursor = root.walk()
    cursor.goto_first_child()
    while True:
        node = cursor.node or root
        if node.child_count == 0:
            total += (node.end_byte - node.start_byte) if in_error[-1] else 0
        elif node.has_error:
            in_error.append(node.is_error)
            if node.is_error:
                widest = max(widest, node.child_count)
            cursor.goto_first_child()
            continue
        while not cursor.goto_next_sibling():
            cursor.goto_parent()
            in_error.pop()
            if not in_error:
                return total, widest
