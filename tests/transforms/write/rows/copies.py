"""Files of rows that stay, for the tests of this folder: an input written, copied, and read again."""

from dataclasses import replace
from pathlib import Path

from refinery.transforms.core.document import RawDocument
from refinery.transforms.read.byte_source import MemberStream, open_source
from refinery.transforms.read.sources import LimitParams, read_task
from refinery.transforms.read.task import ReadTask
from refinery.transforms.write.rows.copy_rows import copy_rows
from refinery.transforms.write.rows.rows import Label, Rows
from tests.transforms.read_fixtures import Outcome, task_for

LABELS = (Label("is_copy", False), Label("copy_of", ""), Label("times", 1), Label("share", 0.0))
GIVEN = (True, "café", -7, 2)
LIMITS = LimitParams()


def written(folder: Path, name: str, data: bytes, **fields: object) -> ReadTask:
    """The task of a file with these bytes."""
    path = folder / name
    path.write_bytes(data)
    form = name.removesuffix(".gz").removesuffix(".zst").removesuffix(".lz4").rpartition(".")[2]
    return task_for(path, form, **fields)


def copied(task: ReadTask, rows: Rows, limits: LimitParams = LIMITS) -> ReadTask:
    """The task of the copy."""
    out = Path(task.path).parent / "out" / Path(task.path).name
    out.unlink(missing_ok=True)
    copy_rows(task, out, rows, limits)
    return replace(task, path=str(out), size=out.stat().st_size, changed=0)


def stored(task: ReadTask) -> bytes:
    return Path(task.path).read_bytes()


def inflated(task: ReadTask) -> bytes:
    """The bytes of a file, decompressed."""
    with open_source(task.path) as source:
        stream = MemberStream(source)
        data = b"".join(iter(stream.read, b""))
        assert not stream.broken
    return data


def row_of(outcome: Outcome) -> int:
    return int(outcome.origin.rpartition("@")[2])


def rows_in(task: ReadTask) -> list[int]:
    """The numbers of all records."""
    return [row_of(each) for each in read_task(task)]


def texts_in(task: ReadTask) -> dict[int, str]:
    """Row -> text, of all documents."""
    return {row_of(each): str(each.content) for each in read_task(task) if isinstance(each, RawDocument)}
