"""What was sent into an exchange and what arrived, compared before anything that depends on it gets its final name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import google_crc32c
import orjson

KIND = "exchange"  # of the records that carry tallies, and the key of a report
SENT, ARRIVED = "sent", "arrived"
DIGEST_BITS = 64


class ExchangeError(RuntimeError):
    """An exchange did not deliver what was sent into it: nothing that depends on it may be published."""


@dataclass
class Tally:
    """A multiset of elements: how many, their bytes, and the sum of their checksums modulo 2^64, which depends neither
    on their order nor on how they were dealt out."""

    elements: int = 0
    size: int = 0
    digest: int = 0

    def add(self, key: bytes, value: bytes) -> None:
        """Count an element. Cost: a CRC-32C of both, about 0.1 ns a byte."""
        self.elements += 1
        self.size += len(value)
        self.digest += google_crc32c.extend(google_crc32c.value(key), value)

    def merge(self, other: "Tally") -> None:
        """Add what another one counted."""
        self.elements += other.elements
        self.size += other.size
        self.digest += other.digest

    def fields(self) -> dict[str, int]:
        """As plain data."""
        return {"elements": self.elements, "bytes": self.size, "digest": self.digest % 2**DIGEST_BITS}

    def dump(self) -> bytes:
        """As bytes, for `load`."""
        return orjson.dumps([self.elements, self.size, self.digest % 2**DIGEST_BITS])

    @classmethod
    def load(cls, data: bytes) -> "Tally":
        """Inverse of `dump`."""
        return cls(*orjson.loads(data))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tally) and self.dump() == other.dump()


def dump_key(key: Any) -> bytes:
    """A key of an exchange as bytes: an int, a str or bytes; equal keys, and no others, give equal bytes."""
    if isinstance(key, bytes):
        return b"b" + key
    if isinstance(key, str):
        return b"s" + key.encode()
    if isinstance(key, int):
        return b"i%d" % key
    raise TypeError(f"key: {type(key).__name__} given, int, str or bytes is allowed")


def load_key(data: bytes) -> Any:
    """Inverse of `dump_key`."""
    kind, rest = data[:1], data[1:]
    return rest if kind == b"b" else rest.decode() if kind == b"s" else int(rest)


class Balance:
    """What was sent and what arrived, by exchange: a sum of tallies."""

    def __init__(self) -> None:
        self.tallies: dict[str, dict[str, Tally]] = {}

    def add(self, fields: Mapping[str, Any]) -> None:
        """Count a record of KIND."""
        sides = self.tallies.setdefault(fields["name"], {SENT: Tally(), ARRIVED: Tally()})
        sides[fields["way"]].merge(Tally(fields["elements"], fields["bytes"], fields["digest"]))

    def add_record(self, record: bytes) -> None:
        """Count a record as it crosses a graph."""
        self.add(orjson.loads(record))

    def merge(self, other: "Balance") -> None:
        """Add what another one counted."""
        for name, sides in other.tallies.items():
            own = self.tallies.setdefault(name, {SENT: Tally(), ARRIVED: Tally()})
            for way, tally in sides.items():
                own[way].merge(tally)

    def problems(self) -> list[str]:
        """A line for each exchange whose sides differ."""
        return [
            difference(name, sides[SENT], sides[ARRIVED])
            for name, sides in sorted(self.tallies.items())
            if sides[SENT] != sides[ARRIVED]
        ]

    def check(self) -> None:
        """Raises ExchangeError, naming every exchange whose sides differ."""
        if problems := self.problems():
            raise ExchangeError(
                "the exchange between workers lost or changed data, so nothing was published; run the same command "
                "again:\n  " + "\n  ".join(problems)
            )

    def balanced(self) -> dict[str, dict[str, int]]:
        """Exchange -> what was sent and arrived, for a report. Raises ExchangeError as `check` does."""
        self.check()
        return {name: sides[ARRIVED].fields() for name, sides in sorted(self.tallies.items())}

    def dump(self) -> bytes:
        """As bytes, for `load`."""
        rows = [[name, way, *tally.fields().values()] for name, s in self.tallies.items() for way, tally in s.items()]
        return orjson.dumps(sorted(rows))

    @classmethod
    def load(cls, data: bytes) -> "Balance":
        """Inverse of `dump`."""
        balance = cls()
        for name, way, elements, size, digest in orjson.loads(data):
            balance.add({"name": name, "way": way, "elements": elements, "bytes": size, "digest": digest})
        return balance


def difference(name: str, sent: Tally, arrived: Tally) -> str:
    """What differs between the two sides of an exchange, in a line."""
    if (sent.elements, sent.size) == (arrived.elements, arrived.size):
        return f"{name}: {sent.elements:,} elements of {sent.size:,} bytes arrived, but their contents have changed"
    return (
        f"{name}: {sent.elements:,} elements of {sent.size:,} bytes were sent, {arrived.elements:,} of "
        f"{arrived.size:,} bytes arrived"
    )


def add_balances(dumped: Iterable[bytes]) -> bytes:
    """The sum of balances, as bytes."""
    total = Balance()
    for data in dumped:
        total.merge(Balance.load(data))
    return total.dump()


def add_tallies(dumped: Iterable[bytes]) -> bytes:
    """The sum of tallies, as bytes."""
    total = Tally()
    for data in dumped:
        total.merge(Tally.load(data))
    return total.dump()
