"""Reading sources: every record of every planned file, as a RawDocument or as a counted reason why it is none.

`plan_sources` and `write_tasks` run where the job is launched, `read_file` where the work is done; see docs/sources.md.
"""

from collections.abc import Iterator, Sequence

from refinery.transforms.core.answers import NOT_SAMPLED, Damaged, Skipped
from refinery.transforms.core.counters import LiveBytes
from refinery.transforms.core.document import RawDocument, content_bytes
from refinery.transforms.core.input_sums.crc32c import StretchSum
from refinery.transforms.core.input_sums.file_read import FileRead
from refinery.transforms.core.job.task_list import TaskList, read_task_list, write_task_list
from refinery.transforms.core.live import reading
from refinery.transforms.core.params import Params
from refinery.transforms.core.safe_text import printable
from refinery.transforms.core.stage import Reason, Stage
from refinery.transforms.extract.page_rights.page_notes import HEADER_NOTES
from refinery.transforms.read.byte_source import ByteSource, open_source
from refinery.transforms.read.own_records import records_of
from refinery.transforms.read.plan import LimitParams, ReadTask, SourceParams, changed_at, plan_sources
from refinery.transforms.read.reader import Records
from refinery.transforms.read.registry import find_reader, reader_libraries, reader_reasons

__all__ = [
    "READ",
    "LimitParams",
    "ReadTask",
    "SourceParams",
    "plan_sources",
    "read_task",
    "read_tasks",
    "write_tasks",
]

DEFAULT_LIMITS = LimitParams()
POISON_FILE, POISON_RECORD = "PoisonFile", "PoisonRecord"  # dead letters: worker processes died on them


class InputChanged(OSError):
    """A file is not the one that was planned, or was written to while it was read: some of its documents would be
    missing, or be those of two versions, without a trace."""


class NoReader(OSError):
    """The reader of a format is missing where a file of it is to be read. The file itself is not damaged."""


def read_task(task: ReadTask, limits: LimitParams = DEFAULT_LIMITS) -> Records:
    """Every record of a task, in the file's order, as a document, a reason to skip it, or damage.

    Pure except for reading the file; the same bytes give the same records. Raises InputChanged where the file has gone
    since it was planned, where its size is another one, or, of a local one, its time of change, then and when it has
    been read, or the CRC-32C of what was read is not the planned one; NoReader where its reader cannot be imported;
    OSError when the storage fails otherwise.
    """
    return (record for record in read_file(task, limits) if not isinstance(record, FileRead))


def read_file(
    task: ReadTask, limits: LimitParams = DEFAULT_LIMITS
) -> Iterator[RawDocument | Skipped | Damaged | FileRead]:
    """As `read_task`, and last the stretch of the file that was read from end to end, with its checksum: all of it, the
    blocks of a part of uncompressed lines, or nothing where a reader stops early, leaves bytes out or jumps (Parquet).
    """
    if task.poison:
        yield Damaged(POISON_FILE, task.origin(0), size=task.share_bytes)
        return
    try:
        reader = find_reader(task.format)
    except ValueError as error:
        raise NoReader(str(error)) from error
    try:
        with (
            reading(task.path),
            open_source(task.place, task.size, task.version, limits.max_window_bytes, payer=task.payer) as source,
        ):
            changed = check_planned(task, source)
            share = LiveBytes(task.share_bytes)
            source.file.told = share.add
            source.file.sum = None if reader.in_pieces else StretchSum(0, task.size)
            records = records_of(reader, task, source, limits)
            yield from without_poison(records, task) if task.poison_records else records
            share.end()
            check_read(task, source, changed)
            summed = source.file.sum
            if summed is not None and (found := summed.result()):
                yield FileRead(task.source, task.path, summed.begin, summed.end, found)
    except FileNotFoundError as error:
        raise input_changed(task, "gone since the run was planned") from error


def without_poison(records: Records, task: ReadTask) -> Records:
    """The records, with a dead letter for each document on which worker processes died."""
    poison = frozenset(task.poison_records)
    for record in records:
        if isinstance(record, RawDocument) and printable(record.origin) in poison:
            data = content_bytes(record)
            yield Damaged(POISON_RECORD, record.origin, data, len(data))
        else:
            yield record


def check_planned(task: ReadTask, source: ByteSource) -> int:
    """When an open file was last written to, as `changed_at`. Raises InputChanged where it is not the planned one."""
    changed = changed_at(task.place)
    if (size := source.size()) != task.size:
        raise input_changed(task, f"{size} bytes found, {task.size} when the run was planned")
    if task.changed and changed != task.changed:
        raise input_changed(task, "written to since the run was planned")
    return changed


def check_read(task: ReadTask, source: ByteSource, changed: int) -> None:
    """Raise InputChanged where a file was written to since `check_planned`, or, if all of it was read, where its
    CRC-32C is not the planned one."""
    if changed_at(task.place) != changed:
        raise input_changed(task, "written to while it was read")
    summed = source.file.sum
    if summed is None or not task.crc32c or (summed.begin, summed.end) != (0, task.size):
        return
    if (found := summed.result()) not in ("", task.crc32c):
        raise input_changed(task, f"other bytes, CRC-32C {found}, {task.crc32c} when the run was planned")


def input_changed(task: ReadTask, what: str) -> InputChanged:
    """The error, with what to do."""
    return InputChanged(
        f"{printable(task.path)}: {what}; put it back as it was and run the same command, or choose another --output"
    )


def write_tasks(location: str, tasks: Sequence[ReadTask]) -> TaskList:
    """Publish the tasks in that work location. Large ones come first, so they spread over the workers."""
    by_size = sorted(tasks, key=lambda task: (-task.size // task.parts, task.path, task.part))
    return write_task_list(location, "clean", [task.to_json() for task in by_size])


def read_tasks(tasks: TaskList) -> list[ReadTask]:
    """What `write_tasks` published. Raises FormatError if the list is damaged."""
    return [ReadTask.from_json(line) for line in read_task_list(tasks)]


READ: Stage[Params] = Stage(
    name="read",
    version=6,
    summary="Read every record of every file of the sources.",
    uses=("sources", "limits", "rejects"),
    notes=HEADER_NOTES,
    libraries=reader_libraries(),
    reasons=(
        *reader_reasons(),
        Reason(
            "too-large",
            "over `limits.max_record_bytes`, or `limits.max_decompressed_bytes` during decompression",
            "raise the limit if the records are real texts",
        ),
        Reason(
            "meta-too-large",
            "address and meta fields together exceed `limits.max_meta_bytes`",
            "name fewer `meta_fields`, or raise the limit",
        ),
        Reason("empty", "no text, or only white space", "if there are many, check `text_field`"),
        Reason(NOT_SAMPLED, "left out by `sample`; never in `rejects/`"),
    ),
)
