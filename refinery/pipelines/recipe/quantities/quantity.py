"""Numbers with units: how they are written by people and for people, in flags, recipes and the page of `plan`.

One grammar for whatever is counted (tokens, documents, files, dollars) and one for bytes. They differ in the letter B:
of tokens, 100B is a hundred billion; of bytes, it could mean both, and is refused. The page's scripts read and format
as this module does; tests compare them.
"""

import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal

PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
FACTORS = {prefix.lower(): factor for prefix, factor in PREFIXES.items()} | {"b": 1e9}
_DIGITS = r"\s*([0-9][0-9_]*(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,3})?|\.[0-9]+(?:[eE][+-]?[0-9]{1,3})?)\s*"
BYTES, COUNT = "bytes", "count"
# What is meant -> its grammar: the number, and a letter of FACTORS. JavaScript reads these patterns, too.
GRAMMARS = {
    BYTES: re.compile(_DIGITS + r"(?:([kKmMgGtTpPeE])[bB]?|[bB]ytes?)?\s*"),
    COUNT: re.compile(_DIGITS + r"([kKmMgGbBtTpPeE]?)\s*"),
}
BARE = re.compile(_DIGITS + r"[bB]\s*")  # of bytes
EXPECTED = {
    BYTES: "a number of bytes such as 64, 500 MB or 1.5e12 is expected",
    COUNT: "a number such as 64, 10k, 100B (billion) or 2e9 is expected",
}
SHARE = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(%?)\s*")
THREE_DIGITS = Context(prec=3, rounding=ROUND_HALF_UP)  # as Number.prototype.toExponential rounds
# Kinds of numbers that take a prefix -> the unit behind it.
UNITS = {"bytes": "B", "bytes/s": "B/s", "tokens": "tokens", "tokens/s": "tokens/s"}


def parse_quantity(text: str, kind: str) -> float:
    """A number with a decimal prefix. kind: of UNITS or of an input of a plan; those of bytes are read as bytes, all
    others as counts, where B is billion.

    >>> parse_quantity("14.8T", "tokens"), parse_quantity("100B", "tokens"), parse_quantity("6 PB", "bytes")
    (14800000000000.0, 100000000000.0, 6000000000000000.0)

    Raises ValueError for anything else; a sign, a binary prefix and infinity are anything else, as is 100B of bytes.
    """
    digits, factor = _read(text, kind)
    value = float(digits) * factor
    if math.isinf(value):
        raise ValueError(f"{text!r:.80} given, {EXPECTED[grammar_of(kind)]}")
    return value


def parse_whole(text: str, kind: str) -> int:
    """As `parse_quantity`, of what has no fractions: exact.

    >>> parse_whole("1.5k", "count"), parse_whole("64 MB", "bytes")
    (1500, 64000000)
    """
    digits, factor = _read(text, kind)
    value = Decimal(digits) * Decimal(int(factor))
    if value.adjusted() > 30 or value != value.to_integral_value():
        raise ValueError(f"{text!r:.80} given, a whole number is expected, such as 64 or 1.5k")
    return int(value)


def grammar_of(kind: str) -> str:
    """BYTES or COUNT."""
    return BYTES if kind in ("bytes", "bytes/s") else COUNT


def _read(text: str, kind: str) -> tuple[str, float]:
    """The digits, and by what they are multiplied. Raises ValueError."""
    grammar = grammar_of(kind)
    found = GRAMMARS[grammar].fullmatch(text)
    if found:
        return found[1], FACTORS[(found[2] or "").lower()]
    if grammar == BYTES and (bare := BARE.fullmatch(text)):
        number = bare[1][:40]
        raise ValueError(f"{text!r:.80} given, {number} bytes or {number} billion? write {number} bytes or {number} GB")
    raise ValueError(f"{text!r:.80} given, {EXPECTED[grammar]}")


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
    """A text that `parse_quantity` reads as exactly this value, of any kind, not below 0: from a million on with a
    prefix.

    >>> typed(14.8e12), typed(64.0), typed(0.003557), typed(6e15), typed(149010e3)
    ('14.8T', '64', '0.003557', '6P', '149.01M')
    """
    texts = [
        f"{value / factor:.15g}{prefix}" for prefix, factor in reversed(PREFIXES.items()) if value >= factor >= 1e6
    ]
    exact = [text for text in texts if GRAMMARS[COUNT].fullmatch(text) and parse_quantity(text, COUNT) == value]
    return exact[0] if exact else repr(value).replace("e+", "e").removesuffix(".0")
