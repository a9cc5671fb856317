"""The contract of readers finds readers that break it, each by the test that is there for that."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from refinery.testing import ReaderTests
from refinery.transforms.core.answers import Damaged, Skipped
from refinery.transforms.core.document import RawDocument
from refinery.transforms.read.byte_source import ByteSource, MemberStream
from refinery.transforms.read.lines import LINES, lines_of, read_lines
from refinery.transforms.read.reader import Reader, Records, Split
from refinery.transforms.read.task import LimitParams, ReadTask

EXAMPLE = b"".join(b"note: number %d %s\n" % (number, b"x" * number * 200) for number in range(1, 6))
COUNTER = itertools.count()


def notes(task: ReadTask, source: ByteSource, limits: LimitParams) -> Records:
    """A record is a line that begins with `note: `."""
    stream = MemberStream(source)
    for offset, line in lines_of(stream, limits.max_decompressed_bytes):
        if line.startswith(b"note: "):
            yield document(task, offset, line[6:])
        else:
            yield Damaged("BadNote", task.origin(offset), line, len(line))
    if stream.broken:
        yield Damaged(stream.broken, task.origin(stream.total), size=1)


def document(task: ReadTask, offset: int, content: bytes) -> RawDocument:
    return RawDocument(content, False, "", "", task.source, task.origin(offset), task.position(offset))


def changed(change: Callable[[ReadTask, RawDocument], RawDocument | Skipped | int]) -> Callable[..., Iterator[object]]:
    """The reader above, with something else for each document."""

    def read(task: ReadTask, source: ByteSource, limits: LimitParams) -> Iterator[object]:
        for record in notes(task, source, limits):
            yield change(task, record) if isinstance(record, RawDocument) else record

    return read


def by_lines(task: ReadTask, source: ByteSource, limits: LimitParams) -> Records:
    for line in read_lines(source, task, limits.max_decompressed_bytes):
        is_note = line.data is not None and line.data.startswith(b"note: ") and not line.error
        data = line.data or b""
        yield document(task, line.offset, data[6:]) if is_note else Damaged("BadNote", task.origin(line.offset), data)


def silent_at_the_end(task: ReadTask, source: ByteSource, limits: LimitParams) -> Records:
    return (record for record in notes(task, source, limits) if not isinstance(record, Damaged) or record.data)


def silent(task: ReadTask, source: ByteSource, limits: LimitParams) -> Records:
    return (record for record in notes(task, source, limits) if not isinstance(record, Damaged))


def raising(task: ReadTask, source: ByteSource, limits: LimitParams) -> Records:
    for record in notes(task, source, limits):
        if isinstance(record, Damaged) and record.data:
            raise IndexError("a library failed")
        yield record


def endless(task: ReadTask, source: ByteSource, limits: LimitParams) -> Records:
    yield from notes(task, source, limits)
    while task.size:
        yield Skipped("empty", task.origin(task.size), 0)


def numbered(task: ReadTask, source: ByteSource, limits: LimitParams) -> Records:
    for record in notes(task, source, limits):
        yield document(task, next(COUNTER), record.content) if isinstance(record, RawDocument) else record  # type: ignore[arg-type]


def narrowed_wrongly(task: ReadTask, source: ByteSource, offset: int) -> ReadTask:
    return ReadTask(task.path, task.format, task.source, 0, task.size, part=0, parts=2, cap=1)


def declared(read: Callable[..., Iterator[object]], **more: object) -> Reader:
    return Reader(name="notes", version=1, summary="", offset="", read=read, **more)  # type: ignore[arg-type]


GOOD, BY_LINES = declared(notes), declared(by_lines, split=LINES)
BROKEN: dict[str, tuple[Reader, str]] = {
    "random": (declared(changed(lambda task, doc: document(task, at(doc), b"%d" % next(COUNTER)))), "the_same_bytes"),
    "of the path": (declared(changed(lambda task, doc: document(task, at(doc), task.path.encode()))), "the_same_bytes"),
    "one origin": (declared(changed(lambda task, doc: document(task, 0, b"x"))), "examples_are_read"),
    "numbers": (declared(numbered), "is_found_at_its_origin"),
    "a wrong type": (declared(changed(lambda task, doc: 7)), "examples_are_read"),
    "a reason": (declared(changed(lambda task, doc: Skipped("no-note", doc.origin, 1))), "examples_are_read"),
    "parts": (declared(notes, split=LINES), "parts_give_what"),
    "a wrong part": (declared(by_lines, split=Split(LINES.count, narrowed_wrongly)), "is_found_at_its_origin"),
    "silent at the end": (declared(silent_at_the_end), "compressed_file_that_is_cut_off"),
    "silent": (declared(silent), "no_such_file"),
    "raising": (declared(raising), "no_such_file"),
    "endless": (declared(endless), "examples_are_read"),
}
for number, (reader, _) in enumerate(BROKEN.values()):  # a reader has to be a name of its module
    globals()[f"BROKEN_{number}"] = reader


def at(doc: RawDocument) -> int:
    return int(doc.origin.rpartition("@")[2])


class TestGood(ReaderTests):
    reader = GOOD

    def files(self) -> dict[str, bytes]:
        return {"a.notes": EXAMPLE}


class TestByLines(TestGood):
    reader = BY_LINES


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_reader_fails_the_test_that_is_there_for_it(name: str, tmp_path: Path) -> None:
    broken, part = BROKEN[name]
    made: ReaderTests = type("Broken", (TestGood,), {"reader": broken})()
    (test,) = [each for each in dir(ReaderTests) if each.startswith("test_") and part in each]
    with pytest.raises((AssertionError, TypeError, IndexError)):
        getattr(made, test)(tmp_path)


def test_examples_have_to_be_some(tmp_path: Path) -> None:
    few: ReaderTests = type("Few", (TestGood,), {"files": lambda self: {"a.notes": EXAMPLE[:20]}})()
    with pytest.raises(AssertionError, match=r"documents, 3 are needed|in an example"):
        few.test_examples_are_read(tmp_path)
    none: ReaderTests = type("None_", (TestGood,), {"files": lambda self: {}})()
    with pytest.raises(AssertionError, match="files: none given"):
        none.test_examples_are_read(tmp_path)
