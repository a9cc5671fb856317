"""Files that are edited under a run, with size and time of change put back: the checksum of what was read tells."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import google_crc32c
import pytest

from refinery.transforms.core.input_sums.file_read import FileRead, sums_of
from refinery.transforms.read.plan import LimitParams, ReadTask, SourceParams, plan_sources
from refinery.transforms.read.sources import InputChanged, read_file
from tests.sampling import one_commit_in_four
from tests.transforms.read_fixtures import COMPRESSORS, arc_record, http, page

ROWS = b"".join(b'{"text":"row %d %s"}\n' % (number, b"x" * (number % 90)) for number in range(40_000))
CONTENTS = {
    "jsonl": ROWS[: len(ROWS) // 8],
    "warc": b"".join(map(page, range(300))),
    "arc": b"".join(arc_record(http(), f"http://a.example/{number}") for number in range(300)),
    "csv": b"text,url\n" + b"a text,b\n" * 20_000,
    "txt": b"A line.\n\n" * 20_000,
}


def crc32c(path: Path) -> str:
    return f"{google_crc32c.value(path.read_bytes()):08x}"


def planned(path: Path, split_bytes: int = 64 << 20, **fields: object) -> list[ReadTask]:
    """The tasks of a file, with its checksum as a run has it."""
    source = SourceParams(name="s", paths=(str(path),), **fields)  # type: ignore[arg-type]
    return [replace(task, crc32c=crc32c(path)) for task in plan_sources([source], split_bytes)]


def reads(task: ReadTask) -> list[FileRead]:
    return [record for record in read_file(task) if isinstance(record, FileRead)]


def edit(path: Path, at: int) -> None:
    """Change a byte in place, and put the time of change back."""
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ 1]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@one_commit_in_four
@pytest.mark.parametrize("ending", list(COMPRESSORS))
@pytest.mark.parametrize("form", list(CONTENTS))
def test_every_reader_of_whole_files_sums_what_it_reads(tmp_path: Path, form: str, ending: str) -> None:
    """Also of damaged files, where it goes back; not where it stops early."""
    path = tmp_path / f"f.{form}{ending}"
    path.write_bytes(COMPRESSORS[ending](CONTENTS[form]))
    (task,) = planned(path, cap=10**9)
    assert reads(task) == [FileRead("s", str(path), 0, path.stat().st_size, crc32c(path))]
    edit(path, path.stat().st_size - 3)
    with pytest.raises(InputChanged, match=rf"f\.{form}.*: other bytes, CRC-32C {crc32c(path)}, {task.crc32c} when"):
        reads(task)


@one_commit_in_four
def test_an_edit_while_a_file_is_read(tmp_path: Path) -> None:
    """Behind what was read it is in the records, and seen; before it, the records are those of the planned file."""
    path = tmp_path / "f.jsonl"
    path.write_bytes(ROWS)
    (task,) = planned(path)
    records = read_file(task)
    next(records)
    edit(path, len(ROWS) - 5)
    with pytest.raises(InputChanged, match="other bytes"):
        list(records)
    edit(path, len(ROWS) - 5)
    records = read_file(task)
    next(records)
    edit(path, 12)
    (noted,) = [record for record in records if isinstance(record, FileRead)]
    assert noted.crc32c == task.crc32c != crc32c(path)


@one_commit_in_four
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_an_edit_between_two_readers_of_one_file(tmp_path: Path, ending: str) -> None:
    """Parts of plain lines note their stretches, strides of a compressed file all of it: both tell of the edit where
    the planning knew no checksum, too."""
    path = tmp_path / f"f.jsonl{ending}"
    path.write_bytes(COMPRESSORS[ending](ROWS))
    size, before = path.stat().st_size, crc32c(path)
    tasks = [replace(task, crc32c="") for task in planned(path, split_bytes=1 << 20 if not ending else size)]
    assert len(tasks) > 1
    assert sums_of([noted for task in tasks for noted in reads(task)], size) == [before]
    first = reads(tasks[0])
    edit(path, size - 5)
    later = [noted for task in tasks[1:] for noted in reads(task)]
    assert sums_of([*first, *later], size) == sorted({before, crc32c(path)} if ending else {crc32c(path)})


@pytest.mark.parametrize(
    ("form", "fields", "change"),
    [("jsonl", {"cap": 3}, lambda data: data), ("warc.gz", {}, lambda data: data[:200] + b"\0" * 90 + data[290:])],
)
def test_readers_that_stop_early_or_go_back(
    tmp_path: Path, form: str, fields: dict[str, object], change: Callable[[bytes], bytes]
) -> None:
    """A cap leaves the rest unread: no sum. Damage is searched again, and counts once."""
    path = tmp_path / f"f.{form}"
    data = ROWS if form == "jsonl" else b"".join(COMPRESSORS[".gz"](page(number)) for number in range(300))
    path.write_bytes(change(data))
    (task,) = planned(path, **fields)
    expected = [] if "cap" in fields else [FileRead("s", str(path), 0, len(data), crc32c(path))]
    assert [noted for noted in read_file(task, LimitParams()) if isinstance(noted, FileRead)] == expected
