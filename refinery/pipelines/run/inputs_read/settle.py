"""Whether the inputs were the same files throughout phase 1: what readers noted, beside what the planning knew."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from refinery.pipelines.run.inputs_read.published import known_crc32c
from refinery.transforms.core.input_sums.file_read import KIND as READS
from refinery.transforms.core.input_sums.file_read import FileRead, sums_of
from refinery.transforms.core.safe_text import printable
from refinery.transforms.read.plan import ReadTask
from refinery.transforms.read.sources import InputChanged


def with_sums(tasks: Sequence[ReadTask], inputs: Iterable[Mapping[str, Any]]) -> list[ReadTask]:
    """The tasks with the checksums of their files that are known before anything is read: readers then compare."""
    known = {(entry["source"], entry["path"]): known_crc32c(entry) for entry in inputs}
    return [replace(task, crc32c=known[task.source, task.path]) for task in tasks]


def settle_inputs(
    inputs: Iterable[Mapping[str, Any]], reports: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]] | None:
    """The entries of inputs.json; None if a wave's report is of a version that did not note what it read.

    Raises InputChanged, which names the file, where readers of one file saw different bytes, or its parts together are
    not the file that was planned. Memory: an entry for each task.
    """
    if any(READS not in report for report in reports):
        return None
    reads: defaultdict[tuple[str, str], list[FileRead]] = defaultdict(list)
    for report in reports:
        for fields in report[READS]:
            reads[fields["source"], fields["path"]].append(FileRead(**fields))
    settled = []
    for entry in inputs:
        sums, known = sums_of(reads[entry["source"], entry["path"]], entry["size"]), known_crc32c(entry)
        different = sorted({*sums, *([known] if known and sums else [])})
        if len(different) > 1:
            raise InputChanged(
                f"{printable(entry['path'])}: changed while the run read it: CRC-32C {' and '.join(different)}. "
                "Finished waves contain what was read; choose another --output"
            )
        crc32c = sums[0] if sums else ""
        settled.append({"source": entry["source"], "path": entry["path"], "size": entry["size"], "crc32c": crc32c})
    return settled
