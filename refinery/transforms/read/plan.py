"""What is to be read: the parameters of a source, and the planning that makes tasks of it, one per file or part."""

import os
from collections.abc import Sequence
from dataclasses import replace

from refinery.transforms.core.stage import Note
from refinery.transforms.read.find_files import find_files
from refinery.transforms.read.params import LimitParams, SourceParams
from refinery.transforms.read.registry import find_reader, format_of, is_own, refuse
from refinery.transforms.read.remote.files import Found
from refinery.transforms.read.task import ReadTask

__all__ = ["LimitParams", "ReadTask", "SourceParams", "plan_source", "plan_sources"]

SPLIT_BYTES = 64 << 20  # of a part, about


def plan_sources(
    sources: Sequence[SourceParams],
    split_bytes: int = SPLIT_BYTES,
    notes: Sequence[Note] = (),
    readers: Sequence[str] = (),
    labels: Sequence[str] = (),
    may_lack_text: bool = False,
) -> list[ReadTask]:
    """The tasks that read `sources`, in order of source, file and part. Runs where the job is launched.

    Files are cut into parts of about `split_bytes` bytes as their format allows (its `Reader.split`); those of a source
    with a cap are read whole. Lists the files (one request for 1,000 files of a pattern, of https:// one per file), and
    opens none but local archives above `split_bytes`, to look at their first record. notes: what the stages of the run
    note in meta. readers: the formats that the run's lane reads, beside readers of the user's own; all without any.
    labels: names of the fields that rows will get. may_lack_text: as of `ReadTask`.

    Raises ValueError, one line, if two sources have one name, a pattern matches nothing, or a file's format is unknown
    or none of `readers`.
    """
    names = [source.name for source in sources]
    if len(set(names)) < len(names):
        raise ValueError(f"sources: names {names} given, each name is allowed once")
    if not any(source.enabled for source in sources):
        raise ValueError(f"sources: {names} given, all of them off; at least one that is `enabled` is needed")
    tasks = [
        replace(task, labels=tuple(labels), may_lack_text=may_lack_text)
        for source in sources
        if source.enabled
        for task in plan_source(source, split_bytes, notes)
    ]
    foreign = next((task for task in tasks if readers and task.format not in readers and not is_own(task.format)), None)
    if foreign is not None:
        raise ValueError(
            f"source {foreign.source}: format: {foreign.path} is {foreign.format}, {', '.join(readers)} is allowed in "
            "this lane"
        )
    return tasks


def plan_source(source: SourceParams, split_bytes: int, notes: Sequence[Note] = ()) -> list[ReadTask]:
    """The tasks of one source, in order of file and part."""
    files = find_files(source)
    tasks = []
    for index, file in enumerate(files):
        share = None if source.cap is None else source.cap // len(files) + (index < source.cap % len(files))
        if share == 0:
            continue
        whole = whole_file(source, file, index, share, notes)
        parts = 1 if share is not None else count_parts(whole, split_bytes)
        tasks += [replace(whole, part=part, parts=parts) for part in range(parts)]
    return tasks


def changed_at(path: str) -> int:
    """When a local file was last written to, in nanoseconds; 0 for others, and for one that has gone."""
    if "://" in path:
        return 0
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def whole_file(
    source: SourceParams, file: Found, index: int = 0, cap: int | None = None, notes: Sequence[Note] = ()
) -> ReadTask:
    """The task that reads all of one file. index: its place in the source's listing."""
    path = file.path
    refuse(path, source.name)
    return ReadTask(
        path=path,
        format=format_of(path, source.name) if source.format == "auto" else source.format,
        source=source.name,
        file_index=index,
        size=file.size,
        cap=cap,
        sample=source.sample,
        seed=source.seed,
        content=source.content,
        keep_truncated=source.keep_truncated,
        text_field=source.text_field,
        url_field=source.url_field,
        date_field=source.date_field,
        id_field=source.id_field,
        version=file.version,
        unit=source.unit,
        dialect=source.dialect,
        options=source.plain().get("options", {}),  # as a task list has them, so tasks of two runs are compared
        meta_fields=source.meta_fields,
        fields=source.fields,
        own_meta=tuple(note.name for note in notes),
        carried_meta=tuple(note.name for note in notes if note.carried),
        changed=changed_at(path),
        crc32c=file.crc32c,
        payer=source.requester_pays,
    )


def count_parts(task: ReadTask, split_bytes: int) -> int:
    """Into how many parts the file of `task` is cut. Raises ValueError where a reader's own `Split` gives no number."""
    parts = find_reader(task.format).split.count(task, split_bytes)
    if not isinstance(parts, int) or parts < 1:
        raise ValueError(
            f"source {task.source}: format: {task.format} makes {parts!r} parts of {task.path}, 1 is least"
        )
    return parts
