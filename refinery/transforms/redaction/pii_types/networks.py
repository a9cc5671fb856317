"""Addresses of networks and of their cards: IPv4, IPv6, MAC.

Four numbers with dots between them are an address, a version, a section or an object identifier; what stands before
them decides, and numbers below 32 are not addresses without a word that says so.

Sources: IANA's special-purpose address registries (through `ipaddress`), RFC 4291 (notation of IPv6), IEEE 802
(notation of MAC addresses, with hyphens; with colons and dots as systems print them). To redact only public IP
addresses is FineWeb's rule (Penedo et al. 2024).
"""

import ipaddress
import re
from collections.abc import Iterator

from refinery.transforms.redaction.pii_types.scan import WORD_BYTES, before, compile_bytes

OCTET = rb"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
IPV4 = compile_bytes(rb"(?:" + OCTET + rb"\.){3}" + OCTET)
IPV4_HINT = rb"[0-9]\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]"
IPV6 = compile_bytes(rb"(?:[0-9A-Fa-f]{0,4}:){2,7}(?:(?:[0-9]{1,3}\.){3}[0-9]{1,3}|[0-9A-Fa-f]{0,4})")
PUBLIC_IPV6_HINT = rb"[23][0-9A-Fa-f]{3}:[0-9A-Fa-f:]|(?:[0-9A-Fa-f]{1,4}:){6}"
IPV6_HINT = rb"::|(?:[0-9A-Fa-f]{1,4}:){6}"
VERSION_CUE = compile_bytes(
    rb"(?i)(?:\b(?:version|versions|ver|v|release|releases|released|build|builds|firmware|revision|rev"
    rb"|update|patch|section|sections|chapter"
    rb"|clause|table|figure|appendix|article|paragraph|rule|item|rfc|oid|oids|driver|kernel|upgrade"
    rb"|upgraded|since|python|java"
    rb"|\w*version\w*|\w*_ver|\w*oid|assembly\w*|productversion|ptr|mib|snmp\w*|iso"
    rb"|sec)\b[^\w\n]{0,6}(?:is |of |to |id )?"
    rb"|\xc2\xa7 ?|[A-Za-z0-9]/|[A-Za-z][-_])$"
)
# Between two of a list: what is beside a version is one, too.
BESIDE = compile_bytes(rb"^[ \t,;|/`*'\"()-]{1,8}(?:(?:and|or|to)[ \t`*'\"]{1,4})?$")
NEIGHBOUR = compile_bytes(
    rb"(?:^|[^0-9.])((?:[0-9]+\.){1,4}[0-9]+)[ \t,;|/`*'\"]{1,8}(?:(?:and|or|to)[ \t`*'\"]{1,4})?$"
)
BESIDE_BYTES = 12
ADDRESS_CUE = compile_bytes(
    rb"(?i)(?:\b(?:ip|ips|ipv4|address|addresses|addr|host|hosts|server|servers|dns|ping|from|gateway"
    rb"|client|subnet|netmask|cidr"
    rb"|\w*_ip|\w*_addr\w*|nameserver|private|network|lan|wan|vpn|proxy|router|peer|listen|bind|ssh"
    rb"|telnet|whois|port)\b\W{0,4}\w{0,8}\W{0,3}|//|IN A +)$"
)
PORT = compile_bytes(rb"^:[0-9]{2,5}\b|^/[0-9]{1,2}\b")
SMALL_OCTET = 32  # four numbers below this are rather a version or a section than an address (1 in 4,096 of these)
LAST_ARC = 2  # object identifiers begin with 0, 1 or 2 (ITU-T X.660)
GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")

PAIR = rb"[0-9A-Fa-f]{2}"
MAC_FORMS = (
    rb"(?:" + PAIR + rb":){5}" + PAIR,
    rb"(?:" + PAIR + rb"-){5}" + PAIR,
    rb"(?:[0-9A-Fa-f]{4}\.){2}[0-9A-Fa-f]{4}",
)
MAC_HINT = rb"|".join(MAC_FORMS)
MAC = compile_bytes(MAC_HINT)
LETTERS = re.compile(rb"[A-Fa-f]")
MAC_CUE = compile_bytes(
    rb"(?i)\b(?:mac|ether|ethernet|hwaddr|hardware|physical|bssid|link/ether|lladdr|wlan\w*|eth[0-9])\b[^\n]{0,24}$"
)
NO_CARD = frozenset((b"000000000000", b"ffffffffffff"))  # unset, and broadcast


