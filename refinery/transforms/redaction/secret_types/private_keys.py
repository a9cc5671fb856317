"""Private keys: PEM, PGP, PuTTY, JSON Web Keys; also cut off, bare or in base64 again.

Sources: RFC 7468, RFC 5958 (PKCS#8), RFC 8017 (PKCS#1), RFC 7517; gitleaks for what is met in sources.
"""

from collections.abc import Iterator

from refinery.transforms.redaction.pii_types.scan import compile_bytes
from refinery.transforms.redaction.secret_types.context import is_placeholder
from refinery.transforms.redaction.secret_types.rules import WORD, Found

KEY_REACH = 1 << 16  # bytes of a private key: RSA with 16,384 bits takes 13,000
JWK = compile_bytes(rb"\"(?:d|k|p|q|dp|dq|qi)\"\s{0,4}:\s{0,4}\"([A-Za-z0-9_-]{20,})\"")
BEGIN = compile_bytes(rb"-----BEGIN[ A-Z0-9]*PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-[23]:")
# DER of PKCS#8 and PKCS#1 keys, and "-----BEGIN", in base64: their first bytes are always the same.
DER = compile_bytes(
    rb"MI[IG][A-Za-z0-9+/]{0,4}(?:IBADAN|AgEAMBMGByqGSM49|IBAAK[BC]|wIBAAJB|gIBAAJB|HcCAQEEI)[A-Za-z0-9+/\s\\]{40,}={0,2}"
    rb"|MHcCAQEEI[A-Za-z0-9+/\s\\]{60,}={0,2}|(?:LS0tLS1CRUdJTi|tLS0tQkVHSU4g|LS0tLUJFR0lOI)[A-Za-z0-9+/\s]{32,}={0,2}"
)
ARMOUR_HINT = rb"PRIVATE KEY|PuTTY-User"
DER_HINT = (
    rb"MI[IG][A-Za-z0-9+/]{0,4}(?:IBA|AgEAMBMG|wIBAAJB|gIBAAJB|HcCAQEEI)|MHcCAQEEI|CRUdJTi|tLS0tQkVHSU4g|LS0tLUJFR0lOI"
)
BASE64_LINE = compile_bytes(rb"[^\n]*[A-Za-z0-9+/=]{16}[^\n]*\n?")


def web_keys(data: bytes) -> Iterator[Found]:
    """The private parts of JSON Web Keys. Linear."""
    yield from (Found(match.start(1), match.end(1), "jwk") for match in JWK.finditer(data))


def armoured(data: bytes) -> Iterator[Found]:
    """Keys between their lines. Linear: a key has KEY_REACH bytes at most."""
    at = 0
    while match := BEGIN.search(data, at):
        at = match.end()
        end = data.find(b"-----END", at, at + KEY_REACH)
        begin = data.find(b"-----BEGIN", at, at + KEY_REACH)
        if end < 0 or 0 <= begin < end:
            end = _end_of_lines(data, at)
        body = data[at:end]
        if sum(byte in WORD or byte in b"+/=" for byte in body[:4096]) >= 64 and not is_placeholder(body[:256]):
            if data.startswith(b"-----END", end):
                close = data.find(b"-----", end + 8, end + 80)
                end = close + 5 if close >= 0 else end + 8
            yield Found(match.start(), end, "private-key")
            at = end


def bare(data: bytes) -> Iterator[Found]:
    """DER of keys, and their first line, in base64. Linear."""
    for match in DER.finditer(data):
        yield Found(match.start(), match.end(), "private-key")


def _end_of_lines(data: bytes, at: int) -> int:
    """Where the lines of base64 behind `at` end: of a key that was cut off."""
    stop = min(len(data), at + KEY_REACH)
    newline = data.find(b"\n", at, stop)
    end = stop if newline < 0 else newline + 1
    while end < stop and (line := BASE64_LINE.match(data, end, stop)):
        end = line.end()
    return end
