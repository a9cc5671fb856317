"""What is added up of the documents at one point: totals, categories, distributions, hosts, artefacts.

Everything is a sum, a minimum, a maximum or a choice by hash, of integers or of single numbers: two tallies merge in
any order to the same one, so bundles, workers, waves and retries leave no trace.
"""

import base64
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import orjson

from refinery.transforms.core.document import Document, Scalar, text_bytes
from refinery.transforms.core.safe_text import printable
from refinery.transforms.core.stage import Note
from refinery.transforms.native import signs
from refinery.transforms.statistics.artefacts import find_artefacts, window
from refinery.transforms.statistics.bins import Bins, merge_bins, read_bins
from refinery.transforms.statistics.hosts import HostCounts, read_hosts
from refinery.transforms.statistics.keyed import Chosen, Keyed, add_numbers, counts

T = TypeVar("T")

SOURCE = "source"
MAX_VALUE = 100  # characters of a category's value
MAX_SHARDS = 1000
MOST = 1e300  # numbers beyond are left out, as infinities and NaN are
MAX_UNPACKED = 256 << 20  # bytes: many times what a tally can have


class BuiltIn(NamedTuple):
    """A series that needs no note. No note's name has a hyphen, so there is no other of that name."""

    name: str
    unit: str
    meaning: str


BYTES = BuiltIn("text-bytes", "bytes", "UTF-8 bytes of the text")
CHARACTERS = BuiltIn("text-characters", "characters", "characters of the text")
LINES = BuiltIn("text-lines", "lines", "lines of the text")
TOKENS = BuiltIn("token-count", "tokens", "tokens of the document, with BOS and EOS")
RATIO = BuiltIn("bytes-per-token", "bytes per token", "bytes of the text for each token")
BUILT_IN = (BYTES, CHARACTERS, LINES, TOKENS, RATIO)


@dataclass(frozen=True, slots=True)
class Measured:
    """Names of a recipe's notes that are measured. categories: of texts. numbers: of numbers."""

    categories: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()


NO_NOTES = Measured()


def measured_notes(notes: Sequence[Note]) -> Measured:
    """Of what stages note: numbers, and texts that are categories."""
    categories = (note.name for note in notes if note.category)
    return Measured(tuple(categories), tuple(note.name for note in notes if note.type is not str))


class Passing(NamedTuple):
    """A document as it passes a point. size: UTF-8 bytes of its text. tokens: 0 if it is not encoded. numbers: of the
    series that are built in."""

    source: str
    url: str
    origin: str
    meta: Mapping[str, Scalar]
    size: int
    tokens: int
    numbers: Mapping[str, float]
    artefacts: Sequence[str] = ()


def passing_text(doc: Document, find: bool) -> Passing:
    """A document with its text. find: look for artefacts."""
    text, size = doc.text, text_bytes(doc.text)
    numbers = {BYTES.name: size, CHARACTERS.name: len(text), LINES.name: signs.count_lines(text)}
    artefacts = find_artefacts(window(text)) if find else ()
    return Passing(doc.source, doc.url, doc.origin, doc.meta, size, 0, numbers, artefacts)


def passing_written(
    source: str, url: str, origin: str, meta: Mapping[str, Scalar], size: int, tokens: int | None
) -> Passing:
    """A document of a shard. size: UTF-8 bytes of its text. tokens: None of a shard of texts."""
    if tokens is None:
        return Passing(source, url, origin, meta, size, 0, {BYTES.name: size})
    numbers = {BYTES.name: size, TOKENS.name: tokens, RATIO.name: size / max(1, tokens)}
    return Passing(source, url, origin, meta, size, tokens, numbers)


