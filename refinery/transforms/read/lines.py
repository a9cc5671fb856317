"""Lines of a file, plain or compressed, whole or in parts.

A file is a row of blocks of 1 MiB (decompressed), and a line belongs to the block in which it starts. A part of an
uncompressed file owns neighbouring blocks and reads only those; part k of n of a compressed file inflates all of it
and owns every n-th block from the k-th on, which balances without an index. Parts together give what one reader gives.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from refinery.transforms.read.byte_source import ByteSource, MemberStream
from refinery.transforms.read.reader import COMPRESSIONS, Split
from refinery.transforms.read.remote.files import is_remote
from refinery.transforms.read.task import ReadTask

BLOCK = 1 << 20
HASHED = 1 << 16  # bytes of a damaged line that make its hash
BOM = b"\xef\xbb\xbf"
MAX_STRIDES = 8  # readers of one compressed file: each inflates all of it, which costs 1/10 to 1/20 of the funnel
COMPRESSED_RATIO = 4  # compressed text counts four times its size: 64 MB of text per part, 16 MB compressed


@dataclass(frozen=True, slots=True)
class Line:
    """A line without its newline, at byte `offset` of the decompressed file. `data` is None if it is over the limit.

    `error` is set if the file breaks off in it: nothing follows.
    """

    offset: int
    data: bytes | None
    size: int
    error: str = ""


def lines_of(stream: MemberStream, most: int) -> Iterator[tuple[int, bytes]]:
    """Every line of a decompressed file at its byte offset, with the line feed that ends it, empty ones too.

    One of more than `most` bytes comes in pieces. What stopped it before the end of the file is in `stream.broken`.
    Memory: a line and a block.
    """
    rest, offset = bytearray(), 0
    while piece := stream.read():
        rest += piece
        if b"\n" not in piece and len(rest) <= most:
            continue
        *whole, last = bytes(rest).split(b"\n")
        pieces = [line + b"\n" for line in whole] + ([last] if len(last) > most else [])
        rest = bytearray() if len(last) > most else bytearray(last)
        for line in pieces:
            for at in range(0, len(line), most):
                yield offset + at, line[at : at + most]
            offset += len(line)
    for at in range(0, len(rest), most):
        yield offset + at, bytes(rest[at : at + most])


def read_lines(source: ByteSource, task: ReadTask, limit: int) -> Iterator[Line]:
    """The lines that belong to the task's part, in order."""
    stream = MemberStream(source)
    if task.parts == 1:
        return split_lines(read_blocks(stream), 0, lambda block: True, limit)
    if stream.magic:
        return split_lines(read_blocks(stream), 0, lambda block: block % task.parts == task.part, limit)
    blocks = -(-task.size // BLOCK)
    first, stop = (blocks * part // task.parts for part in (task.part, task.part + 1))
    source.file.sum_from(first * BLOCK, min(stop * BLOCK, task.size))
    if task.part == task.parts - 1:
        stop = 1 << 63  # whatever was appended since the planning
    return split_range(source, first, stop, limit)


def split_range(source: ByteSource, first: int, stop: int, limit: int) -> Iterator[Line]:
    """The lines that start in blocks `first` to `stop` of an uncompressed file."""
    at_line_start = first == 0 or source.head(first * BLOCK - 1, 1) == b"\n"
    offsets = iter(range(first * BLOCK, 1 << 63, BLOCK))
    blocks = iter(lambda: source.head(next(offsets), BLOCK), b"")
    return split_lines(
        ((block, "") for block in blocks), first, lambda block: first <= block < stop, limit, at_line_start, stop
    )


def read_blocks(stream: MemberStream) -> Iterator[tuple[bytes, str]]:
    """The decompressed file in blocks of 1 MiB, each with the error at its end, "" if none. Stops after an error."""
    held: list[bytes | memoryview] = []  # joined once: a block is copied as seldom as can be
    size = 0
    while data := stream.read():
        held.append(data)
        size += len(data)
        while size >= BLOCK:
            size -= BLOCK
            last = memoryview(held.pop())
            yield b"".join([*held, last[: len(last) - size]]), ""
            held = [last[len(last) - size :]] if size else []
    if size or stream.broken:
        yield b"".join(held), stream.broken


def split_lines(
    blocks: Iterator[tuple[bytes, str]],
    first: int,
    owns: Callable[[int], bool],
    limit: int,
    at_line_start: bool = True,
    stop: int = 1 << 63,
) -> Iterator[Line]:
    """The lines that start in a block of which `owns(number)` is true.

    blocks: the file from block number `first` on. at_line_start: whether a line starts with the first byte. stop: the
    first block in which no line is owned any more; it is read only to end the last line.
    """
    open_line = None if at_line_start else _OpenLine(0, False)  # the line that the next block goes on with
    number = first - 1
    for number, (block, error) in enumerate(blocks, first):
        base = number * BLOCK
        at = 0
        if open_line:
            at = block.find(b"\n") + 1
            open_line.add(block[: at - 1] if at else block, limit)
            if at:
                if open_line.is_owned:
                    yield open_line.line()
                open_line = None
        if not open_line:
            if number >= stop:
                return
            is_owned = owns(number)
            if is_owned:
                while (end := block.find(b"\n", at)) >= 0:  # bytes.split looks at every byte, `find` at sixteen at once
                    if size := end - at:
                        yield Line(base + at, block[at:end] if size <= limit else None, size)
                    at = end + 1
            else:
                at = max(at, block.rfind(b"\n") + 1)
            if at < len(block) or error:
                open_line = _OpenLine(base + at, is_owned if at < BLOCK else owns(number + 1))
                open_line.add(block[at:], limit)
        if error:
            if open_line and open_line.is_owned:
                yield open_line.line(error)
            return
    if open_line and open_line.is_owned:
        yield open_line.line()


class _OpenLine:
    """A line that goes on beyond its block; over the limit only its length is kept."""

    def __init__(self, offset: int, is_owned: bool) -> None:
        self.offset = offset
        self.is_owned = is_owned
        self.size = 0
        self.pieces: list[bytes] = []

    def add(self, piece: bytes, limit: int) -> None:
        self.size += len(piece)
        if self.size > limit:
            self.pieces = []
        elif self.is_owned:
            self.pieces.append(piece)

    def line(self, error: str = "") -> Line:
        data = b"".join(self.pieces)
        return Line(self.offset, data if len(data) == self.size else None, self.size, error)


def line_parts(task: ReadTask, split_bytes: int) -> int:
    """Parts of about `split_bytes` bytes; of a compressed file at most 8, of a quarter of that."""
    if task.path.lower().endswith(COMPRESSIONS[1:]):
        # Every reader fetches all of it: of Cloud Storage, where runs are near their inputs, that costs less than one
        # reader's time.
        if is_remote(task.path) and not task.path.startswith("gs://"):
            return 1
        return min(MAX_STRIDES, max(1, -(-task.size * COMPRESSED_RATIO // split_bytes)))
    return max(1, -(-task.size // split_bytes))


def part_of_line(task: ReadTask, source: ByteSource, offset: int) -> ReadTask:
    """The MiB that holds the start of a line, of an uncompressed file."""
    blocks = -(-task.size // BLOCK)
    if blocks > 1 and offset < task.size and not MemberStream(source).magic:
        return replace(task, part=offset // BLOCK, parts=blocks)
    return task


LINES = Split(line_parts, part_of_line)  # for readers whose records are lines of `read_lines`
