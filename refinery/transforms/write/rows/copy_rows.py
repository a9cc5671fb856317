"""A file of an input's own format with the rows of it that stay: same name, same compression, same bytes.

A line of JSONL and a row of CSV or TSV that stay have the input's bytes, their line end with them; a new text replaces
that value alone, and labels come behind. Parquet keeps schema, metadata, types and row groups. Files that lose all
their rows are there with none, and can be decompressed.

Rows are those of the readers (transforms/read): the same decompression, the same lines, the same numbers. What they
report as damage or skip is a row like others: it stays if the caller says so.

    labels = [Label("is_copy", False), Label("copy_of", "")]  # the same for all files
    for task in tasks:
        check_labels(task, labels)  # before the first file is written
    places = output_paths((pattern, task.path) for task in tasks)
    rows = Rows(kept=[0, 812, 4090], texts=[(812, "another text")], columns=labels, labels=[(4090, (True, "a 17"))])
    copy_rows(task, folder / places[task.path], rows, limits)
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from refinery.loader.storage.full_disk import naming_full_disk
from refinery.transforms.core.input_sums.crc32c import StretchSum
from refinery.transforms.core.safe_text import safe
from refinery.transforms.read.byte_source import ByteSource, MemberStream, open_source
from refinery.transforms.read.registry import find_reader
from refinery.transforms.read.sources import DEFAULT_LIMITS, check_planned, check_read, input_changed
from refinery.transforms.read.task import LimitParams, ReadTask
from refinery.transforms.write.rows.compressed import compressed, compression_of
from refinery.transforms.write.rows.delimited_rows import check_header, copy_delimited
from refinery.transforms.write.rows.json_lines import check_lines, copy_lines
from refinery.transforms.write.rows.parquet_rows import check_schema, copy_parquet
from refinery.transforms.write.rows.rows import Label, Rows

BUFFER = 1 << 20
LINES = {"jsonl": copy_lines, "csv": copy_delimited, "tsv": copy_delimited}
CHECKS = {"jsonl": check_lines, "csv": check_header, "tsv": check_header, "parquet": check_schema}


def copy_rows(task: ReadTask, out: Path, rows: Rows, limits: LimitParams = DEFAULT_LIMITS) -> list[str]:
    """Write to `out`, which must not be there, what stays of the task's file; all of it, whatever `part` and `cap` are.

    limits: those that the file was read with. Returns what differs from the input beside rows, texts and labels, a line
    each, to be shown: Parquet's types that Arrow does not have. Memory does not grow with the file. Folders above `out`
    are made; on an error `out` is gone again. Cost: lines that are not edited, that of decompression and compression.

    Raises ValueError for a format whose rows cannot be copied; RowError, which names file and row, where rows, texts or
    labels do not fit the file; InputChanged where the file is not the one that was planned, by size and time of change,
    and by CRC-32C in formats of lines if the task has one; FileExistsError; DiskFull; OSError as the storage does.
    """
    refuse_uncopyable(task)
    out.parent.mkdir(parents=True, exist_ok=True)
    with naming_full_disk(out), open(out, "xb", buffering=BUFFER) as file:
        try:
            with opened_input(task, limits) as source:
                if rows.kept is None:
                    copy_whole(source, file)
                    lines: list[str] = []
                else:
                    lines = copy_chosen(task, source, rows, limits, file)
            file.close()  # some file systems say here that they were full
        except BaseException:
            out.unlink(missing_ok=True)
            raise
    return lines


def check_labels(task: ReadTask, columns: Sequence[Label], limits: LimitParams = DEFAULT_LIMITS) -> None:
    """Raise RowError where the file has a field of a label's name: for all files, before anything of one is written.
    Cost: of Parquet, CSV and TSV a look at the schema or header; of JSONL, whose lines may have different keys, a pass
    over the file."""
    refuse_uncopyable(task)
    with opened_input(task, limits) as source:
        CHECKS[task.format](task, source, columns, limits)


def refuse_uncopyable(task: ReadTask) -> None:
    """Raise ValueError, one line, for a format whose rows are nothing that could be left out or get a label."""
    if task.format not in CHECKS:
        called, can = find_reader(task.format).called, ", ".join(CHECKS)
        raise ValueError(
            f"{safe(task.path)}: {called} cannot be copied row by row, {can} can. Use the layout `shards`, or "
            "`refinery refine` and then `refinery export --format jsonl`"
        )


@contextmanager
def opened_input(task: ReadTask, limits: LimitParams) -> Iterator[ByteSource]:
    """The open file of a task. Raises InputChanged before, and afterwards, where it is not the one that was planned."""
    try:
        with open_source(task.place, task.size, task.version, limits.max_window_bytes, payer=task.payer) as source:
            changed = check_planned(task, source)
            if task.crc32c and task.format in LINES:
                source.file.sum = StretchSum(0, task.size)
            yield source
            if source.file.sum is not None:
                while source.file.read(BUFFER):  # what is behind the last row that stays
                    pass
            check_read(task, source, changed)
    except FileNotFoundError as error:
        raise input_changed(task, "gone since the run was planned") from error


def copy_whole(source: ByteSource, file: BinaryIO) -> None:
    """All bytes of a file, as they are stored."""
    at = 0
    while view := source.view(at):
        file.write(view)
        at += len(view)


def copy_chosen(task: ReadTask, source: ByteSource, rows: Rows, limits: LimitParams, file: BinaryIO) -> list[str]:
    """The rows of a file that stay, in its compression. Returns as `copy_rows`."""
    if task.format not in LINES:
        return copy_parquet(task, source, rows, limits, file)
    stream = MemberStream(source)
    with compressed(file, compression_of(source, stream)) as write:
        LINES[task.format](task, source, stream, rows, limits, write)
    return []
