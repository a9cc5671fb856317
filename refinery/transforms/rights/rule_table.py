"""What hosts said on which day, as one sorted file that is mapped into memory: 19 bytes for each time a host's file
changed, every different file once, and 4 bytes of checksum for every 4 KiB of that.

Layout, all little-endian: MAGIC; 8 bytes, the length of the header; the header, JSON: version, counts, rows, and
`sections`, name -> [offset, bytes]; its own CRC-32C, 8 hexadecimal digits; then from 4096 on the sections:

    keys      uint64[n]  `site_key` of kind and site, ascending; of one key by ascending day
    days      uint16[n]  first day since 1970-01-01 on which the file was as it is
    kinds     uint8[n]   number in KINDS
    says      uint64[n]  NOTHING, UNREACHABLE, LISTED or the key of a text
    buckets   uint64[2**bits + 1]  where the keys with these first bits begin
    texts     uint64[m]  keys of the short forms, ascending: hash64 of the text
    starts    uint64[m + 1]  where each begins in `bodies`
    bodies    the short forms, UTF-8
    sums      uint32[k]  CRC-32C of each BLOCK bytes from the first section's beginning to that of `sums`

A lookup touches a page of `buckets` and one or two of `keys`, whatever the size, and processes share the pages. Every
block that gives an answer is checked before it is believed, each time: a flipped bit anywhere ends the run, and never
lets a page through. Tables of version 1 have neither checksums of blocks nor of the header: they are checked as a whole
alone (`check_table`, and the digest of the file). Two hosts share a key with odds of 2^-64: of 10^9 hosts that are
looked up among 10^8 one in about 200 such tables.
"""

import contextlib
import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from refinery.transforms.core.document import FailClosed, hash64
from refinery.transforms.rights.rule_rows import KINDS, LISTED, NOTHING, UNREACHABLE

MAGIC = b"refinery opt-outs\n"
VERSION = 2
READABLE = (1, 2)
ALIGN = 4096
BLOCK = 4096
MAX_HEADER = 1 << 16
PIECE = 1 << 24
TYPES = {
    "keys": np.uint64,
    "days": np.uint16,
    "kinds": np.uint8,
    "says": np.uint64,
    "buckets": np.uint64,
    "texts": np.uint64,
    "starts": np.uint64,
    "bodies": np.uint8,
}
SUMS = "sums"
SUM = np.dtype("<u4")
T = TypeVar("T")


def site_key(kind: int, site: str) -> int:
    """The key of a host's file."""
    return hash64("opt-out", KINDS[kind], site)


class DamagedTable(FailClosed):
    """A table does not hold what was written: nobody knows who refused, so the run ends."""


def read_header(path: Path) -> dict[str, Any]:
    """The header of a table. Raises ValueError for a file that is none, or not whole."""
    refused = f"{path}: is not a complete table of opt-outs; `refinery opt-outs` makes one"
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise ValueError(refused)
        length = int.from_bytes(file.read(8), "little")
        data = file.read(length) if length <= MAX_HEADER else b""
        checksum = file.read(8)
    try:
        header = json.loads(data)
        version, size = header["version"], path.stat().st_size
        if version in READABLE:
            sums = {SUMS: SUM} if version > 1 else {}
            places = [header["sections"][name] for name in (*TYPES, *sums)]
            fits = all(0 <= at <= at + length <= size for at, length in places)
            if not fits or header["sections"]["buckets"][1] != 8 * ((1 << min(header["bits"], 40)) + 1):
                raise ValueError(refused)
            if sums and checksum != header_checksum(data):
                raise ValueError(refused)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(refused) from error
    if version not in READABLE:
        known = " and ".join(map(str, READABLE))
        raise ValueError(f"{path}: a table of version {str(version)[:20]}, {known} are read; make the table again")
    return dict(header)


def header_checksum(data: bytes) -> bytes:
    """What follows the header of a table."""
    return b"%08x" % google_crc32c.value(MAGIC + len(data).to_bytes(8, "little") + data)


def check_table(path: Path) -> None:
    """Read all of a table and compare it with its checksums, of version 1 with the digest in its header.

    Raises ValueError where they differ, or for what is not a table. Cost: some 800 MB/s, of version 1 400 MB/s.
    """
    table = RuleTable(path)
    if table.sums is not None:
        try:
            table.check_blocks()
        except DamagedTable as error:
            raise ValueError(str(error)) from error
        return
    digest = hashlib.sha256()
    for section in table.sections.values():
        for begin in range(0, len(section), PIECE):
            digest.update(section[begin : begin + PIECE].tobytes())
    if digest.hexdigest() != table.header["sha256"]:
        raise ValueError(damage(path))


def damage(path: Path) -> str:
    """The message about a table that is damaged."""
    return f"{path}: is damaged, its bytes do not have their checksum; copy it again, or make the table again"


