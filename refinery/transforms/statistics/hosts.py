"""Documents and bytes by host: exact for few hosts, sketches for many; the same in whatever order parts come together.

Up to TABLE hosts are a table. With more, counts are in count-min sketches (Cormode and Muthukrishnan 2005), which are
linear, and the number of hosts in a theta sketch (KMV: Bar-Yossef et al. 2002), which is trimmed to its least hashes,
a function of the set of hosts. Both are Apache DataSketches. Neither lists hosts, so candidates for the largest are
the hosts of SAMPLE documents, those with the least hash of their origin: a host with a thousandth of the documents is
missed with a probability of 2 %, one with a two-hundredth with 1e-9.
"""

import base64
import heapq
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import datasketches

from refinery.transforms.core.address.host import host_of
from refinery.transforms.core.safe_text import printable

TABLE = 4096  # hosts
SAMPLE = 4096  # documents
HASHES, BUCKETS = 5, 8192  # of a count-min sketch: 320 KB
CONFIDENCE = 0.993  # of its counts: 1 - exp(-HASHES), rounded down
LG_K = 12  # of the theta sketch: 32 KB, 3 % at 95 %
DEVIATIONS = 2


class _Sketches:
    """Documents and bytes of hosts that are no longer listed, and how many hosts there are."""

    def __init__(self) -> None:
        self.documents = datasketches.count_min_sketch(HASHES, BUCKETS)
        self.bytes = datasketches.count_min_sketch(HASHES, BUCKETS)
        self.hosts = datasketches.theta_union(LG_K)

    def fold(self, table: Mapping[str, list[int]]) -> None:
        distinct = datasketches.update_theta_sketch(LG_K)
        for host, (documents, size) in table.items():
            distinct.update(host)
            self.documents.update(host, documents)
            self.bytes.update(host, size)
        distinct.trim()
        self.hosts.update(distinct.compact(True))

    def merge(self, other: "_Sketches") -> None:
        self.documents.merge(other.documents)
        self.bytes.merge(other.bytes)
        self.hosts.update(other.hosts.get_result(True))

    def plain(self) -> list[str]:
        sketches = self.documents, self.bytes, self.hosts.get_result(True)
        return [base64.b64encode(sketch.serialize()).decode() for sketch in sketches]


def _read_sketches(plain: list[str]) -> _Sketches:
    documents, size, hosts = map(base64.b64decode, plain)
    found = _Sketches()
    found.documents = datasketches.count_min_sketch.deserialize(documents)
    found.bytes = datasketches.count_min_sketch.deserialize(size)
    found.hosts.update(datasketches.compact_theta_sketch.deserialize(hosts))
    return found


class HostCounts:
    """Documents and bytes by host of their addresses. without: those of documents without an address."""

    def __init__(self) -> None:
        self.without = [0, 0]
        self.table: dict[str, list[int]] = {}
        self.sample: dict[int, str] = {}  # hash of a document's origin -> its host
        self.largest: list[int] = []  # heap of the negative hashes in `sample`
        self.sketches: _Sketches | None = None

    def add(self, url: str, origin: str, size: int) -> None:
        """Count a document of `size` bytes."""
        host = printable(host_of(url)) if url else ""
        if not host:
            self.without[0] += 1
            self.without[1] += size
            return
        entry = self.table.get(host)
        if entry is None:
            if len(self.table) > TABLE:
                self._fold()
            entry = self.table[host] = [0, 0]
        entry[0] += 1
        entry[1] += size
        self._sample(document_hash(origin), host)

    def merge(self, other: "HostCounts") -> None:
        """Add the counts of another one."""
        for place in (0, 1):
            self.without[place] += other.without[place]
        for host, (documents, size) in other.table.items():
            entry = self.table.setdefault(host, [0, 0])
            entry[0] += documents
            entry[1] += size
        if other.sketches is not None:
            self._fold().merge(other.sketches)
        elif len(self.table) > TABLE or self.sketches is not None:
            self._fold()
        for number, host in other.sample.items():
            self._sample(number, host)

    def _fold(self) -> _Sketches:
        self.sketches = self.sketches or _Sketches()
        self.sketches.fold(self.table)
        self.table = {}
        return self.sketches

    def _sample(self, number: int, host: str) -> None:
        if number in self.sample:
            return
        if len(self.sample) < SAMPLE:
            heapq.heappush(self.largest, -number)
        elif number > -self.largest[0]:
            return
        else:
            del self.sample[-heapq.heapreplace(self.largest, -number)]
        self.sample[number] = host

    def plain(self) -> dict[str, Any]:
        """As JSON knows it; `read_hosts` is the inverse."""
        if self.sketches is not None or len(self.table) > TABLE:
            self._fold()
        return {
            "without": self.without,
            "table": dict(sorted(self.table.items())),
            "sample": {f"{number:x}": host for number, host in sorted(self.sample.items())},
            "sketches": None if self.sketches is None else self.sketches.plain(),
        }

    def top(self, limit: int) -> list[tuple[str, int, int]]:
        """(host, documents, bytes) of the hosts with most documents; candidates are those of the sample, where there is
        no table."""
        if self.sketches is None:
            rows = [(host, documents, size) for host, (documents, size) in self.table.items()]
        else:
            documents, sizes = self.sketches.documents, self.sketches.bytes
            hosts = sorted(set(self.sample.values()))
            rows = [(host, int(documents.get_estimate(host)), int(sizes.get_estimate(host))) for host in hosts]
        return sorted(rows, key=lambda row: (-row[1], -row[2], row[0]))[:limit]

    def distinct(self) -> tuple[int, int, int]:
        """How many hosts there are: an estimate, and between which numbers they are with 95 %."""
        if self.sketches is None:
            return (len(self.table),) * 3
        found = self.sketches.hosts.get_result(True)
        bounds = found.get_lower_bound(DEVIATIONS), found.get_upper_bound(DEVIATIONS)
        return round(found.get_estimate()), int(bounds[0]), -int(-bounds[1] // 1)

    def errors(self) -> tuple[int, int, float]:
        """By how much documents and bytes of `top` may be too large, and with what probability not by more."""
        if self.sketches is None:
            return 0, 0, 1.0
        share = self.sketches.documents.get_relative_error()
        sketches = self.sketches.documents, self.sketches.bytes
        documents, size = (-int(-(share * sketch.total_weight) // 1) for sketch in sketches)
        return documents, size, CONFIDENCE


def document_hash(origin: str) -> int:
    """A uniform 64-bit integer, the same at every point, so samples of the same documents are compared."""
    return int.from_bytes(
        blake2b(origin.encode("utf-8", "surrogatepass"), digest_size=8, person=b"host").digest(), "big"
    )


def read_hosts(plain: Mapping[str, Any]) -> HostCounts:
    """Inverse of `HostCounts.plain`."""
    found = HostCounts()
    found.without = list(plain["without"])
    found.table = {host: list(entry) for host, entry in plain["table"].items()}
    found.sample = {int(number, 16): host for number, host in plain["sample"].items()}
    found.largest = [-number for number in found.sample]
    heapq.heapify(found.largest)
    found.sketches = None if plain["sketches"] is None else _read_sketches(plain["sketches"])
    return found
