"""Section files: all that some slices of a step send, in one file, a section for each exchange and slice that receives.

A section is a whole partition file. Behind the sections of an exchange stands its table, a ROW for each receiving
slice; the slices' record says where the tables are. So a receiver reads one row and one stretch of each sender's file,
and nothing of what others receive.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Any, BinaryIO

import google_crc32c

from refinery.loader.storage.full_disk import naming_scratch
from refinery.loader.storage.local_files import retried
from refinery.loader.storage.store import Store
from refinery.transforms.core.exchange.partition_file import Group, PartitionWriter, read_groups
from refinery.transforms.core.exchange.place import Place, sum_of
from refinery.transforms.core.exchange.sliced import Crossing
from refinery.transforms.core.exchange.tally import ExchangeError, Tally, difference, load_key

ROW = Struct("<QQQQQI")  # offset, bytes of the section, elements, their bytes, their digest, CRC-32C of all these
CHECKED = Struct("<QQQQQ")
COPIED_BYTES = 16 << 20  # at once


@dataclass(frozen=True)
class Sent:
    """What some slices sent into an exchange. step: that receives it. table: where its table is in the file."""

    step: int
    table: int
    tally: Tally

    def plain(self) -> dict[str, Any]:
        """As plain data, for a record."""
        return {"step": self.step, "table": self.table, **self.tally.fields()}


def write_sections(sent: Path, path: Path, crossings: dict[str, Crossing], of: int) -> dict[str, Sent]:
    """Write what lies in partition files below `sent`, a folder for each exchange, as one section file; what it has of
    each exchange. of: slices that receive. Raises DiskFull; memory: of one section's index, and 8 MiB."""
    found: dict[str, Sent] = {}
    with naming_scratch(str(path.parent), "what slices send"), path.open("xb") as file:
        for folder in sorted(sent.iterdir()) if sent.exists() else ():
            crossing, place = crossings[folder.name], Place(folder)
            entered = sum_of(tally.fields().values() for _, tally in place.entered().values())
            total, rows = Tally(), []
            for section in _sections(place, crossing.slice_of, of):
                row = [file.tell(), 0, 0, 0, 0]
                if section is not None:
                    row[1:] = section.path.stat().st_size, *section.tally.fields().values()
                    _move(section.path, file)
                    total.merge(section.tally)
                checked = CHECKED.pack(*row)
                rows.append(ROW.pack(*row, google_crc32c.value(checked)))
            if total != entered:
                raise ExchangeError(difference(str(folder), entered, total))
            found[folder.name] = Sent(crossing.step, file.tell(), total)
            file.write(b"".join(rows))
    return found


def _move(path: Path, target: BinaryIO) -> None:
    """Append a file to another, and remove it."""
    with retried(lambda: path.open("rb")) as source:
        while data := source.read(COPIED_BYTES):
            target.write(data)
    path.unlink()


def _sections(place: Place, slice_of: Callable[[Any], int], of: int) -> Iterator[PartitionWriter | None]:
    """A closed partition file for each receiving slice, in order; None for one that gets nothing."""
    groups = read_groups(place.files(set(), trust=False))
    mine: list[list[tuple[bytes, Group]]] = [[] for _ in range(of)]
    for key, group in sorted(groups.items(), key=lambda item: item[0]):
        mine[slice_of(load_key(key))].append((key, group))
    for each in mine:
        if not each:
            yield None
            continue
        writer = place.writer()
        for key, group in each:
            for value in group:
                writer.add(key, value)
        writer.close()
        yield writer


def fetch_section(store: Store, name: str, table: int, number: int, place: Place) -> None:
    """Copy the section of slice `number` of the section file `name` into a local place, and enter it there; nothing
    where it is empty. Raises ExchangeError for a file that was cut short or overwritten."""
    data = store.read(name, table + number * ROW.size, ROW.size)
    if len(data) != ROW.size:
        raise ExchangeError(f"{store.url(name)}: a section file was cut short")
    *row, crc32c = ROW.unpack(data)
    if google_crc32c.value(CHECKED.pack(*row)) != crc32c:
        raise ExchangeError(f"{store.url(name)}: the table of a section file was overwritten")
    offset, size, *tally = row
    if size:
        place.take_in(_pieces(store, name, offset, size), size, Tally(*tally))


def _pieces(store: Store, name: str, offset: int, size: int) -> Iterator[bytes]:
    for start in range(offset, offset + size, COPIED_BYTES):
        wanted = min(COPIED_BYTES, offset + size - start)
        data = store.read(name, start, wanted)
        if len(data) != wanted:
            raise ExchangeError(f"{store.url(name)}: a section file was cut short")
        yield data
