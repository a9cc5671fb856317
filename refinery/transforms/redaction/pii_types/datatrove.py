"""E-mail and IPv4 addresses as FineWeb's formatter takes them: `pii.matching: datatrove` (datatrove 0.10).

By form alone: a dot-atom of RFC 5322 3.2.3 before the @, a host name or an address in brackets behind it; four numbers
wherever they stand. Both are only as wide as there, mistakes included: docs/conformance.md counts them.
"""

import ipaddress
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from refinery.transforms.redaction.pii_types.scan import compile_bytes

ATOMS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+/=?^_`{|}~-"
LABEL = rb"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
OCTET = rb"(?:25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)"
DOMAIN = compile_bytes(
    rb"(?:" + LABEL + rb"\.)+" + LABEL + rb"|\[(?:" + OCTET + rb"\.){3}(?:" + OCTET + rb"|[A-Za-z0-9-]*[A-Za-z0-9]:)\]"
)
IPV4 = compile_bytes(rb"(?:" + OCTET + rb"\.){3}" + OCTET)
EDGE = re.compile(r"\b[^.]")  # of a word by Unicode, so "é" before an address is part of no address
CHARACTER_BYTES = 4


def emails(data: bytes) -> Iterator[tuple[int, int]]:
    """Addresses with an @. Linear: no byte is looked at from more than two of them."""
    floor, at = 0, data.find(b"@")
    while at >= 0:
        start = _start_of_local(data, floor, at)
        domain = DOMAIN.match(data, at + 1) if start >= 0 else None
        floor = domain.end() if domain else at + 1
        if domain:
            yield start, floor
        at = data.find(b"@", floor)


def ipv4(data: bytes, taken: Sequence[tuple[int, int]], private: bool) -> Iterator[tuple[int, int]]:
    """Four numbers with dots between them, outside of what is `taken`. private: also reserved ones. Linear."""
    for (_, start), (end, _) in pairwise([(0, 0), *taken, (len(data), len(data))]):
        for match in IPV4.finditer(data, start, end):
            if _is_address(match.group().decode(), private):
                yield match.span()


def _start_of_local(data: bytes, floor: int, at: int) -> int:
    """Where the part before the @ begins that stands at `at`, not before `floor`; -1 where there is none."""
    chunk = data[floor:at]
    tail = chunk[len(chunk.rstrip(ATOMS + b".")) :].rpartition(b"..")[2].lstrip(b".")
    if tail.endswith(b"."):
        return -1
    first = at - len(tail)
    before = data[max(0, first - CHARACTER_BYTES) : first].decode(errors="ignore")[-1:]
    edge = EDGE.search(before + tail.decode(), len(before))
    return first + edge.start() - len(before) if edge else -1


def _is_address(candidate: str, private: bool) -> bool:
    try:
        address = ipaddress.IPv4Address(candidate)
    except ValueError:  # "010" is not a number of an address
        return False
    return private or address.is_global
