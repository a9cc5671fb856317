"""What a page's own bytes say of its encoding: the HTML Standard's prescan, and the XML declaration.

HTML Standard 13.2.3.2, "prescan a byte stream to determine its encoding" with "get an attribute", and "extracting a
character encoding from a meta element" (2.4): comments are passed over, a meta element counts by its charset attribute
or by content where http-equiv is content-type, unknown labels are passed over, and so is the rest of a tag that the
bytes end in. Two things differ: the first 16 kB are looked at, not 1,024 bytes, since real pages have scripts before
their meta element; and all that is declared is listed, not only the first, for a reader that checks it against the
bytes.
"""

import re

from refinery.transforms.extract.charsets.labels import UTF_16, python_codec

PRESCAN_BYTES = 1 << 14
_TAG = re.compile(rb"<(?:(!--)|(/?[A-Za-z])|[!/?])")
_META = re.compile(rb"<meta[\t\n\x0c\r /]", re.IGNORECASE)
_NAME_END = re.compile(rb"[\t\n\x0c\r >]")
# One attribute, after white space and slashes: its name, and its value in one of three forms.
_ATTRIBUTE = re.compile(
    rb"[\t\n\x0c\r /]*"
    rb"(?:(>)|([^\t\n\x0c\r />][^\t\n\x0c\r />=]*)"
    rb"(?:[\t\n\x0c\r ]*=[\t\n\x0c\r ]*"
    rb"(?:\"([^\"]*)\"|'([^']*)'|(?=[\"'])()|([^\t\n\x0c\r >\"'][^\t\n\x0c\r >]*)|(?=>)))?)"
)
_CHARSET = re.compile(
    r"charset[\t\n\x0c\r ]*=[\t\n\x0c\r ]*(?:\"([^\"]*)\"|'([^']*)'|([^\t\n\x0c\r ;\"'][^\t\n\x0c\r ;]*))"
)
_QUOTED = re.compile("[\"';]")
_XML = re.compile(rb"\s*<\?xml[^>]*?encoding[\x00-\x20]*=[\x00-\x20]*(?:\"([^\">]*)\"|'([^'>]*)')")


def declared_in(data: bytes) -> list[str]:
    """Encodings that a page declares, in the order of the standard: meta elements, then the XML declaration; none
    twice. Only names that are known. Linear in 16 kB."""
    head = data[:PRESCAN_BYTES]
    found = [_name(label) for label in (*_meta_labels(head), *_xml_label(head))]
    return list(dict.fromkeys(name for name in found if name))


def _name(label: str) -> str:
    # A quotation mark belongs to a label here, which makes it unknown; what can be read as ASCII cannot be in UTF-16.
    name = "" if _QUOTED.search(label) else python_codec(label)
    return "utf-8" if name in UTF_16 else name


def _xml_label(head: bytes) -> list[str]:
    found = _XML.match(head)
    return [(found[1] or found[2] or b"").decode("ascii", "replace")] if found else []


def _meta_labels(head: bytes) -> list[str]:
    labels: list[str] = []
    at = 0
    while tag := _TAG.search(head, at):
        start = tag.start()
        if tag[1]:  # "<!-->" is a whole comment
            end = head.find(b"-->", start + 2)
            if end < 0:
                break
            at = end + 3
        elif tag[2]:
            meta = _META.match(head, start)
            name = _NAME_END.search(head, start)
            if not name:
                break
            attributes, at = _attributes(head, meta.end() - 1 if meta else name.start())
            if at < 0:
                break
            if meta and (label := _of_meta(attributes)):
                labels.append(label)
        else:
            end = head.find(b">", start)
            if end < 0:
                break
            at = end + 1
    return labels


def _attributes(head: bytes, at: int) -> tuple[dict[bytes, bytes], int]:
    """A tag's attributes, the first of each name, in lower case; and where the tag ends, or -1: the bytes end in it."""
    attributes: dict[bytes, bytes] = {}
    while found := _ATTRIBUTE.match(head, at):
        if found[1]:
            return attributes, found.end()
        at = found.end()
        if at >= len(head) or found[5] is not None:  # cut, or a quotation mark that nothing closes
            break
        value = found[3] if found[3] is not None else found[4] if found[4] is not None else found[6] or b""
        attributes.setdefault(found[2].lower(), value.lower())
    return attributes, -1


def _of_meta(attributes: dict[bytes, bytes]) -> str:
    """The label of a meta element, or "": of its charset, or of its content where that is the type of the page."""
    if b"charset" in attributes:
        return attributes[b"charset"].decode("ascii", "replace")
    if attributes.get(b"http-equiv") == b"content-type":
        found = _CHARSET.search(attributes.get(b"content", b"").decode("ascii", "replace"))
        return (found[1] or found[2] or found[3] or "") if found else ""
    return ""
