"""The grammar of rules, and the nodes of the tree that a rule becomes (build_tree.py).

Types: condition, text ("string" columns), texts ("strings" columns, lists of literals), and three of numbers: integer
(exact), float (a float32 column, or arithmetic with one) and double (a literal with a decimal point, other arithmetic).
expression.py says what a rule means.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from refinery.transforms.filter.rules.evaluate import Run

MAX_DEPTH = 50  # of nested conditions and terms; evaluation recurses

GRAMMAR = r"""
?start: either
?either: both (_OR both)*
?both: negation (_AND negation)*
?negation: _NOT negation -> negate
    | comparison
?comparison: total
    | total (COMPARE total)+ -> compare
    | total _IN total -> inside
    | total _NOT _IN total -> outside
    | total _IS _NULL -> missing
    | total _IS _NOT _NULL -> present
?total: product (SIGN product)*
?product: signed (TIMES signed)*
?signed: SIGN signed -> sign
    | atom
?atom: NUMBER -> number
    | STRING -> text
    | NAME -> column
    | NAME "(" either ("," either)* ")" -> call
    | "(" either ")"
    | "(" either ("," either)+ ")" -> texts
    | "[" either ("," either)* "]" -> texts

_OR: "or"
_AND: "and"
_NOT: "not"
_IN: "in"
_IS: "is"
_NULL: "null"
COMPARE: "==" | "!=" | "<=" | ">=" | "<" | ">"
SIGN: "+" | "-"
TIMES: "*" | "/"
NUMBER: /([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?/
STRING: /'[^'\n]*'|"[^"\n]*"/
NAME: /[a-zA-Z_][a-zA-Z0-9_]*/
%ignore /[ \t\r\n]+/
"""

NUMBERS = ("integer", "double", "float")
WORDS = {
    "condition": "a condition",
    "text": "a text",
    "texts": "a list of texts",
    "integer": "a number",
    "double": "a number",
    "float": "a number",
    "numbers": "a list of numbers",
}
COLUMN_KINDS = {
    "boolean": "condition",
    "string": "text",
    "strings": "texts",
    "float": "float",
    "double": "double",
    "integer": "integer",
}
Functions = Mapping[str, tuple[int, Callable[..., float | None]]]  # name -> how many numbers it takes, and what it does


class ExpressionError(ValueError):
    """What is wrong with a rule, on one line; `position` counts characters from 1, 0 for the rule as a whole."""

    def __init__(self, problem: str, position: int = 0) -> None:
        self.position = position
        super().__init__(f"at character {position}: {problem}" if position else problem)


@dataclass(frozen=True, slots=True)
class Node:
    """A checked part of a rule. run: its value for a row, None where it is missing (unknown, for a condition).

    literal: its value where it is one. names: the columns that it reads.
    """

    kind: str
    run: Run
    position: int
    depth: int = 1
    names: frozenset[str] = frozenset()
    literal: Any = None
