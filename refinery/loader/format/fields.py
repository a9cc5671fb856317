"""Typed access to an untrusted JSON object: every error is a FormatError that says where and what."""

import re
from collections.abc import Iterator
from typing import Any

from refinery.loader.errors import FormatError
from refinery.loader.format.block_checksums import CHECKSUM_BLOCK
from refinery.loader.storage.store import check_name

MOST = 2**62  # tokens of a corpus, bytes of a file: their sums still fit into 64 bits


class Fields:
    """A JSON object with typed access; every error says where and what."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise FormatError(f"{where}: {value!r:.80} found, an object expected")
        self.value = value
        self.where = where

    def _get(self, key: str, kind: type, expected: str) -> Any:
        value = self.value.get(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise FormatError(f"{self.where}: {key} is {value!r:.80}, {expected} expected")
        return value

    def text(self, key: str) -> str:
        return str(self._get(key, str, "a string"))

    def count(self, key: str, most: int = MOST) -> int:
        value = int(self._get(key, int, "an integer"))
        if value < 0:
            raise FormatError(f"{self.where}: {key} is {value!r:.80}, 0 or more expected")
        if value > most:
            raise FormatError(f"{self.where}: {key} is {value!r:.80}, {most} at most expected")
        return value

    def optional_count(self, key: str, most: int) -> int | None:
        return None if key in self.value and self.value[key] is None else self.count(key, most)

    def bins(self, key: str) -> list[tuple[float, int]]:
        """A distribution: [lower edge, documents] of bins, edges ascending."""
        found: list[tuple[float, int]] = []
        for pair in self._get(key, list, "a list"):
            good = isinstance(pair, list) and len(pair) == 2 and type(pair[0]) in (int, float) and type(pair[1]) is int
            if not good or not 0 < pair[1] <= MOST or (found and not pair[0] > found[-1][0]):
                raise FormatError(f"{self.where}: {key} has {pair!r:.80}, [lower edge, documents] in order expected")
            found.append((float(pair[0]), pair[1]))
        return found

    def checksum(self, key: str, digits: int) -> str:
        value = self.text(key)
        if not re.fullmatch(f"[0-9a-f]{{{digits}}}", value):
            raise FormatError(f"{self.where}: {key} is {value!r:.80}, {digits} of 0-9 a-f expected")
        return value

    def block_checksums(self, key: str, size: int) -> str:
        """Checks only the syntax; `parse_blocks` compares them with the file's checksum when it is first read."""
        value = self.text(key)
        length = -(-4 * -(-size // CHECKSUM_BLOCK) // 3) * 4
        if value and (len(value) != length or not re.fullmatch(r"[A-Za-z0-9+/]*={0,2}", value)):
            raise FormatError(
                f"{self.where}: {key} is {value!r:.40}, {len(value)} characters; {length} of base64 expected for "
                f"{size} bytes"
            )
        return value

    def path(self, key: str) -> str:
        name = self.text(key)
        try:
            check_name(name)
        except ValueError as error:
            raise FormatError(f"{self.where}: {key}: {error!s:.200}") from None
        # Limits of file systems and object stores: 255 bytes per part, 1,024 in total.
        if len(name.encode()) > 1024 or any(len(part.encode()) > 255 for part in name.split("/")):
            raise FormatError(f"{self.where}: {key} is {name!r:.80}, of {len(name)} characters: too long")
        return name

    def inner(self, key: str) -> "Fields":
        return Fields(self._get(key, dict, "an object"), f"{self.where}: {key}")

    def list(self, key: str) -> "Iterator[Fields]":
        values = self._get(key, list, "a list")
        return (Fields(value, f"{self.where}: {key}[{i}]") for i, value in enumerate(values))
