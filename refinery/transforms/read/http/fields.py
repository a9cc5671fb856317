"""Fields of HTTP and WARC headers: the lines of a block, lists, media types.

Lists: RFC 9110, section 5.3. Media types: "extract a MIME type" of the Fetch Standard, since a Content-Type that comes
twice is one list, too (RFC 9110, section 8.3, leaves open which member counts).
"""

import re
from collections.abc import Mapping

MAX_HEADER = 1 << 16

_CHARSET = re.compile(r"charset\s*=\s*[\"']?([a-z0-9._:+-]{1,40})")
_MEMBER = re.compile(r'(?:[^",]|"(?:[^"\\]|\\.)*"|")+')  # of a list: commas in quotes are part of it
_ESSENCE = re.compile(r"\s*([!#$%&'*+.^_`|~0-9a-z-]+/[!#$%&'*+.^_`|~0-9a-z-]+)(?=[\s;]|$)")
_MOST = 1 << 13  # characters of a value that are looked at


def parse_headers(block: bytes, joined: bool = False) -> Mapping[str, str]:
    """Fields of a header block behind its first line: lower-case name -> value. Of a repeated field the first one
    counts, as in WARC headers, or with `joined` all of them as one list, as in HTTP.

    Folded lines are joined; lines without a colon are passed over. Bytes that are not UTF-8 become U+FFFD.
    """
    headers: dict[str, str] = {}
    name, folded = "", False
    for line in block.decode("utf-8", "replace").split("\n")[1:]:
        if line[:1] in (" ", "\t") and name:
            if folded:
                headers[name] = f"{headers[name]} {line.strip()}".strip()
            continue
        name, colon, value = line.partition(":")
        name = name.strip().lower() if colon else ""
        folded = bool(name) and (joined or name not in headers)
        if folded:
            headers[name] = f"{headers[name]}, {value.strip()}" if name in headers else value.strip()
    return headers


def coding_names(value: str) -> list[str]:
    """The codings in a value of Content-Encoding or Transfer-Encoding, lower case, the outermost last.

    Weights and other parameters, and quotes, which neither field may have but servers send, are left out.

    >>> coding_names('GZIP;q=1.0, "br",, identity')
    ['gzip', 'br', 'identity']
    """
    bare = (member.partition(";")[0].replace('"', " ").replace("'", " ") for member in value[:_MOST].split(","))
    return [name.lower() for member in bare for name in member.split()]


def content_type(value: str) -> tuple[str, str]:
    """(type/subtype, charset) of a Content-Type value, lower case; "" for what it does not say, also of a type that is
    none ('html', '"text/html"'). Of a list the last valid type counts, with the charset of an equal one before it.

    >>> content_type("text/html; charset=Big5, text/html"), content_type("html")
    (('text/html', 'big5'), ('', ''))
    """
    value = value[:_MOST].lower()
    if "," not in value:
        found = _ESSENCE.match(value)
        return found[1] if found and found[1] != "*/*" else "", charset_of(value)
    essence = charset = ""
    for member in _MEMBER.findall(value):
        found = _ESSENCE.match(member)
        if found is None or found[1] == "*/*":
            continue
        own = charset_of(member)
        charset = own or (charset if found[1] == essence else "")
        essence = found[1]
    return essence, charset or ("" if essence else charset_of(value))


def media_type(value: str) -> str:
    """Type and subtype of a Content-Type value: 'Text/HTML; charset=x' -> 'text/html'; "" for none."""
    return content_type(value)[0]


def charset_of(value: str) -> str:
    """The charset of a Content-Type value, lower case, "" if there is none."""
    found = _CHARSET.search(value[:1024].lower())
    return found[1] if found else ""
