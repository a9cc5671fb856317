"""What has the form of personal data in source code and is none: parts of expressions, of specifications, of dumps.

Sources: RFC 2606, RFC 6761 and RFC 6762 (names that are nobody's), IANA's root zone (what a domain can end in), the
addresses that BigCode leaves alone (bigcode-dataset, pii/ner/pii_redaction/utils.py and pii/utils/: well-known name
servers, and four numbers of one digit, which are versions or made up), ECMA-262 (numbers of its sections).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from ipaddress import IPv4Address, IPv6Address
from itertools import pairwise
from types import MappingProxyType
from typing import TypeVar

from refinery.transforms.redaction.pii_types.cues import IDENTITY_CUE, PHONE_CUE, says
from refinery.transforms.redaction.pii_types.emails import ENDINGS, SSH_NAME
from refinery.transforms.redaction.pii_types.identities import NATIONAL_CUE
from refinery.transforms.redaction.pii_types.networks import ADDRESS_CUE
from refinery.transforms.redaction.pii_types.scan import before
from refinery.transforms.redaction.pii_types.source_places import SourcePlaces

Kind = TypeVar("Kind", bound=str)
BEHIND = 24  # bytes behind a match that are looked at

RESERVED = re.compile(rb"(?:^|\.)(?:example(?:\.(?:com|net|org))?|test|invalid|localhost|local)$")
MEMBER = re.compile(rb"(?:self|this)\.")  # a@self.weight: a product of matrices
CALL = re.compile(rb"[(\[]")  # a@b.transpose(0, 1)
DOMAINS = frozenset((b"com", b"net", b"org", b"edu", b"gov", b"mil", b"int", b"info", b"biz", b"name", b"dev", b"app"))
LOCALE = re.compile(rb"[a-z]{2,3}_[A-Z]{2}(?:\.[\w-]+)?")  # sd_IN@devanagari
FORMAT = re.compile(rb"%[sd]|^%")  # "%s@domain"; SQL's LIKE "%@domain"
ARCHIVE = re.compile(
    rb"https?://(?:www\.)?(?:mail-archive\.com|lore\.kernel\.org|public-inbox\.org|lists?\.[\w.-]+)/[^\s\"'<>]*$"
)  # of mailing lists, which name lists and messages
UUID = re.compile(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")  # of a Message-ID
USER_BEFORE = re.compile(rb"://[^\s/@\"'<>]*:$")  # http://user:password@host
PASSWORDS = frozenset((b"pass", b"passwd", b"password", b"pwd", b"secret", b"pw"))
BRACKETS = re.compile(rb"[(\[{<][^()\[\]{}<>]*[)\]}>]")
PAIRS = (b"()", b"[]", b"{}", b"<>")

NAME_SERVERS = frozenset(
    (
        b"8.8.8.8 8.8.4.4 1.1.1.1 1.0.0.1 76.76.19.19 76.223.122.150 9.9.9.9 149.112.112.112 208.67.222.222"
        b" 208.67.220.220 8.26.56.26 8.20.247.20 94.140.14.14 94.140.15.15"
    ).split()
)
ONE_DIGIT_EACH = re.compile(rb"[0-9](?:\.[0-9]){3}")
# The sections of a specification have no number of 64 and more; one address in 256 has none either.
MOST_SECTIONS = 64
SECTION = re.compile(
    rb"(?://|/\*+|\*|#|\(|\b(?:ES[0-9.]{1,4}|ECMA[\w-]*|[Ss]pec\w*|[Ss]ections?|[Ss]tep)\b[^\w\n]{0,3})[ \t]*$"
)
PORT = re.compile(rb"[:/][0-9]")
VERSION = re.compile(rb"(?:[12]?[0-9]|3[01])(?:\.[0-9]+){2}\.0")  # 4.0.102.0
LOOPBACK = re.compile(rb"(?:0{1,4}:){7}0{0,3}[01]")
COUNTED = re.compile(rb"(?:[0-9A-Fa-f]{0,3}:)(?:[0-9A-Fa-f]:){6}[0-9A-Fa-f]")  # 1:2:3:4:5:6:7:8

NUMBERS = frozenset(("card", "imei", "ssn", "national_id"))
NAMED = re.compile(rb"(?i)card|visa|debit|credit|\bpan\b|imei|ssn|social|iban|tax|person|citizen|\bid\b")
TIMES = re.compile(rb"[ \t]*(?:\*|%|\^|<<|>>|[+] ?[A-Za-z_])")  # 4828147466240000*t**12
TICKET = re.compile(rb"[A-Za-z][0-9]{9}|[0-9]{7,8}[A-Za-z]")  # T277566778; 1234567a of a hash
IN_ONE = re.compile(rb"[A-Za-z]?[0-9]+[A-Za-z]?")
QUOTES = (b'"', b"'", b"`")

PHONE_NAME = re.compile(rb"(?i)phone|tel|mobile|cell|fax|sms|whatsapp|msisdn|fon|handy|dial|call")
TEXT_NAME = re.compile(rb"(?i)\b(?:texts?|messages?|ring|contact)\b[\"'`]?\W{0,6}$")  # {"text": "1 2 3"}, no verb
YEAR = re.compile(rb"\((?:19|20)[0-9]{2}$")  # 71(6), 065103 (2005)
FRACTION = re.compile(rb"[.]-|-[.]")  # .02.02-.02.06.08: of a drawing
CODE_POINTS = re.compile(rb"[0-9]{4}(?: [0-9]{4})+")
PAIRS_ONLY = re.compile(rb"(?:[0-9]{4} +)?[0-9]{2}(?:[ .:-]+[0-9]{2}){3,}")
LEAST_STEP = 10  # of numbers that nobody counts by: 01 23 45 67 89
DUMP_BEFORE = re.compile(rb"(?:^|\n)[ \t]*(?:[0-9A-Fa-f]{4,8}:?[ \t]+)?$|[0-9A-Fa-f]{2}[ ]$")
DUMP_BEHIND = re.compile(rb"[ ][0-9A-Fa-f]{2}\b|[ ]{2,}")
PART_BEHIND = re.compile(rb"-[A-Z0-9]*[A-Z][A-Z0-9]{3}")  # 012345-567890-ABCDEF
DIGITS = re.compile(rb"[0-9]+")

NOBODYS_HOME = re.compile(rb"(?i)[/\\](?:web_user|some_?user|random_?user|any_?user|httpd)[/\\]*$")  # Emscripten's …
NO_HOME = re.compile(rb"[/\\]([\w.-]+)\.([A-Za-z0-9]{1,8})$")  # /home/test2.yml


def of_somebody(data: bytes, found: list[tuple[int, int, Kind]]) -> Iterator[tuple[int, int, Kind]]:
    """Those of `found` that can be somebody's in source code, in ascending order. Linear."""
    places = SourcePlaces(data)
    for start, end, kind in sorted(found):
        judge = NOBODYS.get(kind)
        if judge is None or not judge(data, start, end, places):
            yield start, end, kind


