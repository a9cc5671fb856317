"""What S3 says in XML: read without entities or document types, and never trusted to have the expected shape."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import unquote_plus
from xml.parsers import expat

NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
MOST_DEPTH = 20  # elements inside one another; S3's answers have five


class BadAnswer(ValueError):
    """Not XML, or not the XML that was expected."""


class Element:
    """An element: its name without a namespace, its text, and the elements in it."""

    __slots__ = ("children", "name", "pieces")

    def __init__(self, name: str) -> None:
        self.name, self.children, self.pieces = name, list[Element](), list[str]()

    def all(self, name: str) -> Iterator["Element"]:
        """The elements of a name right inside."""
        return (child for child in self.children if child.name == name)

    def text(self, name: str) -> str:
        """The text of the first element of a name right inside, "" if there is none."""
        return next(("".join(child.pieces) for child in self.all(name)), "")


def parse(body: bytes, root: str) -> Element:
    """The document in `body`, whose root element must have that name. Raises BadAnswer. Cost: some 20 MB/s."""
    top = Element("")
    open_elements = [top]
    parser = expat.ParserCreate()
    parser.buffer_text = True

    def begin(name: str, attributes: object) -> None:
        element = Element(name.rpartition(":")[2])
        open_elements[-1].children.append(element)
        open_elements.append(element)
        if len(open_elements) > MOST_DEPTH:
            raise BadAnswer(f"elements {MOST_DEPTH} deep")

    def refuse(*what: object) -> None:
        raise BadAnswer("a document type")

    parser.StartElementHandler = begin
    parser.EndElementHandler = lambda name: open_elements.pop()
    parser.CharacterDataHandler = lambda text: open_elements[-1].pieces.append(text)
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(body, True)
    except expat.ExpatError as error:
        raise BadAnswer(f"not XML ({error})") from None
    if top.children[0].name != root:
        raise BadAnswer(f"<{top.children[0].name:.40}>, <{root}> expected")
    return top.children[0]


def error_of(body: bytes) -> dict[str, str]:
    """Code, Message and the other elements of an <Error>; {} for anything else."""
    try:
        found = parse(body, "Error")
    except BadAnswer:
        return {}
    return {child.name: "".join(child.pieces) for child in found.children}


def escaped(text: str) -> str:
    """Text inside an element, such that every parser gives back the same: line ends, too."""
    replaced = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"[\r\n\t]", lambda found: f"&#{ord(found[0])};", replaced)


def can_hold(text: str) -> bool:
    """Whether XML 1.0 can say that text at all: not most control characters."""
    return not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", text)


class ListedObject(NamedTuple):
    """An object as listed."""

    key: str
    size: int
    etag: str


def read_page(body: bytes, prefix: str) -> tuple[list[ListedObject], str]:
    """One page of a listing (ListObjectsV2) of keys that begin so, and the token of the next page, "" for the last.

    Raises BadAnswer.
    """
    found = parse(body, "ListBucketResult")
    is_encoded = found.text("EncodingType") == "url"
    objects = []
    for entry in found.all("Contents"):
        key, size = entry.text("Key"), entry.text("Size")
        key = unquote_plus(key, errors="strict") if is_encoded else key
        if not key.startswith(prefix) or not re.fullmatch("[0-9]{1,19}", size):
            raise BadAnswer(f"an entry {key!r:.80} of {size!r:.20} bytes in a listing of {prefix!r:.80}")
        objects.append(ListedObject(key, int(size), entry.text("ETag")))
    token = found.text("NextContinuationToken")
    if found.text("IsTruncated") == "true" and not token:
        raise BadAnswer("a listing that is not complete, without a way to go on")
    return objects, token if found.text("IsTruncated") == "true" else ""


def deletion(keys: Iterable[str]) -> bytes:
    """The body of a request that removes objects (DeleteObjects); answered with those that are still there."""
    listed = "".join(f"<Object><Key>{escaped(key)}</Key></Object>" for key in keys)
    return f'<Delete xmlns="{NAMESPACE}"><Quiet>true</Quiet>{listed}</Delete>'.encode()


def read_deletion(body: bytes) -> dict[str, str]:
    """Key -> code of the error, of objects that were not removed. Raises BadAnswer."""
    return {error.text("Key"): error.text("Code") for error in parse(body, "DeleteResult").all("Error")}


def completion(parts: Iterable[tuple[str, str]]) -> bytes:
    """The body of a request that completes a multipart upload of parts, in order: of each its ETag and its CRC-32C in
    base64, "" if the service does not know it."""
    listed = "".join(
        f"<Part><PartNumber>{number}</PartNumber><ETag>{escaped(etag)}</ETag>"
        + (f"<ChecksumCRC32C>{crc32c}</ChecksumCRC32C>" if crc32c else "")
        + "</Part>"
        for number, (etag, crc32c) in enumerate(parts, 1)
    )
    return f'<CompleteMultipartUpload xmlns="{NAMESPACE}">{listed}</CompleteMultipartUpload>'.encode()