class RuleTable:
    """A table, mapped. Memory of a process: pages that it touched, which are the system's to take back, and the
    checksums: 1 MB for each GB."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.header = read_header(path)
        places = self.header["sections"]
        self.sections: dict[str, NDArray[Any]] = {}
        for name, kind in TYPES.items():
            self.sections[name] = _mapped(path, np.dtype(kind), *places[name])
        self.shift = np.uint64(64 - self.header["bits"])
        self.sums: memoryview | None = None
        if SUMS in places:
            at, size = places[SUMS]
            with path.open("rb") as file:
                file.seek(at)
                data = file.read(size)
            self.first, end = self.header["blocks"]
            if google_crc32c.value(data) != self.header["sums_crc32c"]:
                raise ValueError(damage(path))
            self.sums = memoryview(data).cast("I")
            self.blocks = _mapped(path, np.dtype(np.uint8), self.first, end - self.first).data

    def read(self, name: str, begin: int, end: int) -> NDArray[Any]:
        """Values `begin` to `end` of a section, of blocks whose checksums are right. Raises DamagedTable.

        Cost: about a microsecond, and half a one for each block.
        """
        kind = np.dtype(TYPES[name])
        if self.sums is None:
            return self.sections[name][begin:end]
        if end <= begin:
            return np.empty(0, kind)
        at, size = self.header["sections"][name][0] - self.first, kind.itemsize
        first, last = (at + begin * size) // BLOCK, (at + end * size - 1) // BLOCK
        data = bytes(self.blocks[first * BLOCK : (last + 1) * BLOCK])  # what is checked is what is used
        self._check(data, first)
        return np.frombuffer(data, kind, end - begin, at + begin * size - first * BLOCK)

    def check_blocks(self) -> None:
        """Compare every block with its checksum. Raises DamagedTable."""
        if self.sums is not None:
            step = PIECE // BLOCK
            for first in range(0, len(self.sums), step):
                self._check(bytes(self.blocks[first * BLOCK : (first + step) * BLOCK]), first)

    def _check(self, data: bytes, first: int) -> None:
        sums = self.sums or ()
        if len(data) <= BLOCK:
            is_right = google_crc32c.value(data) == sums[first]
        else:
            blocks = (data[at : at + BLOCK] for at in range(0, len(data), BLOCK))
            is_right = all(google_crc32c.value(block) == sums[at] for at, block in enumerate(blocks, first))
        if not is_right:
            raise DamagedTable(damage(self.path))

    def find(self, kind: int, site: str, last_day: int) -> tuple[int, int] | None:
        """(day, says) of a host's file as it was on `last_day`; None where no row of it is that old. Raises
        DamagedTable. Cost: about 20 microseconds."""
        key = site_key(kind, site)
        bucket = key >> int(self.shift)
        low, high = (int(at) for at in self.read("buckets", bucket, bucket + 2))
        if not low <= high <= self.header["entries"]:
            raise DamagedTable(damage(self.path))
        keys = self.read("keys", low, high)
        first, last = (int(np.searchsorted(keys, np.uint64(key), side)) + low for side in ("left", "right"))
        if first == last:
            return None
        days = self.read("days", first, last)
        at = int(np.searchsorted(days, last_day, "right")) - 1
        return (int(days[at]), int(self.read("says", first + at, first + at + 1)[0])) if at >= 0 else None

    def text(self, says: int) -> str:
        """The short form of that key. Raises DamagedTable."""
        if says in (NOTHING, UNREACHABLE, LISTED):
            return ""
        texts = self.sections["texts"]
        at = int(np.searchsorted(texts, np.uint64(says)))  # damage leads elsewhere, where another key is found
        if at == len(texts) or int(self.read("texts", at, at + 1)[0]) != says:
            raise DamagedTable(damage(self.path))
        begin, end = (int(offset) for offset in self.read("starts", at, at + 2))
        try:
            return self.read("bodies", begin, end).tobytes().decode()
        except (ValueError, OverflowError) as error:  # version 1 has no checksums of blocks
            raise DamagedTable(damage(self.path)) from error


def _mapped(path: Path, kind: "np.dtype[Any]", at: int, size: int) -> NDArray[Any]:
    count = size // kind.itemsize
    shape = (count,)
    return (np.memmap(path, kind, "r", at, shape) if count else np.empty(0, kind)).view(np.ndarray)


class BoundedCache(Generic[T]):
    """Results for keys, the last used ones, as long as their weights fit into `most`."""

    def __init__(self, most: int) -> None:
        self.most, self.held = most, 0
        self.found: OrderedDict[int, tuple[T, int]] = OrderedDict()

    def get(self, key: int, make: Callable[[], tuple[T, int]]) -> T:
        """The result for `key`, and the weight that `make` gives it."""
        if (known := self.found.get(key)) is not None:
            with contextlib.suppress(KeyError):  # another thread has just removed it
                self.found.move_to_end(key)
            return known[0]
        result, weight = self.found[key] = make()
        self.held += weight
        while self.held > self.most and len(self.found) > 1:
            self.held -= self.found.popitem(last=False)[1][1]
        return result
