"""What a file is, and why its first records hold no document, in words; for readers' own explanations, too."""

from collections.abc import Sequence

from refinery.transforms.core.safe_text import safe
from refinery.transforms.core.wording import closest
from refinery.transforms.read.byte_source import ByteSource, MemberStream
from refinery.transforms.read.lines import BOM
from refinery.transforms.read.registry import find_reader, readers
from refinery.transforms.read.task import ReadTask
from refinery.transforms.read.usual_fields import USUAL_TEXT_FIELDS

RECORDS = 100  # of a file that are looked at
HEAD = 1 << 20  # decompressed bytes of a file that are looked at to say what it is
SHOWN = 12  # fields that are listed
SUGGESTED_FIELDS = ("text", *USUAL_TEXT_FIELDS, "html")

NO_DOCUMENT = "\0"  # stands for what was seen, in a line about it
CARRIAGE_RETURNS = "its lines end in carriage returns alone, line feeds are needed: `tr '\\r' '\\n'` makes that of it"

# First bytes of files that no reader of ours reads -> what they are.
FOREIGN = {
    b"%PDF-": "a PDF document",
    b"PK\x03\x04": "a ZIP archive",
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"\xfd7zXZ": "an xz file",
    b"BZh": "a bzip2 file",
    b"SQLite format 3": "an SQLite data base",
    b"ARROW1": "an Arrow file",
    b"\x7fELF": "a program",
}


def explain_other(task: ReadTask, source: ByteSource) -> str:
    """What a file is by its first bytes, where that is not what its reader takes."""
    reader = find_reader(task.format)
    if reader.magic and first_bytes(source).startswith(reader.magic):
        return f"{task.path} is damaged, or was cut off: it begins like {reader.called}, and cannot be read"
    return f"{task.path} is not {reader.called}: it looks like {kind_of(source)}"


def about_text_field(task: ReadTask) -> str:
    """The beginning of a line about a field that is not there, or is not text."""
    return f"text_field: {task.text_field!r} given, which in {task.path}"


def nearest_field(task: ReadTask, names: Sequence[str] | dict[str, object]) -> str:
    """ "; did you mean …?", or nothing."""
    near = [found] if (found := closest(task.text_field, names)) else []
    near = near or [name for name in SUGGESTED_FIELDS if name in names]
    near = near or (list(names) if len(names) == 1 else [])
    return f"; did you mean {safe(near[0])}?" if near else ""


def listed(names: Sequence[str]) -> str:
    """The fields that there are, the first few of many."""
    if not names:
        return "none"
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(safe(name[:60]) for name in names[:SHOWN]) + more


def json_kind(name: str) -> str:
    """Python's name of a JSON type."""
    return {
        "list": "an array",
        "dict": "an object",
        "str": "a text",
        "bool": "true or false",
        "NoneType": "null",
    }.get(name, "a number")


def first_bytes(source: ByteSource) -> bytes:
    """About the first MiB of a file, decompressed as far as it can be, without a byte order mark."""
    stream, data = MemberStream(source), b""
    while len(data) < HEAD and (piece := stream.read()):
        data += piece
    return data[:HEAD].removeprefix(BOM)


def is_utf16(data: bytes) -> bool:
    """Whether these first bytes begin with UTF-16's mark, or every other one, as a rule, is zero."""
    zeros = [data[:512][start::2].count(0) for start in (0, 1)]
    return data[:2] in (b"\xff\xfe", b"\xfe\xff") or (not min(zeros) and max(zeros) * 3 > len(data[:512]))


def kind_by(data: bytes) -> str:
    """What begins with these bytes; "" for nothing that is known."""
    own = {start: reader.called for reader in readers().values() for start in reader.magic}
    return next((name for start, name in {**FOREIGN, **own}.items() if data.startswith(start)), "")


def kind_of(source: ByteSource) -> str:
    """What a file is by its first bytes."""
    data = first_bytes(source)
    if name := kind_by(source.head(0, 16)) or kind_by(data):
        return name
    if is_utf16(data):
        return "text in UTF-16, UTF-8 is needed: `iconv -f UTF-16 -t UTF-8` makes that of it"
    text = data.lstrip()[:512]
    if not text:
        return "a damaged or empty compressed file"
    if text[:1] in (b"{", b"["):
        return "JSON"
    if text[:1] == b"<":
        return "HTML or XML"
    sample = data[:4096]
    printable = sum(byte >= 32 or byte in b"\t\r\n" for byte in sample) / len(sample)
    return "plain text" if b"\0" not in sample and printable > 0.95 else "binary data"
