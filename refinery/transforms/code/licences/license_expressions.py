"""SPDX expressions: which class each has, and how several are joined."""

import re
from collections.abc import Iterable
from functools import lru_cache

from refinery.transforms.code.licences.license_rules import (
    CLASSES,
    DENIED,
    KERNEL,
    KERNEL_NOTE,
    PERMISSIVE,
    WEAK,
    WEAK_EXCEPTIONS,
)

MAX_EXPRESSION = 1_000  # characters of an SPDX expression
_NEVER = re.compile(
    r"(?:documentref-|licenseref-(?!public-domain$)|sspl-|busl-|elastic-|polyform-|commons-clause|json$|cc-by-(?:nc|nd))"
)
_WORDS = re.compile(r"\(|\)|[^\s()]+")


@lru_cache(maxsize=4096)
def licence_class(expression: str) -> str:
    """PERMISSIVE, WEAK, KERNEL or DENIED for an SPDX expression: of OR the best, of AND the worst.

    Terms that nobody knows by name, and those that restrict use, are DENIED even beside an OR.
    Unknown identifiers, exceptions and what is not an expression are DENIED. Linear; no recursion.
    """
    if len(expression) > MAX_EXPRESSION or any(map(_NEVER.match, identifiers(expression))):
        return DENIED
    # Shunting-yard; every operand is a rank in ORDER.
    operands: list[int] = []
    operators: list[str] = []
    words = _WORDS.findall(expression)
    i, want_operand = 0, True
    while i < len(words):
        word = words[i]
        small = word.lower()
        if small == "(" and want_operand:
            operators.append("(")
        elif small == ")" and not want_operand:
            while operators and operators[-1] != "(":
                _apply(operators.pop(), operands)
            if not operators:
                return DENIED
            operators.pop()
        elif small in ("and", "or") and not want_operand:
            while operators and operators[-1] != "(" and (operators[-1] == "and" or small == "or"):
                _apply(operators.pop(), operands)
            operators.append(small)
            want_operand = True
        elif want_operand and small not in ("and", "or", "with", ")"):
            exception = (
                words[i + 2].lower()
                if [w.lower() for w in words[i + 1 : i + 2]] == ["with"] and i + 2 < len(words)
                else ""
            )
            i += 2 if exception else 0
            operands.append(ORDER.index(_single(small, exception)))
            want_operand = False
        else:
            return DENIED
        i += 1
    if want_operand:
        return DENIED
    while operators:
        if (operator := operators.pop()) == "(":
            return DENIED
        _apply(operator, operands)
    return ORDER[operands[0]] if len(operands) == 1 else DENIED


ORDER = (PERMISSIVE, WEAK, KERNEL, DENIED)


def _apply(operator: str, operands: list[int]) -> None:
    second, first = operands.pop(), operands.pop()
    operands.append(min(first, second) if operator == "or" else max(first, second))


def _single(name: str, exception: str) -> str:
    """The class of one identifier in small letters, with its exception."""
    name = name.removesuffix("+")
    if name in CLASSES:
        return CLASSES[name]
    if name.startswith("gpl-2.0") and exception == KERNEL_NOTE:
        return KERNEL
    if name.startswith(("gpl-2.0", "gpl-3.0")) and exception in WEAK_EXCEPTIONS:
        return WEAK
    return DENIED


def join(word: str, parts: Iterable[str]) -> str:
    """Different expressions with AND or OR between them; "" for none."""
    parts = list(dict.fromkeys(parts))
    return "".join(parts) if len(parts) < 2 else f" {word} ".join(f"({one})" if " " in one else one for one in parts)


def identifiers(expression: str) -> frozenset[str]:
    """The licences that an expression names, in small letters."""
    return frozenset(word.lower() for word in _WORDS.findall(expression)) - {"and", "or", "with", "(", ")"}


def stem(name: str) -> str:
    """An identifier without what it says of later versions."""
    return name.removesuffix("+").removesuffix("-only").removesuffix("-or-later")