@cache
def top_level_domains() -> frozenset[bytes]:
    """What a domain can end in, as the list that ships with tldextract has it; nothing is fetched."""
    from tldextract import TLDExtract  # imports requests; most files have no address with a rare ending

    known = TLDExtract(cache_dir=None, suffix_list_urls=()).tlds
    return frozenset(suffix.rpartition(".")[2].encode() for suffix in known)


def _email(data: bytes, start: int, end: int, places: SourcePlaces) -> bool:
    value = data[start:end]
    local, sign, domain = value.partition(b"@")
    if not sign:
        return _unmatched(value)
    left, name = before(data, start), domain.lower()
    if RESERVED.search(name) or MEMBER.match(name) or not _is_domain(name):
        return True
    if CALL.match(data, end) and name.rpartition(b".")[2] not in DOMAINS and len(name.rpartition(b".")[2]) != 2:
        return True
    if LOCALE.fullmatch(local) or FORMAT.search(local) or UUID.fullmatch(local) or left.endswith(b"$"):
        return True
    if ARCHIVE.search(left):
        return True
    if USER_BEFORE.search(left) or (left.endswith(b":") and local.lower() in PASSWORDS):
        return True  # a password, which the stage for secrets has judged
    return name == b"golang.org" and SSH_NAME.match(local.lower()) is not None


def _unmatched(value: bytes) -> bool:
    """Whether brackets of an address that is spelt out do not belong together: `(at > this.length`."""
    return any(pair.group()[:1] + pair.group()[-1:] not in PAIRS for pair in BRACKETS.finditer(value))


