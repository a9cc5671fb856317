"""Numbers of payment cards and bank accounts: each carries its own check.

Sources: ISO/IEC 7812-1 (card numbers: 12 to 19 digits, Luhn's check digit), the networks' published ranges; ISO 13616
(IBAN: lengths by country from SWIFT's registry, remainder 1 of 97).
"""

from collections.abc import Iterator

from refinery.transforms.redaction.pii_types.cues import CARD_CUE as OTHER_CARD_CUE
from refinery.transforms.redaction.pii_types.cues import says
from refinery.transforms.redaction.pii_types.scan import WORD_BYTES, before, compile_bytes, luhn

# Groups of digits as cards are printed; one group for those that are not.
CARD_GROUPS = frozenset(((4, 4, 4, 4), (4, 6, 5), (4, 6, 4), (4, 4, 4, 4, 3), *((size,) for size in range(12, 20))))
CARD_CUE = compile_bytes(
    rb"(?i)\b(?:cards?|visa|master ?card|maestro|amex|american express|discover|diners|jcb|union ?pay"
    rb"|credit|debit|pan|ccn?|cc_?(?:num|number|no)"
    rb"|carte|tarjeta|karte|kreditkarte|kart\w{0,4}|carta|cart\xc3\xa3o|cardnumber|card_?(?:num|number"
    rb"|no))\b[^\n]{0,32}$"
)
# What networks issue: first digits, and lengths. Others need a cue.
NETWORKS = (
    (b"4", (13, 16, 19)),  # Visa
    *((str(n).encode(), (16,)) for n in range(51, 56)),  # Mastercard
    *((str(n).encode(), (16,)) for n in range(2221, 2721)),  # Mastercard, its second range
    (b"34", (15,)),  # American Express
    (b"37", (15,)),
    *((str(n).encode(), (14, 16)) for n in (300, 301, 302, 303, 304, 305, 36, 38, 39)),  # Diners Club
    *((str(n).encode(), (16, 19)) for n in (6011, 644, 645, 646, 647, 648, 649, 65)),  # Discover
    *((str(n).encode(), (16,)) for n in range(353, 359)),  # JCB, with 3528 and 3529
    (b"3528", (16,)),
    (b"3529", (16,)),
    (b"2131", (15,)),
    (b"1800", (15,)),
    (b"62", (16, 17, 18, 19)),  # UnionPay
    *((str(n).encode(), (16,)) for n in (5018, 5020, 5038, 5893, 6304, 6759, 6761, 6762, 6763)),  # Maestro
)
BY_FIRST = dict(NETWORKS)
BARE = (15, 16)  # digits in one group that need no cue: shorter and longer rows are counts, times, identifiers

# Digits and letters of each country's account numbers (SWIFT, IBAN registry, release 99).
IBAN_LENGTHS = {
    code.encode(): int(length)
    for length, codes in (
        (15, "NO"),
        (16, "BE"),
        (18, "DK FI FK FO GL NL SD"),
        (19, "MK SI"),
        (20, "AT BA EE KZ LT LU MN XK"),
        (21, "CH HR LI LV"),
        (22, "BG BH CR DE GB GE IE ME RS VA"),
        (23, "AE GI IL IQ OM SO TL"),
        (24, "AD CZ ES MD PK RO SA SE SK TN VG"),
        (25, "LY PT ST"),
        (26, "IS TR"),
        (27, "BI DJ FR GR IT MC MR SM"),
        (28, "AL AZ BY CY DO GT HN HU LB NI PL SV"),
        (29, "BR EG PS QA UA"),
        (30, "JO KW MU YE"),
        (31, "MT SC"),
        (32, "LC"),
        (33, "RU"),
    )
    for code in codes.split()
}
IBAN_HINT = rb"[A-Za-z]{2}[0-9]{2}[ -]?[A-Za-z0-9]{4}[ -]?[A-Za-z0-9]{4}"
IBAN_BEGINS = compile_bytes(rb"\b[A-Za-z]{2}[0-9]{2}[ -]?[A-Za-z0-9]{4}[ -]?[A-Za-z0-9]{4}")
MIN_IBAN_DIGITS = 10  # of its account number: hexadecimal digits and words have fewer


def is_card(data: bytes, start: int, end: int, digits: bytes) -> bool:
    """Whether digits are a card's: Luhn's check, and a network's range and form or a cue."""
    if len(set(digits)) < 2 or not luhn(digits):
        return False
    if CARD_CUE.search(before(data, start)) or says(OTHER_CARD_CUE, data, start):
        return True
    known = any(len(digits) in BY_FIRST.get(digits[:size], ()) for size in range(1, 5))
    return known and (end - start > len(digits) or len(digits) in BARE)


def ibans(data: bytes) -> Iterator[tuple[int, int]]:
    """Account numbers, in one piece or in groups with single spaces or hyphens. Linear: a candidate has 40 bytes."""
    last = 0
    for match in IBAN_BEGINS.finditer(data):
        start = match.start()
        if start < last or (end := _iban_end(data, start)) is None:
            continue
        last = end
        yield start, end


def _iban_end(data: bytes, start: int) -> int | None:
    length = IBAN_LENGTHS.get(data[start : start + 2].upper())
    if length is None:
        return None
    value = bytearray()
    at = start
    while len(value) < length:
        byte = data[at : at + 1]
        if byte in (b" ", b"-") and value and data[at - 1 : at] not in (b" ", b"-"):
            at += 1
            continue
        if not byte.isalnum():
            return None
        value += byte
        at += 1
    if at < len(data) and data[at] in WORD_BYTES:
        return None
    country, rest = bytes(value).upper(), bytes(value[4:])
    if sum(map(str.isdigit, rest.decode())) < MIN_IBAN_DIGITS or not (
        rest.isupper() or rest.islower() or rest.isdigit()
    ):
        return None
    number = "".join(str(int(char, 36)) for char in (country[4:] + country[:4]).decode())
    return at if int(number) % 97 == 1 else None
