"""Values of a record that are not what they seem to be to Python: rounded, spelt in another way, or not readable."""

from typing import Any, Final

MAX_DIGITS = 4000  # of an integer: Python refuses to read, or to write, more than 4,300


class Inexact(str):
    """A value that became text because it is none that Python has: a year 33658, bytes that are not UTF-8."""

    __slots__ = ()


class Written(float):
    """A number of JSON with its spelling."""

    def __new__(cls, text: str) -> "Written":
        number = super().__new__(cls, text)
        number.text = text
        return number

    text: str


class Literal:
    """A number of JSON that no type holds: 1e400, an integer of 5,000 digits."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


class Doubtful(dict[str, Any]):
    """A record in which some value is Inexact, maybe inside another one."""


class _Lost:
    __slots__ = ()

    def __str__(self) -> str:
        return ""


LOST: Final = _Lost()  # stands for a value that cannot be read
