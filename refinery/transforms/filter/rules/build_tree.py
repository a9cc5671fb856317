"""The checked tree of a rule, made while lark parses it: every node knows its type and how to compute itself."""

import math
import operator
from collections.abc import Callable, Mapping
from ctypes import c_float
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from refinery.transforms.core.safe_text import safe
from refinery.transforms.core.wording import nearest
from refinery.transforms.filter.rules.evaluate import (
    READ,
    Run,
    all_of,
    among,
    any_of,
    apply_numbers,
    apply_to,
    calculate,
    choose,
    constant,
    is_missing,
    negative,
    not_,
    single,
)
from refinery.transforms.filter.rules.grammar import (
    COLUMN_KINDS,
    GRAMMAR,
    MAX_DEPTH,
    NUMBERS,
    WORDS,
    ExpressionError,
    Functions,
    Node,
)

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
TEXT_TESTS: dict[str, Callable[[str, str], bool]] = {
    "starts_with": str.startswith,
    "ends_with": str.endswith,
    "contains": str.__contains__,
}
CHOICES: dict[str, Callable[..., float]] = {"min": min, "max": max}


def build_tree(text: str, types: Mapping[str, str], functions: Functions) -> Node:
    """The tree of a rule. Raises ExpressionError for what is not understood, or cannot be computed."""
    try:
        parser = _parser(tuple(sorted(types.items())), tuple(sorted(functions.items())))
        return parser.parse(text)  # type: ignore[return-value]
    except UnexpectedInput as error:
        raise _syntax_error(error, text) from None


class Builder(Transformer[Token, Node]):
    """Makes the tree while a rule is parsed. types: columns and their types. functions: of numbers, more than the
    language has; None of them for no number. Every error is an ExpressionError."""

    def __init__(self, types: Mapping[str, str], functions: Functions | None = None) -> None:
        super().__init__()
        self.types, self.functions = types, functions or {}

    def number(self, children: list[Token]) -> Node:
        token = children[0]
        exact = token.isdecimal() and len(token) <= 18  # more digits than a 64-bit integer holds are a double
        value = int(token) if exact else float(token)
        if not math.isfinite(value):
            raise ExpressionError(f"{token[:20]} is beyond the largest number, 1.8e308", _at(token))
        return Node("integer" if exact else "double", partial(constant, value), _at(token), literal=value)

    def text(self, children: list[Token]) -> Node:
        value = str(children[0][1:-1])
        return Node("text", partial(constant, value), _at(children[0]), literal=value)

    def texts(self, children: list[Node]) -> Node:
        for child in children:
            if child.literal is None or child.kind not in ("text", *NUMBERS):
                raise ExpressionError("a list holds texts or numbers as they are", child.position)
        kind = "texts" if children[0].kind == "text" else "numbers"
        for child in children:
            if (child.kind == "text") != (kind == "texts"):
                raise ExpressionError("a list holds only texts or only numbers", child.position)
        literal = tuple(child.literal for child in children)
        return Node(kind, partial(constant, literal), children[0].position, literal=literal)

    def column(self, children: list[Token]) -> Node:
        name = str(children[0])
        if name not in self.types:
            known = nearest(name, self.types)
            hint = "missing values are found by: is null, is not null" if name in ("null", "None") else known
            raise ExpressionError(f"{name[:60]} is not a column, {hint}", _at(children[0]))
        kind = COLUMN_KINDS[self.types[name]]
        return Node(kind, partial(READ[kind], name), _at(children[0]), names=frozenset((name,)))

    def call(self, children: list[Any]) -> Node:
        name, *arguments = children
        at = _at(name)
        if name in CHOICES:
            for argument in arguments:
                _expect(argument, NUMBERS)
            if len(arguments) < 2:
                raise ExpressionError(f"{name} of 1 number given, 2 or more are needed", at)
            return _inner(_of_numbers(arguments), partial(choose, CHOICES[name], _runs(arguments)), arguments, at)
        if name in TEXT_TESTS:
            if len(arguments) != 2:
                raise ExpressionError(f"{name} takes two texts: the text, and what it is searched for", at)
            for argument in arguments:
                _expect(argument, ("text",))
            text, part = _runs(arguments)
            return _inner("condition", partial(apply_to, TEXT_TESTS[name], text, part), arguments, at)
        if name in self.functions:
            count, function = self.functions[name]
            if len(arguments) != count:
                raise ExpressionError(f"{name} of {len(arguments)} given, it takes {count}", at)
            for argument in arguments:
                _expect(argument, NUMBERS)
            return _inner("double", partial(apply_numbers, function, _runs(arguments)), arguments, at)
        known = (*CHOICES, *TEXT_TESTS, *self.functions)
        raise ExpressionError(f"{name[:60]} is not a function, {nearest(str(name), known)}", at)

    def sign(self, children: list[Any]) -> Node:
        token, child = children
        _expect(child, NUMBERS)
        if token == "+":  # noqa: S105 - no password
            return child  # type: ignore[no-any-return]
        literal = None if child.literal is None else -child.literal
        return _inner(child.kind, partial(negative, child.run), (child,), _at(token), literal=literal)

    def total(self, children: list[Any]) -> Node:
        left, *rest = children
        for token, right in zip(rest[::2], rest[1::2], strict=True):
            for side in (left, right):
                _expect(side, NUMBERS)
            kind = "float" if "float" in (left.kind, right.kind) else "double"
            left = _inner(kind, partial(calculate, ARITHMETIC[token], left.run, right.run), (left, right))
        return left  # type: ignore[no-any-return]

    product = total

    def compare(self, children: list[Any]) -> Node:
        sides, tokens = children[::2], children[1::2]
        pairs = []
        for (left, right), token in zip(pairwise(sides), tokens, strict=True):
            _expect(left, ("text", *NUMBERS))
            _expect(right, ("text",) if left.kind == "text" else NUMBERS)
            first, second = _same_precision(left, right)
            pairs.append(partial(apply_to, COMPARISONS[token], first, second))
        return _inner("condition", pairs[0] if len(pairs) == 1 else partial(all_of, tuple(pairs)), sides)

    def inside(self, children: list[Node]) -> Node:
        value, choices = children
        if choices.literal is not None and choices.kind in ("text", *NUMBERS):  # ('en') is a list of one
            choices = self.texts([choices])
        if value.kind == "text":
            _expect(choices, ("texts",))
            first, second = value.run, choices.run
        else:
            _expect(value, NUMBERS)
            _expect(choices, ("numbers",))
            single = value.kind == "float"
            first = _rounded(value) if single else value.run
            second = partial(constant, tuple(c_float(v).value for v in choices.literal) if single else choices.literal)
        return _inner("condition", partial(apply_to, among, first, second), children)

    def outside(self, children: list[Node]) -> Node:
        return self.negate([self.inside(children)])

    def missing(self, children: list[Node]) -> Node:
        if children[0].kind not in ("text", *NUMBERS):
            raise ExpressionError(f"{WORDS[children[0].kind]} is never null", children[0].position)
        return _inner("condition", partial(is_missing, children[0].run), children)

    def present(self, children: list[Node]) -> Node:
        return self.negate([self.missing(children)])

    def negate(self, children: list[Node]) -> Node:
        _expect(children[0], ("condition",))
        return _inner("condition", partial(not_, children[0].run), children)

    def both(self, children: list[Node]) -> Node:
        for child in children:
            _expect(child, ("condition",))
        return _inner("condition", partial(all_of, _runs(children)), children)

    def either(self, children: list[Node]) -> Node:
        for child in children:
            _expect(child, ("condition",))
        return _inner("condition", partial(any_of, _runs(children)), children)


