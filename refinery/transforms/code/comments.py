"""Comments of a source file, by its syntax tree."""

from functools import cache

import tree_sitter

from refinery.transforms.code.languages import LANGUAGES, SourceLanguage, load_grammar

DEPTH = 200  # of the tree, below which comments are not looked for: at each node the query looks at all above it
SPACE = b" \t\n\r\x0b\x0c"


@cache
def _query(language: str) -> tree_sitter.Query:
    types = " ".join(f"({name})" for name in sorted(LANGUAGES[language].comments))
    return tree_sitter.Query(load_grammar(language), f"[{types}] @comment")


def count_comments(data: bytes, tree: tree_sitter.Tree, language: SourceLanguage) -> tuple[int, int]:
    """(bytes in comments, all bytes) that are not white space. Linear."""
    cursor = tree_sitter.QueryCursor(_query(language.name))
    cursor.set_max_start_depth(DEPTH)
    found = cursor.captures(tree.root_node).get("comment", [])
    size = sum(len(data[node.start_byte : node.end_byte].translate(None, SPACE)) for node in found)
    return size, len(data.translate(None, SPACE))