def _is_domain(name: bytes) -> bool:
    last = name.rpartition(b".")[2]
    if len(last) == 2 or last in DOMAINS or last.startswith(b"xn--") or not last.isascii():
        return True
    return last in top_level_domains()


def _ip(data: bytes, start: int, end: int, places: SourcePlaces) -> bool:
    value = data[start:end]
    if b":" in value:
        return bool(LOOPBACK.fullmatch(value) or COUNTED.fullmatch(value)) or _holds_private(value)
    if value in NAME_SERVERS or ONE_DIGIT_EACH.fullmatch(value):
        return True
    left = before(data, start)[-32:]
    if left.endswith(b"%"):
        return True  # %37.0.0.1: a sign in hexadecimal
    if VERSION.fullmatch(value) and not PORT.match(data, end) and not ADDRESS_CUE.search(left):
        return True
    if any(int(octet) >= MOST_SECTIONS for octet in value.split(b".")) or PORT.match(data, end):
        return False
    cued = ADDRESS_CUE.search(left) and not left.endswith((b"//", b"from "))
    return not cued and SECTION.search(left) is not None


def _holds_private(value: bytes) -> bool:
    """Whether an IPv6 address stands for an IPv4 address of nobody: ::ffff:10.0.0.1 written out."""
    try:
        number = int(IPv6Address(value.decode()))
    except ValueError:
        return False
    return number >> 64 == 0 and not IPv4Address(number & 0xFFFFFFFF).is_global


def _number(data: bytes, start: int, end: int, places: SourcePlaces) -> bool:
    value, left = data[start:end], before(data, start)
    if TIMES.match(data, end) or left.endswith(b".") or _is_mask(value):
        return True
    quoted = left[-1:] in QUOTES and data[end : end + 1] in QUOTES
    if quoted or NAMED.search(left) or NATIONAL_CUE.search(left) or says(IDENTITY_CUE, data, start):
        return False
    if TICKET.fullmatch(value):
        return True
    return IN_ONE.fullmatch(value) is not None and places.is_code(start)


def _is_mask(value: bytes) -> bool:
    """Whether all digits are the same: 999-99-9999 is a form to be filled in."""
    return len(set(b"".join(DIGITS.findall(value)))) < 2


def _phone(data: bytes, start: int, end: int, places: SourcePlaces) -> bool:
    value, left, behind = data[start:end], before(data, start), data[end : end + BEHIND]
    if YEAR.search(value) or FRACTION.search(value) or left.endswith(b".") or PART_BEHIND.match(behind):
        return True
    if _is_mask(value):
        return True
    groups = DIGITS.findall(value)
    if CODE_POINTS.fullmatch(value) and sum(group.startswith(b"0") for group in groups) > 1:
        return True
    if PAIRS_ONLY.fullmatch(value) and (_is_counted(groups) or _is_dumped(left, behind, groups)):
        return True
    if TEXT_NAME.search(left) and data[start] not in b"+(":
        return True
    named = PHONE_NAME.search(left) or says(PHONE_CUE, data, start)
    return len(groups) == 1 and data[start] not in b"+(" and not named


def _is_counted(groups: list[bytes]) -> bool:
    """Whether numbers rise by the same small step: [01:10:2] -> 01 03 05 07 09."""
    numbers = [int(group) for group in groups]
    steps = {later - earlier for earlier, later in pairwise(numbers)}
    return len(steps) == 1 and 0 < min(steps) < LEAST_STEP


def _is_dumped(left: bytes, behind: bytes, groups: list[bytes]) -> bool:
    return (len(groups[0]) == 4 or DUMP_BEFORE.search(left) is not None) and DUMP_BEHIND.match(behind) is not None


def _user_path(data: bytes, start: int, end: int, places: SourcePlaces) -> bool:
    value = data[start:end]
    file = NO_HOME.search(value)
    return NOBODYS_HOME.search(value) is not None or (file is not None and file.group(2).lower() in ENDINGS)


Judge = Callable[[bytes, int, int, SourcePlaces], bool]
NOBODYS: Mapping[str, Judge] = MappingProxyType(
    {"email": _email, "ip": _ip, "phone": _phone, "user_path": _user_path, **dict.fromkeys(NUMBERS, _number)}
)
"""Type -> whether data[start:end], which has the form of that type, is nobody's."""
