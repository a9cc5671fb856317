"""What differs in source code: the forms that take the place of personal data, and home directories as a whole.

What is nobody's there is in code_values.py; what is nobody's in prose either, such as git@github.com, in emails.py.
"""

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

DRIVE = compile_bytes(rb"(?:^|[^\w./-])((?:/mnt|/cygdrive)?/[A-Za-z])$")  # /c/Users/…, /mnt/c/Users/…
DRIVE_BYTES = 13  # longer than any match, so ^ is the beginning of the text


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
