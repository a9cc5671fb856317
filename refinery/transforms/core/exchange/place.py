"""The folder of one exchange on disk: partition files, the ledger of what was written, and what has been read of it.

    ledger   a line for each partition file: name, size in bytes, what was sent in it
    taken    how many groups are taken
    settled  what each slot has read, and what was sent

Each of the three is read and written under a lock of its own, by the processes of one machine.
"""

import contextlib
import os
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

import orjson

from refinery.loader.storage.full_disk import naming_scratch
from refinery.loader.storage.local_files import retried
from refinery.loader.storage.locks import holding
from refinery.transforms.core.exchange.partition_file import PartitionWriter
from refinery.transforms.core.exchange.tally import ExchangeError, Tally, difference

COUNTER_BYTES = 8
LEDGER, TAKEN, SETTLED = "ledger", "taken", "settled"
SUFFIX = ".partition"
REMOVED = "temporary files were removed while the command used them; run it again"


class Place:
    """The folder of one exchange: its partition files, its ledger, how many of its groups are taken, and what each slot
    has read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def is_begun(self) -> bool:
        """Whether anything was sent: a guarded exchange of nothing is reached by the tokens of others. Raises
        ExchangeError where the folder of all exchanges is gone."""
        if not self.folder.parent.is_dir():
            raise ExchangeError(f"{self.folder}: {REMOVED}")
        return self.folder.exists()

    def writer(self) -> PartitionWriter:
        """A new partition file."""
        with naming_scratch(str(self.folder), "partition files"):
            self.folder.mkdir(parents=True, exist_ok=True)
        return PartitionWriter(self.folder / f"{uuid.uuid4().hex}{SUFFIX}")

    def enter(self, writer: PartitionWriter) -> str:
        """Close a partition file and enter it in the ledger; its name."""
        writer.close()
        return self._enter(writer.path.name, writer.path.stat().st_size, writer.tally)

    def take_in(self, pieces: Iterable[bytes], size: int, tally: Tally) -> str:
        """Enter a partition file whose bytes come from elsewhere; its name."""
        path = self.folder / f"{uuid.uuid4().hex}{SUFFIX}"
        with naming_scratch(str(self.folder), "partition files"):
            self.folder.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:
                for piece in pieces:
                    file.write(piece)
        return self._enter(path.name, size, tally)

    def _enter(self, name: str, size: int, tally: Tally) -> str:
        line = orjson.dumps([name, size, *tally.fields().values()]) + b"\n"
        with naming_scratch(str(self.folder), LEDGER), self._locked(LEDGER) as file:
            os.lseek(file, 0, os.SEEK_END)
            if os.write(file, line) != len(line):
                raise ExchangeError(f"{self.folder}/{LEDGER}: a line could not be written")
        return name

    def entered(self) -> dict[str, tuple[int, Tally]]:
        """The ledger: name of a file -> its size in bytes, and what was sent in it. Raises ExchangeError where it is
        damaged or has a file twice."""
        found: dict[str, tuple[int, Tally]] = {}
        with self._locked(LEDGER) as file:
            data = os.pread(file, os.fstat(file).st_size, 0)
        for line in data.splitlines():
            try:
                name, size, *fields = orjson.loads(line)
                tally = Tally(*fields)
            except (TypeError, ValueError) as error:
                raise ExchangeError(f"{self.folder}/{LEDGER}: a line was cut short or overwritten") from error
            if name in found:
                raise ExchangeError(f"{self.folder}/{LEDGER}: {name} was entered twice")
            found[name] = size, tally
        return found

    def files(self, names: set[str], trust: bool) -> list[Path]:
        """The partition files of the exchange, all of them whole. names: those that came through. trust: they alone
        count, since bundles are replayed.

        Raises ExchangeError for a file that is gone, has another size or that nobody entered.
        """
        entered = self.entered()
        there = {path.name for path in self.folder.glob(f"*{SUFFIX}")}
        if unknown := sorted((names | there) - set(entered)):
            raise ExchangeError(f"{self.folder}/{unknown[0]}: a partition file that the ledger does not have")
        found = [self.folder / name for name in sorted(names if trust else entered)]
        for path in found:
            try:
                size = path.stat().st_size
            except OSError as error:
                raise ExchangeError(f"{path}: {error.strerror}; a partition file is gone") from error
            if size != entered[path.name][0]:
                raise ExchangeError(f"{path}: {size:,} bytes found, {entered[path.name][0]:,} were written")
        return found

    def take(self) -> int:
        """The number of the next group that nobody has taken, from 0."""
        with self._locked(TAKEN) as file:
            number = int.from_bytes(os.pread(file, COUNTER_BYTES, 0), "little")
            os.pwrite(file, (number + 1).to_bytes(COUNTER_BYTES, "little"), 0)
        return number

    def settle(self, slot: int, read: Tally, names: set[str], trust: bool) -> None:
        """Say what a slot has read; once all that was sent is, the exchange is settled, and its files are removed
        unless bundles are replayed.

        Raises ExchangeError where more, or something else, was read than was sent.
        """
        entered = self.entered().items()
        sent = sum_of(tally.fields().values() for name, (_, tally) in entered if name in names or not trust)
        with self._locked(SETTLED) as file:
            said = orjson.loads(os.pread(file, os.fstat(file).st_size, 0) or b"[{}]")[0]
            said[str(slot)] = list(read.fields().values())
            arrived = sum_of(said.values())
            if arrived.elements > sent.elements or (arrived.elements == sent.elements and arrived != sent):
                raise ExchangeError(difference(str(self.folder), sent, arrived))
            data = orjson.dumps([said, list(sent.fields().values())])
            os.pwrite(file, data, 0)
            os.ftruncate(file, len(data))
        if arrived == sent and not trust:
            for path in self.folder.glob(f"*{SUFFIX}"):
                path.unlink(missing_ok=True)

    def sides(self) -> tuple[Tally, Tally] | None:
        """What was sent, and what of it has been read; None as long as no slot has read."""
        with self._locked(SETTLED) as file:
            data = os.pread(file, os.fstat(file).st_size, 0)
        if not data:
            return None
        said, sent = orjson.loads(data)
        return Tally(*sent), sum_of(said.values())

    @contextlib.contextmanager
    def _locked(self, name: str) -> Iterator[int]:
        """A file of the folder, which one process has at a time. Raises ExchangeError where the folder is gone."""
        try:
            file = retried(lambda: os.open(self.folder / name, os.O_RDWR | os.O_CREAT, 0o600))
        except FileNotFoundError as error:
            raise ExchangeError(f"{self.folder}/{name}: {REMOVED}") from error
        try:
            with holding(file, self.folder / name):
                yield file
        finally:
            os.close(file)


def sum_of(fields: Iterable[Iterable[int]]) -> Tally:
    """The sum of tallies, given as their fields."""
    total = Tally()
    for each in fields:
        total.merge(Tally(*each))
    return total