def ipv4(data: bytes, private: bool) -> Iterator[tuple[int, int]]:
    """Addresses of four decimal numbers. private: also those of ranges that IANA reserves. Linear."""
    last, was_address = -BESIDE_BYTES, False
    for match in IPV4.finditer(data):
        start, end = match.span()
        beside = start - last <= BESIDE_BYTES and bool(BESIDE.match(data[last:start]))
        last, was_address = end, _is_ipv4(data, start, end, was_address if beside else None)
        if was_address and (private or _is_public(data[start:end].decode())):
            yield start, end


def ipv6(data: bytes, private: bool) -> Iterator[tuple[int, int]]:
    """Addresses of hexadecimal groups. Linear."""
    for match in IPV6.finditer(data):
        start, end = match.span()
        if start and (data[start - 1] in WORD_BYTES or data[start - 1] in b":."):
            continue
        if data[end : end + 1] == b":":
            continue
        if data[end : end + 1] in (b".", b":") and data[end + 1 : end + 2].isdigit():
            continue
        if end < len(data) and data[end] in WORD_BYTES:
            continue
        if _is_ipv6(data[start:end].decode(), private):
            yield start, end


def macs(data: bytes) -> Iterator[tuple[int, int]]:
    """Six pairs of hexadecimal digits, or three groups of four, that are not part of a longer row. Linear."""
    for match in MAC.finditer(data):
        start, end = match.span()
        sign, value = data[start + 2 : start + 3], data[start:end]
        sign = b"." if sign not in (b":", b"-") else sign
        if start and (data[start - 1] in WORD_BYTES or (data[start - 1 : start] == sign)):
            continue
        if end < len(data) and (
            data[end] in WORD_BYTES or (data[end : end + 1] == sign and data[end + 1 : end + 2].isalnum())
        ):
            continue
        if value.translate(None, b":-.").lower() in NO_CARD:
            continue
        if LETTERS.search(value) or MAC_CUE.search(before(data, start)) or sign == b":":
            yield start, end


def _is_public(address: str) -> bool:
    """Whether an address can be a person's: routed, and of one host."""
    known = ipaddress.IPv4Address(address)
    return known.is_global and not known.is_multicast


def _is_ipv4(data: bytes, start: int, end: int, beside: bool | None) -> bool:
    """Whether four numbers are an address. beside: whether those before them in a list were one; None: no list."""
    left, right = before(data, start)[-32:], data[end : end + 8]
    if left and (left[-1] in WORD_BYTES or left[-1] in b".-"):
        return False
    if right and (right[0] in WORD_BYTES or (right[0] in b".-" and len(right) > 1 and right[1] in WORD_BYTES)):
        return False
    if PORT.match(right):
        return True
    if VERSION_CUE.search(left):
        return False
    if ADDRESS_CUE.search(left):
        return True
    if beside is not None:
        return beside
    neighbour = NEIGHBOUR.search(left)
    if neighbour and not IPV4.fullmatch(neighbour.group(1)):
        return False
    octets = [int(octet) for octet in data[start:end].split(b".")]
    return octets[0] > LAST_ARC and any(octet >= SMALL_OCTET for octet in octets)


def _is_ipv6(candidate: str, private: bool) -> bool:
    try:
        address = ipaddress.IPv6Address(candidate)
    except ValueError:
        return False
    if private:
        return any(char.isdigit() for char in candidate)
    if "::" in candidate:  # also C++'s scope operator between words of hexadecimal letters: ask for allocated space
        return address.is_global and address in GLOBAL_UNICAST and len(candidate.replace(":", " ").split()) > 1
    return not ((address.is_private and not address.is_reserved) or address.is_link_local or address.is_multicast)
