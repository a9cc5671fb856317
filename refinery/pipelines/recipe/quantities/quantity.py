"""Numbers with units: how they are written by people and for people. The page's script formats as `show` does."""

import math
import re
from decimal import ROUND_HALF_UP, Context

PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
NUMBER = re.compile(r"\s*([0-9][0-9_]*(?:\.[0-9]*)?(?:e[+-]?[0-9]{1,3})?|\.[0-9]+)\s*([kMGTPE]?)B?\s*")
SHARE = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(%?)\s*")
THREE_DIGITS = Context(prec=3, rounding=ROUND_HALF_UP)  # as Number.prototype.toExponential rounds
# Kinds of numbers that take a prefix -> the unit behind it.
UNITS = {"bytes": "B", "bytes/s": "B/s", "tokens": "tokens", "tokens/s": "tokens/s"}


def parse_quantity(text: str) -> float:
    """A number with a decimal prefix and perhaps the letter B.

    >>> parse_quantity("14.8T"), parse_quantity("6 PB"), parse_quantity("1.5e12")
    (14800000000000.0, 6000000000000000.0, 1500000000000.0)

    Raises ValueError for anything else; a sign, a binary prefix and infinity are anything else.
    """
    found = NUMBER.fullmatch(text)
    value = float(found[1]) * PREFIXES[found[2]] if found else math.inf
    if found is None or math.isinf(value):
        raise ValueError(f"{text!r:.80} given, a number such as 14.8T, 6PB, 1.5e12 or 64 is expected")
    return value


def parse_share(text: str) -> float:
    """A share above 0 and up to 1.

    >>> parse_share("1%"), parse_share("0.05")
    (0.01, 0.05)
    """
    found = SHARE.fullmatch(text)
    value = float(found[1]) / (100 if found[2] else 1) if found else 0.0
    if not 0 < value <= 1:
        raise ValueError(f"{text!r:.80} given, a share above 0 and up to 1 is expected, such as 0.05 or 5%")
    return value


def three_digits(value: float) -> str:
    """The number rounded to three digits that count, with commas between thousands.

    >>> three_digits(1549.3), three_digits(0.00950), three_digits(78.0)
    ('1,550', '0.0095', '78')
    """
    exact = THREE_DIGITS.create_decimal(value)
    text = f"{exact:,.{max(0, 2 - exact.adjusted())}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def show(value: float, kind: str = "") -> str:
    """A number with three digits that count and the unit of its kind; kind "count": all digits of a whole number.

    >>> show(6.2316e15, "bytes"), show(3.172e6, "tokens/s"), show(78.0, "count"), show(0.0095, "share")
    ('6.23 PB', '3.17 M tokens/s', '78', '0.95 %')
    """
    if kind == "count":
        return f"{value:,.0f}"
    if kind == "share":
        return f"{three_digits(value * 100)} %"
    if kind == "dollars":
        return f"${three_digits(value)}"
    if kind in UNITS:
        rounded = float(THREE_DIGITS.create_decimal(value))
        prefix, factor = next((each for each in reversed(PREFIXES.items()) if rounded >= each[1]), ("", 1.0))
        space = " " if prefix and kind.startswith("tokens") else ""
        return f"{three_digits(rounded / factor)} {prefix}{space}{UNITS[kind]}"
    return three_digits(value)


def typed(value: float) -> str:
    """A text that `parse_quantity` reads as exactly this value, not below 0: from a million on with a prefix.

    >>> typed(14.8e12), typed(64.0), typed(0.003557), typed(6e15), typed(149010e3)
    ('14.8T', '64', '0.003557', '6P', '149.01M')
    """
    texts = [
        f"{value / factor:.15g}{prefix}" for prefix, factor in reversed(PREFIXES.items()) if value >= factor >= 1e6
    ]
    exact = [text for text in texts if NUMBER.fullmatch(text) and parse_quantity(text) == value]
    return exact[0] if exact else repr(value).replace("e+", "e").removesuffix(".0")
