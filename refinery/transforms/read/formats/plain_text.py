"""Text files: a document is a whole file, a paragraph or a line."""

from collections.abc import Iterator

from refinery.transforms.core.answers import NOT_SAMPLED, Damaged, Skipped
from refinery.transforms.core.document import RawDocument
from refinery.transforms.read.byte_source import ByteSource, MemberStream
from refinery.transforms.read.lines import HASHED, LINES, Line, read_lines
from refinery.transforms.read.reader import COMPRESSION_LIBRARIES, Reader, Split
from refinery.transforms.read.task import LimitParams, ReadTask

HTML_ENDINGS = (".html", ".htm")


def read_text(task: ReadTask, source: ByteSource, limits: LimitParams) -> Iterator[RawDocument | Skipped | Damaged]:
    """Every document of a text file, up to `task.cap`. Bytes are decoded by the stage `extract`, like those of a page.

    origin and position use the byte offset in the decompressed file. Memory: one document, up to
    limits.max_record_bytes.
    """
    if task.unit == "file":
        yield read_whole(task, source, limits)
        return
    taken = 0
    for piece in (
        read_lines(source, task, limits.max_decompressed_bytes)
        if task.unit == "line"
        else paragraphs(read_lines(source, task, limits.max_decompressed_bytes), limits.max_record_bytes)
    ):
        if taken == task.cap:
            return
        if piece.data is not None and not piece.error and not piece.data.strip():
            continue
        record = document_of_bytes(piece.data, piece.size, piece.offset, piece.error, task, limits)
        taken += isinstance(record, RawDocument)
        yield record


def read_whole(task: ReadTask, source: ByteSource, limits: LimitParams) -> RawDocument | Skipped | Damaged:
    """The file as one document."""
    stream = MemberStream(source)
    data, size = bytearray(), 0
    while piece := stream.read():
        size += len(piece)
        if size > limits.max_record_bytes:
            data.clear()
        else:
            data += piece
    kept = bytes(data) if size <= limits.max_record_bytes else None
    return document_of_bytes(kept, size, 0, stream.broken, task, limits)


def document_of_bytes(
    data: bytes | None, size: int, offset: int, error: str, task: ReadTask, limits: LimitParams
) -> RawDocument | Skipped | Damaged:
    """A document of undecoded bytes; None for bytes that were too many to hold."""
    origin = task.origin(offset)
    if error:
        return Damaged(error, origin, (data or b"")[:HASHED], size)
    if data is None or size > limits.max_record_bytes:
        return Skipped("too-large", origin, size)
    if not task.samples(origin):
        return Skipped(NOT_SAMPLED, origin, size)
    if not data or data.isspace():
        return Skipped("empty", origin, size)
    is_html = task.content == "html" or (task.content == "auto" and is_page(task.path))
    return RawDocument(data, is_html, "", "", task.source, origin, task.position(offset))


def is_page(path: str) -> bool:
    """Whether a file is HTML by its name."""
    name = path.lower()
    return any(name.endswith(ending + compression) for ending in HTML_ENDINGS for compression in ("", ".gz", ".zst"))


def paragraphs(lines: Iterator[Line], limit: int) -> Iterator[Line]:
    """Runs of lines without an empty line among them; one over the limit is only counted."""
    pieces: list[bytes] = []
    size, offset = 0, -1
    for line in lines:
        blank = line.data is not None and not line.data.strip() and not line.error
        apart = size and line.offset > offset + size  # `read_lines` leaves empty lines out
        if size and (blank or apart):
            yield Line(offset, b"\n".join(pieces) if pieces else None, size - 1)
            pieces, size = [], 0
        if blank:
            continue
        if not size:
            offset = line.offset
        size += line.size + 1
        if line.data is None or size > limit + 1:
            pieces = []
        elif pieces or size == line.size + 1:
            pieces.append(line.data)
        if line.error:
            yield Line(offset, b"\n".join(pieces) if pieces else None, size - 1, line.error)
            return
    if size:
        yield Line(offset, b"\n".join(pieces) if pieces else None, size - 1)


def text_parts(task: ReadTask, split_bytes: int) -> int:
    """As lines are cut, where lines are the documents."""
    return LINES.count(task, split_bytes) if task.unit == "line" else 1


def part_of_text(task: ReadTask, source: ByteSource, offset: int) -> ReadTask:
    """The part that holds a line, where lines are the documents."""
    return LINES.narrow(task, source, offset) if task.unit == "line" else task


TEXT = Reader(
    name="text",
    version=1,
    summary="the file, or with `unit: paragraph` or `unit: line` that much of it",
    offset="byte in the decompressed file",
    title="a text file",
    endings=(".txt", *HTML_ENDINGS),
    read=read_text,
    split=Split(text_parts, part_of_text),
    fields=("content", "unit"),
    libraries=COMPRESSION_LIBRARIES,
)