class Tally:
    """The sums of one point. shards: shard -> what it holds, where documents are in shards."""

    def __init__(self) -> None:
        self.total = [0, 0, 0]
        self.categories: dict[str, Keyed[list[int]]] = {}
        self.series: dict[str, Keyed[Bins]] = {}
        self.artefacts: dict[str, Keyed[list[int]]] = {}
        self.hosts = HostCounts()
        self.shards: Keyed[dict[str, Any]] = _shards()

    def add(self, doc: Passing, notes: Measured, hosts: bool) -> None:
        """Count a document; many are counted faster by `add_all`."""
        self.add_all((doc,), notes, hosts)

    def add_all(self, docs: Sequence[Passing], notes: Measured, hosts: bool) -> None:
        """Count documents, and the hosts of their addresses, too, if `hosts`. Never raises for what they hold."""
        sources: dict[str, list[Passing]] = {}
        for doc in docs:
            sources.setdefault(doc.source, []).append(doc)
        for source, its in sources.items():
            self._add_source(source, its, notes)
        if hosts:
            for doc in docs:
                self.hosts.add(doc.url, doc.origin, doc.size)

    def _add_source(self, source: str, docs: Sequence[Passing], notes: Measured) -> None:
        sums = _sums(docs)
        add_numbers(self.total, sums)
        self._add(self.categories, SOURCE, source, sums)
        for name in notes.categories:
            for value, its in _by_value(docs, name):
                self._add(self.categories, name, printable(value[:MAX_VALUE]), _sums(its))
        series: dict[str, list[float]] = {}
        having: dict[str, list[Passing]] = {}
        measured = frozenset(notes.numbers)
        for doc in docs:
            for name, number in doc.numbers.items():
                series.setdefault(name, []).append(number)
            for name, note in doc.meta.items():
                if name in measured and isinstance(note, (int, float)) and -MOST < note < MOST:
                    series.setdefault(name, []).append(note)
            for name in doc.artefacts:
                having.setdefault(name, []).append(doc)
        for name, numbers in series.items():
            self._put(name, source, numbers)
        for name, its in having.items():
            self._add(self.artefacts, name, source, _sums(its))

    @staticmethod
    def _add(groups: dict[str, Keyed[list[int]]], name: str, key: str, sums: Sequence[int]) -> None:
        keyed = groups.get(name)
        if keyed is None:
            keyed = groups[name] = counts()
        add_numbers(keyed.at(key), sums)

    def _put(self, name: str, source: str, numbers: Sequence[float]) -> None:
        keyed = self.series.get(name)
        if keyed is None:
            keyed = self.series[name] = _distributions()
        keyed.at(source).add_all(numbers)

    def merge(self, other: "Tally") -> None:
        """Add what another one counted."""
        add_numbers(self.total, other.total)
        merge_groups(self.categories, other.categories, counts)
        merge_groups(self.series, other.series, _distributions)
        merge_groups(self.artefacts, other.artefacts, counts)
        self.hosts.merge(other.hosts)
        self.shards.merge(other.shards)

    def distribution(self, series: str) -> Bins:
        """The series over all sources; empty where there is none."""
        total = Bins()
        keyed = self.series.get(series)
        if keyed is not None:
            for bins in (*keyed.sums.values(), *([keyed.rest] if keyed.rest else ())):
                total.merge(bins)
        return total

    def pack(self) -> str:
        """As text, for reports: base64 of compressed JSON; `unpack` is the inverse. A few KB; about 1 MB with as
        many hosts, values and shards as are counted one by one."""
        plain = {
            "total": self.total,
            "categories": {name: keyed.plain() for name, keyed in sorted(self.categories.items())},
            "series": {name: keyed.plain(Bins.plain) for name, keyed in sorted(self.series.items())},
            "artefacts": {name: keyed.plain() for name, keyed in sorted(self.artefacts.items())},
            "hosts": self.hosts.plain(),
            "shards": self.shards.plain(),
        }
        return base64.b64encode(zlib.compress(orjson.dumps(plain), 1)).decode()


def _sums(docs: Sequence[Passing]) -> tuple[int, int, int]:
    """Documents, bytes and tokens."""
    return len(docs), sum([doc.size for doc in docs]), sum([doc.tokens for doc in docs])


def _by_value(docs: Sequence[Passing], name: str) -> Iterable[tuple[str, Sequence[Passing]]]:
    """The documents by the text that a note of theirs is; "" where it is none."""
    values = [doc.meta.get(name, "") for doc in docs]
    if isinstance(values[0], str) and values.count(values[0]) == len(values):
        return [(values[0], docs)]
    found: dict[str, list[Passing]] = {}
    for value, doc in zip(values, docs, strict=True):
        found.setdefault(value if isinstance(value, str) else "", []).append(doc)
    return found.items()


def merge_groups(mine: dict[str, Keyed[T]], theirs: Mapping[str, Keyed[T]], make: Callable[[], Keyed[T]]) -> None:
    """Add `theirs` to `mine`, name by name. make: an empty one."""
    for name, keyed in theirs.items():
        if name not in mine:
            mine[name] = make()
        mine[name].merge(keyed)


def _distributions() -> Keyed[Bins]:
    return Keyed(Bins, merge_bins)


def _shards() -> Keyed[dict[str, Any]]:
    return Chosen(dict, dict.update, MAX_SHARDS)


def unpack(packed: str) -> Tally:
    """Inverse of `Tally.pack`. Raises ValueError for what it never makes."""
    inflate = zlib.decompressobj()
    try:
        data = inflate.decompress(base64.b64decode(packed, validate=True), MAX_UNPACKED)
    except zlib.error as error:
        raise ValueError(f"statistics: not a tally ({error})") from None
    if inflate.unconsumed_tail:
        raise ValueError(f"statistics: more than {MAX_UNPACKED} bytes found")
    plain = orjson.loads(data)
    tally = Tally()
    tally.total = plain["total"]
    tally.categories = {name: counts().read(keyed) for name, keyed in plain["categories"].items()}
    tally.series = {name: _distributions().read(keyed, read_bins) for name, keyed in plain["series"].items()}
    tally.artefacts = {name: counts().read(keyed) for name, keyed in plain["artefacts"].items()}
    tally.hosts = read_hosts(plain["hosts"])
    tally.shards = _shards().read(plain["shards"])
    return tally
