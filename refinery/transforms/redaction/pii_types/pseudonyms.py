"""Placeholders that tell persons apart: the same value gets the same token in every document, under a secret key.

A token is the first 60 bits of HMAC-SHA-256 (RFC 2104, FIPS 198-1) over the type and the value in its canonical form,
in base 32. Who has no key cannot test guesses; who has it can, so it is as secret as the data. The key is never part of
parameters: they name the variable or the file that has it, and its id, a HMAC of a constant, so a run with another
key ends before its first document.
"""

import base64
import hashlib
import hmac

TOKEN_CHARACTERS = 12  # 60 bits: a collision among 10 million values has odds of 1 in 23,000


class Pseudonyms:
    """The key, and the tokens that it gives."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def token(self, kind: str, value: str) -> str:
        """Twelve characters for a value of a type."""
        digest = hmac.new(self._key, f"{kind}\0{canonical(kind, value)}".encode(), hashlib.sha256).digest()
        return base64.b32encode(digest)[:TOKEN_CHARACTERS].decode().lower()


def canonical(kind: str, value: str) -> str:
    """A value without what differs between its spellings."""
    if kind == "email":
        for spelling in (" at ", "[at]", "(at)", " [at] ", " (at) "):
            value = value.replace(spelling, "@")
        return value.replace(" ", "").casefold()
    if kind == "phone":
        number = value.lower().partition("x")[0].partition("e")[0].replace("(0)", "")
        digits = "".join(filter(str.isdigit, number))
        if not number.lstrip("( ").startswith("+"):
            digits = digits.removeprefix("00") if digits.startswith("00") else digits
        return digits[1:] if len(digits) == 11 and digits.startswith("1") else digits
    if kind in ("ip", "address", "user_path"):
        return " ".join(value.casefold().split())
    return "".join(filter(str.isalnum, value)).upper()
