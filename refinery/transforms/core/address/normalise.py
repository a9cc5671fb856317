"""Addresses that mean the same page, in one spelling: what `url_dup` compares.

Equal are: http and https, spellings of a host (host.py), default ports, any user, percent-encodings of one byte
(RFC 3986, section 6.2.2), dot segments, slashes at the end, orders of the parameters, and addresses that differ in what
follows the visitor alone: a fragment, a session, the campaign that the link was in. Not equal are www.example.com and
example.com, upper and lower case in a path, index.html and its folder: two pages on some sites.
"""

import hashlib
import ipaddress
import re

from refinery.transforms.core.address.host import MAX_HOST, host_name

ADDRESS_SCHEME = "address/1"  # this recipe, in fingerprints: any change of an answer changes the name
ADDRESS_BYTES = 16
MAX_ADDRESS = 8192  # characters; longer ones stay as they are: not compared

WEB = re.compile(r"https?:[/\\]{2,}", re.IGNORECASE)
PORT = re.compile(r":0*([0-9]{1,5})?")
HOST = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")
DEFAULT_PORTS = (None, "80", "443")
IGNORED = str.maketrans("", "", "\t\n\r")  # anywhere in an address (WHATWG URL, section 4.4)
UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")  # RFC 3986, section 2.3
ENCODED = re.compile(r"%[0-9A-Fa-f]{2}|[^A-Za-z0-9\-._~:/?\[\]@!$&'()*+,;=]")

# fmt: off
# Parameters that say which link was followed, and by whom, never which page this is. Google Analytics (custom
# campaigns) and Google Ads; Matomo (campaign tracking); the query stripping lists of Firefox (since 102) and Brave.
TRACKING = frozenset((
    "utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content", "utm_id", "utm_source_platform",
    "utm_creative_format", "utm_marketing_tactic", "utm_name", "utm_reader", "utm_brand", "utm_social",
    "utm_social-type", "utm_cid", "utm_pubreferrer", "utm_swu", "utm_viz_id",
    "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "_gl", "_ga",
    "pk_campaign", "pk_kwd", "pk_source", "pk_medium", "pk_content", "pk_cid",
    "mtm_campaign", "mtm_keyword", "mtm_source", "mtm_medium", "mtm_content", "mtm_cid", "mtm_group", "mtm_placement",
    "fbclid", "msclkid", "yclid", "ymclid", "ysclid", "twclid", "ttclid", "igshid", "li_fat_id", "mc_cid", "mc_eid",
    "mkt_tok", "oly_anon_id", "oly_enc_id", "vero_conv", "vero_id", "wickedid", "_hsenc", "_hsmi", "__hsfp", "__hssc",
    "__hstc", "hsctatracking", "rb_clickid", "s_cid", "ml_subscriber", "ml_subscriber_hash", "_openstat", "__s",
    "irclickid", "srsltid", "epik", "unicorn_click_id", "guce_referrer", "guce_referrer_sig", "cx_click",
    "cx_recsorder", "cx_recswidget", "__twitter_impression",
))
# fmt: on

# Sessions, as the Internet Archive's canonicalisation strips them (IAURLCanonicalizer of its wayback machine).
PATH_SESSION = re.compile(r";(?:jsessionid|phpsessid)=[^;/]*", re.IGNORECASE)
ASP_SESSION = re.compile(r"/\((?:[A-Za-z]\([0-9A-Za-z]{24}\))+\)(?=/|$)")
SESSION = re.compile(
    r"(?:jsessionid|phpsessid|sid)=[0-9a-z]{32}|(?:jsessionid|phpsessid)=.*|aspsessionid[a-z]{8}=[a-z]{24}"
    r"|cf(?:id|token)=[0-9a-z-]+",
    re.IGNORECASE,
)


def normalise_address(url: str) -> str:
    """The one spelling of a web address; "" for what is none (another scheme, no host, over MAX_ADDRESS). Never raises.

    Idempotent. Cost: linear, about 10 microseconds.

    >>> normalise_address("HTTP://user@Example.COM:80/a/./b/?utm_source=x&q=%7e1&p=2#top")
    'https://example.com/a/b?p=2&q=~1'
    """
    if len(url) > MAX_ADDRESS:
        return ""
    url = url.strip("".join(map(chr, range(33)))).translate(IGNORED)
    web = WEB.match(url)
    if web is None:
        return ""
    rest, _, fragment = url[web.end() :].partition("#")
    rest, _, query = rest.partition("?")
    authority, slash, path = rest.replace("\\", "/").partition("/")
    host = _host(authority.rpartition("@")[2])
    if not host:
        return ""
    query = _query(query)
    shown = f"https://{host}{_path(slash + path)}{'?' if query else ''}{query}"
    names_page = fragment.startswith(("!", "/"))  # one that a script shows
    return f"{shown}#{encode_octets(fragment)}" if names_page else shown


def address_hash(url: str) -> bytes:
    """ADDRESS_BYTES of blake2b of the normalised address; zeros where there is none."""
    normal = normalise_address(url)
    return hashlib.blake2b(normal.encode(), digest_size=ADDRESS_BYTES).digest() if normal else bytes(ADDRESS_BYTES)


def _host(authority: str) -> str:
    """Host and port; "" where either is none."""
    if authority.startswith("["):
        name, closed, port = authority[1:].partition("]")
        try:
            name = f"[{ipaddress.IPv6Address(name.partition('%')[0]).compressed}]"
        except ValueError:
            return ""
        if not closed:
            return ""
    else:
        name, colon, port = authority.partition(":")
        name, port = host_name(name) if len(name) < MAX_HOST else "", colon + port
        if not HOST.fullmatch(name):
            return ""
    number = PORT.fullmatch(port or ":")
    if number is None:
        return ""
    return name if number[1] in DEFAULT_PORTS else f"{name}:{number[1]}"


def _path(path: str) -> str:
    """Without sessions, dot segments, and slashes at the end; "/" for an empty one."""
    path = ASP_SESSION.sub("", PATH_SESSION.sub("", encode_octets(path)))
    segments: list[str] = []
    for segment in path.split("/")[1:]:
        if segment == "..":
            del segments[-1:]
        elif segment != ".":
            segments.append(segment)
    while segments and not segments[-1]:
        segments.pop()
    return "/" + "/".join(segments)


def _query(query: str) -> str:
    """Parameters in order of their names, those of one name as they were; without tracking and sessions."""
    pieces = [piece for piece in encode_octets(query.replace("+", "%20")).split("&") if piece]
    kept = [p for p in pieces if p.partition("=")[0].lower() not in TRACKING and not SESSION.fullmatch(p)]
    return "&".join(sorted(kept, key=lambda piece: piece.partition("=")[0]))


def encode_octets(part: str) -> str:
    """Unreserved characters as they are, others that need it as %XX in upper case, "%" alone as %25."""
    return ENCODED.sub(_encoded, part)


def _encoded(match: re.Match[str]) -> str:
    found = match[0]
    if len(found) == 3:
        plain = chr(int(found[1:], 16))
        return plain if plain in UNRESERVED else found.upper()
    return "".join(f"%{byte:02X}" for byte in found.encode("utf-8", "surrogatepass"))
