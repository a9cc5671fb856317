"""E-mail addresses, also those written against harvesters.

Sources: RFC 5321 4.5.3.1 and RFC 1035 2.3.4 (lengths of an address).
"""

from collections.abc import Iterator

from refinery.transforms.filter.pii_types.scan import WORD_BYTES, compile_bytes

LETTER = rb"[A-Za-z0-9]|[\xc3-\xd3][\x80-\xbf]"  # and Latin, Greek, Cyrillic with two bytes
ATOM = rb"(?:" + LETTER + rb"|[_%+'~&-])+"
LABEL = rb"(?:" + LETTER + rb"|-)+"
LOCAL = ATOM + rb"(?:\." + ATOM + rb")*"
DOMAIN = rb"(?:" + LABEL + rb"\.)+(?:xn--[A-Za-z0-9]{2,59}|[A-Za-z]{2,24})"
EMAIL = compile_bytes(LOCAL + rb"@" + DOMAIN)
# "<name at example.org>" and "name (at) example.org": written against harvesters, no less personal.
SPELT_EMAIL = compile_bytes(
    rb"<(" + LOCAL + rb" at " + DOMAIN + rb")>|(" + LOCAL + rb" ?[\[(]at[\])] ?" + DOMAIN + rb")"
)
SPELT_HINT = rb" at [^ <>]*>|[\[(]at[\])]"
# "icon@2x.png" names a file: none of these is a top-level domain.
FILE_ENDINGS = frozenset(
    (b"png", b"jpg", b"jpeg", b"gif", b"svg", b"webp", b"css", b"js", b"json", b"html", b"pdf", b"txt")
)


def spelt_emails(data: bytes) -> Iterator[tuple[int, int]]:
    """Addresses whose @ is a word. Linear."""
    for match in SPELT_EMAIL.finditer(data):
        yield match.span(1 if match.group(1) else 2)


def emails(data: bytes) -> Iterator[tuple[int, int]]:
    """Addresses with an @. Linear."""
    for match in EMAIL.finditer(data):
        start, end = match.span()
        local, _, domain = data[start:end].partition(b"@")
        if len(local) > 64 or len(domain) > 255 or domain.rpartition(b".")[2].lower() in FILE_ENDINGS:
            continue
        if end < len(data) and data[end] in WORD_BYTES:
            continue
        yield start + len(local) - len(local.lstrip(b"'-")), end
