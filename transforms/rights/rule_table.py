"""What hosts said on which day, as one sorted file that is mapped into memory: 19 bytes for each time a host's file
changed, and every different file once.

Layout, all little-endian: MAGIC; 8 bytes, the length of the header; the header, JSON: version, counts, rows, and
`sections`, name -> [offset, bytes]; then the sections:

    keys      uint64[n]  `site_key` of kind and site, ascending; of one key by ascending day
    days      uint16[n]  first day since 1970-01-01 on which the file was as it is
    kinds     uint8[n]   number in KINDS
    says      uint64[n]  NOTHING, UNREACHABLE, LISTED or the key of a text
    buckets   uint64[2**bits + 1]  where the keys with these first bits begin
    texts     uint64[m]  keys of the short forms, ascending: hash64 of the text
    starts    uint64[m + 1]  where each begins in `bodies`
    bodies    the short forms, UTF-8

A lookup touches a page of `buckets` and one or two of `keys`, whatever the size, and processes share the pages. Two
hosts share a key with odds of 2^-64: of 10^9 hosts that are looked up among 10^8 one in about 200 such tables.
"""

import json
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from refinery.transforms.core.document import hash64
from refinery.transforms.rights.rule_rows import KINDS, LISTED, NOTHING, UNREACHABLE

MAGIC = b"refinery opt-outs\n"
VERSION = 1
ALIGN = 4096
MAX_HEADER = 1 << 16
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
T = TypeVar("T")


def site_key(kind: int, site: str) -> int:
    """The key of a host's file."""
    return hash64("opt-out", KINDS[kind], site)


def read_header(path: Path) -> dict[str, Any]:
    """The header of a table. Raises ValueError for a file that is none, or not whole."""
    refused = f"{path}: is no table of opt-outs, or not whole; `refinery opt-outs` makes one"
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise ValueError(refused)
        length = int.from_bytes(file.read(8), "little")
        data = file.read(length) if length <= MAX_HEADER else b""
    try:
        header = json.loads(data)
        version, size = header["version"], path.stat().st_size
        if version == VERSION:
            places = [header["sections"][name] for name in TYPES]
            fits = all(0 <= at <= at + length <= size for at, length in places)
            if not fits or header["sections"]["buckets"][1] != 8 * ((1 << min(header["bits"], 40)) + 1):
                raise ValueError(refused)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(refused) from error
    if version != VERSION:
        raise ValueError(f"{path}: a table of version {str(version)[:20]}, {VERSION} is read; make it anew")
    return dict(header)


class RuleTable:
    """A table, mapped. Memory of a process: pages that it touched, which are the system's to take back."""

    def __init__(self, path: Path) -> None:
        self.header = read_header(path)
        self.sections: dict[str, NDArray[Any]] = {}
        for name, (at, length) in self.header["sections"].items():
            kind = np.dtype(TYPES[name])
            count = length // kind.itemsize
            shape = (count,)
            mapped = np.memmap(path, kind, "r", at, shape) if count else np.empty(0, kind)
            self.sections[name] = mapped.view(np.ndarray)
        self.shift = np.uint64(64 - self.header["bits"])

    def find(self, kind: int, site: str, last_day: int) -> tuple[int, int] | None:
        """(day, says) of a host's file as it was on `last_day`; None where no row of it is that old. Cost: about 5
        microseconds."""
        key = site_key(kind, site)
        bucket = key >> int(self.shift)
        low, high = (int(at) for at in self.sections["buckets"][bucket : bucket + 2])
        keys = self.sections["keys"][low:high]
        first, last = (int(np.searchsorted(keys, np.uint64(key), side)) + low for side in ("left", "right"))
        if first == last:
            return None
        at = first + int(np.searchsorted(self.sections["days"][first:last], last_day, "right")) - 1
        return (int(self.sections["days"][at]), int(self.sections["says"][at])) if at >= first else None

    def text(self, says: int) -> str:
        """The short form of that key. Raises ValueError for a table that is damaged."""
        if says in (NOTHING, UNREACHABLE, LISTED):
            return ""
        texts, starts = self.sections["texts"], self.sections["starts"]
        at = int(np.searchsorted(texts, np.uint64(says)))
        if at == len(texts) or int(texts[at]) != says:
            raise ValueError("table of opt-outs: a text is missing; make the table anew")
        begin, end = (int(offset) for offset in starts[at : at + 2])
        return self.sections["bodies"][begin:end].tobytes().decode()


class BoundedCache(Generic[T]):
    """Results for keys, the last used ones, as long as their weights fit into `most`."""

    def __init__(self, most: int) -> None:
        self.most, self.held = most, 0
        self.found: OrderedDict[int, tuple[T, int]] = OrderedDict()

    def get(self, key: int, make: Callable[[], tuple[T, int]]) -> T:
        """The result for `key`, and the weight that `make` gives it."""
        if key in self.found:
            self.found.move_to_end(key)
            return self.found[key][0]
        result, weight = self.found[key] = make()
        self.held += weight
        while self.held > self.most and len(self.found) > 1:
            self.held -= self.found.popitem(last=False)[1][1]
        return result
