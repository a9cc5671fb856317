"""Lines of JSONL that stay, byte for byte: found by their offsets, without a look at what is in them.

Only a line that gets another text or labels is held and scanned (json_spans.py).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from refinery.transforms.read.byte_source import ByteSource, MemberStream
from refinery.transforms.read.lines import read_blocks, read_lines
from refinery.transforms.read.task import LimitParams, ReadTask
from refinery.transforms.write.rows.compressed import Write
from refinery.transforms.write.rows.json_spans import LabelKeys, with_text
from refinery.transforms.write.rows.rows import NO_ROW, Edit, Edits, Label, RowError, Rows, refuse_taken

NEWLINE = ord("\n")
Change = Callable[[int, bytes, Edit], bytes]


def copy_lines(
    task: ReadTask, source: ByteSource, stream: MemberStream, rows: Rows, limits: LimitParams, write: Write
) -> None:
    """The lines that stay, each with the line feed that ends it, as they are or as their edits say. Blank lines are not
    rows, so they go. A byte order mark belongs to its line. A line that has a label's name as a key gets that label
    under another name, as each line is a record of its own.

    Raises RowError for a row that does not begin a line, and for an edit that cannot be made, as of a line above
    limits.max_decompressed_bytes. Memory: two blocks, and an edited line; a line that is not edited may be any size.
    """

    keys = LabelKeys(rows.columns)

    def change(row: int, line: bytes, edit: Edit) -> bytes:
        try:
            if edit.text is not None:
                line = with_text(line, task.text_field, edit.text)
            if not edit.labels:
                return line
            columns, its_keys = rows.columns, keys
            while known := its_keys.known(line):
                columns = [each.named_apart() if each.name in known else each for each in columns]
                its_keys = LabelKeys(columns)
            return its_keys.added_to(line, edit.labels)
        except ValueError as error:
            raise RowError(task, row, str(error)) from None

    pick_lines(task, read_blocks(stream), rows.edits(task), change, limits.max_decompressed_bytes, write)


def pick_lines(
    task: ReadTask, blocks: Iterator[tuple[bytes, str]], edits: Edits, change: Change, most: int, write: Write
) -> None:
    """As `copy_lines`. Lines that follow each other and are not edited are written in one piece. most: bytes of an
    edited line."""
    base, before = 0, NEWLINE  # of the block, and the byte before it
    row, edit = next(edits, NO_ROW)
    is_open = False  # whether the line at `row` began in a block before
    held: list[memoryview] = []  # what was read of it, if it is edited
    for block, error in blocks:
        view, first, last = memoryview(block), 0, 0  # from first to last: stays, and is not written yet
        while row < base + len(block):
            begin = 0 if is_open else row - base
            if not is_open and (block[begin - 1] if begin else before) != NEWLINE:
                raise RowError(task, row, "no line begins there")
            end = block.find(b"\n", begin) + 1
            is_open, end = not end, end or len(block)
            if edit is None:
                if begin != last:
                    write(view[first:last])
                    first = begin
                last = end
            else:
                held.append(view[begin:end])
                if sum(map(len, held)) > most + 1:
                    raise RowError(task, row, f"more than {most:,} bytes, which is `limits.max_decompressed_bytes`")
            if is_open:
                break
            if edit is not None:
                write(view[first:last])
                first = last
                write(change(row, b"".join(held), edit))
                held = []
            row, edit = next(edits, NO_ROW)
        write(view[first:last])
        if row == NO_ROW[0]:
            return
        if error:
            raise RowError(task, row, f"the file breaks off in it, or before it ({error})")
        base, before = base + len(block), block[-1]
    if is_open:  # the last line has no line feed
        if edit is not None:
            write(change(row, b"".join(held), edit))
        row, edit = next(edits, NO_ROW)
    if row != NO_ROW[0]:
        raise RowError(task, row, "the file has no such row")


def check_lines(task: ReadTask, source: ByteSource, columns: Sequence[Label], limits: LimitParams) -> None:
    """Raise RowError for the first line that has a label's name as a key. Cost: a search through the file, and where
    something looks like such a key, another pass line by line."""
    keys = LabelKeys(columns)
    if not looks_known(read_blocks(MemberStream(source)), keys):
        return
    for line in read_lines(source, replace(task, part=0, parts=1), limits.max_decompressed_bytes):
        try:
            known = keys.known(line.data or b"")
        except ValueError:  # damage, which gets no labels
            continue
        refuse_taken(task, line.offset, columns, known)


def looks_known(blocks: Iterator[tuple[bytes, str]], keys: LabelKeys) -> bool:
    """Whether something in a file looks like the key of a label."""
    longest = max(map(len, keys.marks), default=0) + len(rb"\u0020")
    before = b""
    for block, _ in blocks:
        if keys.may_be_in(block) or keys.may_be_in(before + block[:longest]):
            return True
        before = block[-longest:]
    return False
