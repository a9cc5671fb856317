"""What readers note of the files that they have read, and how a job's report holds it."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from refinery.transforms.core.input_sums.crc32c import join

KIND = "reads"  # of side-output records, and the key of reports


@dataclass(frozen=True, slots=True)
class FileRead:
    """A stretch of a file, read from its first byte to its last: bytes `begin` to `end`, and their CRC-32C."""

    source: str
    path: str
    begin: int
    end: int
    crc32c: str

    def is_whole(self, size: int) -> bool:
        """Whether it is all of a file of that size."""
        return (self.begin, self.end) == (0, size)

    def plain(self) -> dict[str, Any]:
        """As reports hold it."""
        return asdict(self)


class MergeReads:
    """Collects records of the kind "reads": one for each task, as there is one line for each in its task list."""

    def __init__(self) -> None:
        self.found: list[FileRead] = []

    def add_record(self, fields: Mapping[str, Any]) -> None:
        """Add what a reader noted."""
        self.found.append(FileRead(**{name: value for name, value in fields.items() if name != "kind"}))

    def result(self) -> list[dict[str, Any]]:
        """All of them, by source, path and place."""
        return [each.plain() for each in sorted(self.found, key=place_of)]


def place_of(read: FileRead) -> tuple[str, str, int, int, str]:
    """The order of reports."""
    return read.source, read.path, read.begin, read.end, read.crc32c


def sums_of(reads: Iterable[FileRead], size: int) -> list[str]:
    """The different CRC-32C of a whole file of `size` bytes that these reads of it give: one, unless it changed between
    them; none where no read and no row of stretches covers it."""
    listed = sorted(set(reads), key=place_of)
    found = {read.crc32c for read in listed if read.is_whole(size)}
    parts = [read for read in listed if not read.is_whole(size)]
    at, value = 0, "00000000"
    for part in parts:
        if part.begin != at:
            break
        at, value = part.end, join(value, part.crc32c, part.end - part.begin)
    if parts and at == size:
        found.add(value)
    return sorted(found)