def _at(token: Token) -> int:
    return int(token.start_pos or 0) + 1


def _runs(nodes: list[Node]) -> tuple[Run, ...]:
    return tuple(node.run for node in nodes)


def _expect(node: Node, kinds: tuple[str, ...]) -> None:
    if node.kind not in kinds:
        raise ExpressionError(f"{WORDS[node.kind]} given, {WORDS[kinds[0]]} is needed", node.position)


def _of_numbers(nodes: list[Node]) -> str:
    kinds = {node.kind for node in nodes}
    return "float" if "float" in kinds else "double" if "double" in kinds else "integer"


def _inner(
    kind: str, run: Run, children: list[Node] | tuple[Node, ...], position: int = 0, literal: Any = None
) -> Node:
    depth = 1 + max(child.depth for child in children)
    if depth > MAX_DEPTH:
        raise ExpressionError(f"nested deeper than {MAX_DEPTH} levels", children[0].position)
    names = frozenset[str]().union(*(child.names for child in children))
    return Node(kind, run, position or children[0].position, depth, names, literal)


def _same_precision(left: Node, right: Node) -> tuple[Run, Run]:
    """Both sides rounded to float32 where either is one: 0.3 is the float32 nearest to it, as in the column."""
    if "float" not in (left.kind, right.kind):
        return left.run, right.run
    return _rounded(left), _rounded(right)


def _rounded(node: Node) -> Run:
    """Its value as float32."""
    if node.literal is not None:
        return partial(constant, c_float(node.literal).value)
    return node.run if node.kind == "float" and node.depth == 1 else partial(single, node.run)  # a column is one


@lru_cache(maxsize=32)
def _parser(types: tuple[tuple[str, str], ...], functions: tuple[tuple[str, Any], ...]) -> Lark:
    return Lark(GRAMMAR, parser="lalr", transformer=Builder(dict(types), dict(functions)), maybe_placeholders=False)


_KEYWORDS = ("or", "and", "not", "in", "is", "null")


def _syntax_error(error: UnexpectedInput, text: str) -> ExpressionError:
    """What lark found, for people."""
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        return ExpressionError("the rule ends here, something is missing", len(text) + 1)
    at = int(error.pos_in_stream or 0)
    word = str(error.token) if isinstance(error, UnexpectedToken) else text[at]
    problem = f"{safe(word)[:40]} is not understood here"
    if isinstance(error, UnexpectedCharacters) and word in "'\"":
        problem = "a text that does not end on its line"
    elif word == "=":
        problem += " (is equal to: ==)"
    elif word.lower() in _KEYWORDS and word not in _KEYWORDS:
        problem += f" (in small letters: {word.lower()})"
    elif word in "&|!":
        problem += " (and, or, not are words)"
    return ExpressionError(problem, at + 1)
