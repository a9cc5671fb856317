"""What earlier streams used of the running epoch, from what a state says of them, and the domains that are left of it.

A state that goes on from another stream's has a record of that one: what its order depends on, and the epoch and place
that each of its domains had reached. From this follows which tokens it had used, whatever reads them next: other
weights, more data sets, another length of rows. If that stream continued another one, its record has that one's.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import SPLITS
from refinery.loader.order.arrays import I64
from refinery.loader.order.order import ORDER_VERSION, OrderParams
from refinery.loader.packing.best_fit_domain import BestFitDomain
from refinery.loader.packing.packing import BestFitParams, Packing
from refinery.loader.packing.row_table import table_of_rest
from refinery.loader.read.continued_domain import ContinuedDomain, RowsDomain
from refinery.loader.read.remote.blocks import RemoteParams
from refinery.loader.read.samples import Domain
from refinery.loader.read.versions.versions import Versions
from refinery.loader.storage.open_store import open_with
from refinery.loader.storage.store import StorageError
from refinery.loader.stream.places import NOTHING, Numbering, spans_of, union, without
from refinery.loader.stream.state import StateError
from refinery.loader.view.open_readable import open_readable
from refinery.loader.view.past_view import PastView, ViewVersions

Files = Callable[[Sequence[Any], Any], list[Any]]
MOST_LINKS = 100  # streams that were continued one after another
_CHUNK = 1 << 16  # samples at a time


class Shards(NamedTuple):
    """Shards of a split as a stream counts them. now: the entries of the files as they are; runs: where tokens of an
    earlier version are in these, by shard."""

    entries: Sequence[Any]
    now: Sequence[Any]
    runs: Sequence[Any]


class Carried:
    """What the stream of a record, and those that it was continued from, used of their epochs.

    opened: the corpus of the stream that goes on. files: lists the files of packed rows, if it reads these. Raises
    StateError for a record that is none, and for a corpus that is not where the record says.
    """

    def __init__(
        self, record: Mapping[str, Any], opened: Any, remote: RemoteParams | None, files: Files | None = None
    ) -> None:
        self.record, self._files = record, files
        self._opened, self._remote = opened, remote
        self._numbering = Numbering()
        self.keys: set[tuple[str, ...]] = set()  # shards that any of these streams read
        with ExitStack() as self._open_files:
            self.used = self._used(record, 0)

    def domains(self, domains: Sequence[Domain], opened: Any, shards: Sequence[Any]) -> list[Domain]:
        """The domains of a stream that goes on: what is left over, then whole epochs."""
        return self._left(domains, self.used, self._numbering.pieces([d.sequence for d in domains], opened, shards))

    def _left(self, domains: Sequence[Domain], used: I64, places: Sequence[Any]) -> list[Domain]:
        found: list[Domain] = []
        for domain, its in zip(domains, places, strict=True):
            every = np.array([[0, domain.sequence.tokens]], np.int64)
            rest = without(every, its.own(used))
            if np.array_equal(rest, every) or not domain.samples or (len(domains) == 1 and not len(rest)):
                found.append(domain)  # untouched, or an epoch that is complete
            elif isinstance(domain, BestFitDomain):
                table = table_of_rest(domain.table, rest, domain.length)
                found.append(ContinuedDomain(domain, BestFitDomain(domain.sequence, table)))
            else:
                found.append(ContinuedDomain(domain, RowsDomain(domain, rest)))
        return found

    def _used(self, record: Mapping[str, Any], depth: int) -> I64:
        check_record(record, depth)
        earlier = NOTHING if record["carried"] is None else self._used(record["carried"], depth + 1)
        opened, shards = self._open(record)
        domains = self._domains(record, opened, shards.entries)
        self.keys |= {(str(entry.bin.path), str(entry.bin.sha256)) for entry in shards.now}
        places = self._numbering.pieces([domain.sequence for domain in domains], opened, shards.now, shards.runs)
        if record["carried"] is not None:
            domains = self._left(domains, earlier, places)
        found = earlier
        for domain, its in zip(domains, places, strict=True):
            epoch, place = record["reached"].get(domain.name, (0, 0))
            if epoch:
                found = without(found, its.tokens)
            found = union(found, its.numbers(_inputs(domain, record, epoch, place)))
        return found

    def _domains(self, record: Mapping[str, Any], opened: Any, entries: Sequence[Any]) -> list[Domain]:
        order, length = record["order"], record["sequence_length"]
        if "packing" not in order:
            found: list[Domain] = opened.domains(entries, length, record["mixed"])
            return found
        packing = Packing(BestFitParams(order["pack_block"], repack="repack" in order), opened, length, None)
        made = packing.of(record["split"], self._remote)(entries, mixed=record["mixed"])
        other = packing.of_state(record)
        return made if other is packing else other.of(record["split"], self._remote)(entries, mixed=record["mixed"])

    def _open(self, record: Mapping[str, Any]) -> tuple[Any, Shards]:
        """The corpus of a record and its shards, in the version that the record is of."""
        found = self._version(record, self._opened)
        if found is None:
            try:
                store = open_with(record["at"], self._remote.fetch if self._remote else None)
                self._open_files.callback(store.close)
                there = open_readable(store, self._remote)
                self._open_files.callback(there.close)
                found = self._version(record, there)
            except (FormatError, StorageError, OSError, ValueError) as error:
                raise StateError(
                    f"state: it continues a stream of {record['at']}, which cannot be read: {error}; what that one "
                    "had used is known only with its manifest there"
                ) from None
        if found is None:
            raise StateError(
                f"state: it continues a stream of {record['at']}, where another corpus is now; put that one back"
            )
        opened, shards = found
        if record["order"].get("packed"):
            if opened.manifest.packed is None or self._files is None:
                raise StateError(
                    f"state: carried by packed rows of {record['at']}, which only PackedStream, of a corpus with "
                    "packed rows, can continue"
                )
            files = self._files(shards.entries, opened.manifest.packed)
            shards = Shards(files, files, [None] * len(files))
        return opened, shards

    def _version(self, record: Mapping[str, Any], opened: Any) -> tuple[Any, Shards] | None:
        """The corpus as it was in the version of a record; None if it has no such version."""
        versions = ViewVersions(opened, self._remote) if opened.is_view else None
        of = versions or Versions(opened.store, opened.manifest, opened.sha256)
        if not of.of(record, ""):
            return None
        split, entries = record["split"], opened.choose(record["split"], None)
        if record["corpus"] == opened.sha256:
            return opened, Shards(entries, entries, [None] * len(entries))
        if "packing" in record["order"] or record["order"].get("packed"):
            raise StateError(
                "state: it continues a stream of packed rows of an earlier version of the corpus, whose documents are "
                "in other rows now"
            )
        if isinstance(of, ViewVersions):
            past, _ = of.turn(record["corpus"])
            assert isinstance(past, PastView)  # noqa: S101 - an earlier version is one
            entries = past.choose(split, None)
            return past, Shards(entries, past.entries_now(entries), past.runs)
        version, then = of.turn(record["corpus"], entries, split, None)
        assert version is not None  # noqa: S101 - an earlier version is one
        return opened, Shards(then, version.now, version.runs)


def _inputs(domain: Domain, record: Mapping[str, Any], epoch: int, place: int) -> I64:
    """The tokens of a domain that a stream used in its epoch."""
    order, found = record["order"], NOTHING
    if not place:
        return found
    params = OrderParams(**{name: order[name] for name in ("block", "lanes", "window") if name in order})
    rows = domain.order_of(epoch, record["seed"], params, order.get("shuffle", True))
    if place > rows.n:
        raise StateError(f"state: {place} samples of domain {domain.name!r} carried, which has {rows.n}")
    samples = np.empty(place, np.int64)
    for first in range(0, place, _CHUNK):
        some = np.arange(first, min(first + _CHUNK, place))
        samples[some] = rows[some] + domain.first_of(epoch)
    samples.sort()  # so packed rows are looked up block by block
    parts = [spans_of(*domain.inputs_of(samples[first : first + _CHUNK])) for first in range(0, place, _CHUNK)]
    return spans_of(*np.concatenate(parts).T)


def check_record(record: Any, depth: int = 0) -> None:
    """Raise StateError for a record that no stream writes."""
    try:
        order = record["order"]
        texts = [record["corpus"], record["at"], *record["reached"]]
        shape = ("lanes", "window", "block") if order.get("shuffle", True) else ()
        numbers = [record["sequence_length"], *(order[name] or 1 for name in shape), order.get("pack_block", 1)]
        places = [number for reached in record["reached"].values() for number in (*reached, len(reached) - 2)]
        fits = (
            all(isinstance(text, str) for text in texts)
            and all(type(number) is int and 1 <= number < 2**31 for number in numbers)
            and all(type(number) is int and 0 <= number < 2**62 for number in places)
            and type(record["seed"]) is int and -(2**63) <= record["seed"] < 2**64
            and type(record["mixed"]) is bool and record["split"] in SPLITS and order["version"] == ORDER_VERSION
            and type(order.get("shuffle", True)) is bool
        )  # fmt: skip
    except (TypeError, KeyError, AttributeError, ValueError):
        fits = False
    if not fits or depth > MOST_LINKS or "carried" not in record:
        raise StateError(f"state: carried {record!r:.200} given, the record that a stream made is allowed")


def check_shards(carried: Carried, shards: Sequence[Any]) -> None:
    """Raise StateError unless these are some of the shards that the earlier streams read, with the same bytes."""
    theirs: dict[str, set[str]] = {}
    for path, sha256 in carried.keys:
        theirs.setdefault(path, set()).add(sha256)
    common = 0
    for entry in shards:
        path, sha256 = str(entry.bin.path), str(entry.bin.sha256)
        mine = theirs.get(path, {sha256})
        if sha256 not in mine:
            raise StateError(
                f"stream: {path} has other bytes here than in the corpus of the earlier stream, so which of its tokens "
                "were used is not known here; continue in that corpus, in a version of it after a takedown, or in one "
                "that has its shards as they are"
            )
        common += path in theirs
    if not common:
        where = carried.record["at"]
        raise StateError(
            f"stream: it reads no shard that the earlier stream of {where} read, so nothing of what that one used can "
            "be left out; start it without a state"
        )


def only_of(record: Mapping[str, Any] | None, corpus: str) -> bool:
    """Whether all streams of a record are of this corpus."""
    return record is None or (record["corpus"] == corpus and only_of(record["carried"], corpus))
