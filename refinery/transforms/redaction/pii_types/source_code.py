"""What differs in source code: the forms that take the place of personal data, and what names no person there.

Sources: RFC 2606 and RFC 6761 (names that are nobody's), the addresses that BigCode leaves alone
(bigcode-dataset, pii/ner/pii_redaction/utils.py and pii/utils/: well-known name servers, and four numbers of one digit,
which are versions or made up). What is nobody's in prose either, such as git@github.com, is in emails.py.
"""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from refinery.transforms.redaction.pii_types.places import NOBODY, PATH
from refinery.transforms.redaction.pii_types.scan import WORD_BYTES, compile_bytes

NETWORK = "<redacted-network-address>"
FORMS: Mapping[str, str] = MappingProxyType(
    {
        "email": "<redacted-email>",
        "phone": "<redacted-phone>",
        "ip": NETWORK,
        "mac": NETWORK,
        "iban": "<redacted-iban>",
        "card": "<redacted-card>",
        "imei": "<redacted-imei>",
        "ssn": "<redacted-ssn>",
        "national_id": "<redacted-national-id>",
        "user_path": "<redacted-path>/",
        "address": "<redacted-address>",
    }
)
"""Type -> what takes its place; that of `user_path` takes the place of the whole home directory."""

RESERVED = re.compile(rb"(?:^|\.)(?:example(?:\.(?:com|net|org))?|test|invalid|localhost)$")
MEMBER = re.compile(rb"(?:self|this)\.")  # a@self.weight: a product of matrices
CALL = re.compile(rb"[(\[]")  # a@b.transpose(0, 1)
DOMAINS = frozenset((b"com", b"net", b"org", b"edu", b"gov", b"mil", b"int", b"info", b"biz", b"name", b"dev", b"app"))

NAME_SERVERS = frozenset(
    (
        b"8.8.8.8 8.8.4.4 1.1.1.1 1.0.0.1 76.76.19.19 76.223.122.150 9.9.9.9 149.112.112.112 208.67.222.222"
        b" 208.67.220.220 8.26.56.26 8.20.247.20 94.140.14.14 94.140.15.15"
    ).split()
)
ONE_DIGIT_EACH = re.compile(rb"[0-9](?:\.[0-9]){3}")

DRIVE = compile_bytes(rb"(?:^|[^\w./-])((?:/mnt|/cygdrive)?/[A-Za-z])$")  # /c/Users/…, /mnt/c/Users/…
DRIVE_BYTES = 13  # longer than any match, so ^ is the beginning of the text


def names_nobody(kind: str, data: bytes, start: int, end: int) -> bool:
    """Whether data[start:end], which has the form of that type, is nobody's in source code."""
    value = data[start:end]
    if kind == "email":
        domain = value.lower().partition(b"@")[2]
        return bool(
            RESERVED.search(domain) or MEMBER.match(domain) or (CALL.match(data, end) and not _is_domain(domain))
        )
    return kind == "ip" and (value in NAME_SERVERS or ONE_DIGIT_EACH.fullmatch(value) is not None)


def _is_domain(name: bytes) -> bool:
    last = name.rpartition(b".")[2]
    return len(last) == 2 or last in DOMAINS or last.startswith(b"xn--")


def homes(data: bytes) -> Iterator[tuple[int, int]]:
    """Home directories in paths, with the separator behind them: "/home/anna/", "C:\\\\Users\\\\anna\\\\". Linear."""
    for match in PATH.finditer(data):
        start, (first, last) = match.start(), match.span(1)
        name = data[first:last].rstrip(b".-")
        if start and (data[start - 1] in WORD_BYTES or data[start - 1] in b".-~}>)]%"):
            before = max(0, start - DRIVE_BYTES)
            drive = DRIVE.search(data[before:start])
            if drive is None:
                continue  # a part of a longer path, or of an address of the web
            start = before + drive.start(1)
        if not name or name.lower() in NOBODY or name.isdigit():
            continue
        end = first + len(name)
        while end < len(data) and end - first - len(name) < 2 and data[end : end + 1] in (b"/", b"\\"):
            end += 1
        yield start, end
