"""The host of an address, in one spelling: for block lists, and for addresses that mean the same page."""

import ipaddress
import re
from urllib.parse import unquote

import idna

from refinery.transforms.core.address.page_address import page_address

SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
HOSTLIKE = re.compile(r"[^\s/?#@:]+\.[^\s/?#@:]+(?::\d+)?(?:[/?#]|$)")
_PORT = re.compile(r":0*([0-9]{1,5})$")
MAX_HOST = 253  # characters of a DNS name (RFC 1035)


def host_of(url: str) -> str:
    """The host of an address as block lists spell it ("" when it has none): lower case, no port, no user, no trailing
    dot, percent-decoded, international names in punycode, IPv6 without brackets. Of a copy of a page the page's host
    (page_address.py). Never raises.

    >>> host_of("HTTPS://user:pw@WWW.Exämple.COM.:8080/path?q#f")
    'www.xn--exmple-cua.com'
    """
    return _host_in(_authority(url))


def site_of(url: str) -> str:
    """`host_of`, and the port unless it is the usual one: what files such as robots.txt are about (RFC 9309, section
    2.3), of http and https alike. "" when there is no host.

    >>> site_of("http://Example.com:80/a"), site_of("https://example.com:8080/")
    ('example.com', 'example.com:8080')
    """
    authority = _authority(url)
    host, port = _host_in(authority), _PORT.search(authority)
    return f"{host}:{port[1]}" if host and port and port[1] not in ("80", "443") else host


def _authority(url: str) -> str:
    """Host and port as they stand in an address, without who logs in; "" where there is no host."""
    url = page_address(url).strip("\0\t\n\v\f\r ").replace("\\", "/")
    scheme = SCHEME.match(url)
    rest = url[scheme.end() :] if scheme else url
    if rest.startswith("//"):
        rest = rest.lstrip("/")
    elif HOSTLIKE.match(url):  # "example.com/path", "example.com:80"
        rest = url
    else:
        return ""
    return re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")[2]


def _host_in(authority: str) -> str:
    if authority.startswith("["):
        return authority[1:].partition("]")[0].lower()
    return host_name(authority.partition(":")[0])


def host_name(host: str) -> str:
    """A host without port in the spelling of `host_of`."""
    host = unquote(host).strip().rstrip(".").lower()
    if not host.isascii() and len(host) <= MAX_HOST:
        try:
            host = idna.encode(host, uts46=True).decode()
        except (idna.IDNAError, UnicodeError):
            host = host.encode("utf-8", "replace").decode()  # not a name that DNS could know: compared as it is
    return host[-MAX_HOST:]


def is_address(host: str) -> bool:
    """Whether `host` is an IP address, which has no domains above it."""
    if not (host[-1:].isdigit() or ":" in host):
        return False
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
