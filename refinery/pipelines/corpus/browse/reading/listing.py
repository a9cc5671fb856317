"""Documents of a run by what is known of all of them, a page at a time: from a place in its files to where the page is
full or its time is up."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from refinery.loader.read.corpus import Corpus
from refinery.pipelines.corpus.browse.reading.deadline import Deadline
from refinery.pipelines.published.columns import PLACES, Columns
from refinery.pipelines.published.published import PublishedCorpus

ROWS = 50  # of a page
BATCH = 4096  # rows that are looked at between two looks at the clock
KEPT, DROPPED, REMOVED, DEAD = KINDS = ("kept", "dropped", "removed", "dead")
FOLDERS = {DROPPED: "rejects", REMOVED: "removals", DEAD: "dead_letters"}
REASONS = {DROPPED: "reason", REMOVED: "reason", DEAD: "error"}  # the column that says why
LEFT_OUT = ("excerpt", "meta", "sha256")  # columns that no list shows
HOST = re.compile(r"[^\s/?#@\\]{1,253}")

Take = Callable[[pa.RecordBatch], Any]  # batch -> bool [rows]


@dataclass(frozen=True)
class Position:
    """A place in a list of files: the next row to look at. As text "file.row"."""

    file: int = 0
    row: int = 0

    @classmethod
    def parse(cls, text: str) -> "Position":
        """Inverse of `str`. Raises ValueError."""
        found = re.fullmatch(r"([0-9]{1,9})\.([0-9]{1,12})", text or "0.0")
        if not found:
            raise ValueError("from: FILE.ROW is allowed, two whole numbers")
        return cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.file}.{self.row}"


@dataclass(frozen=True)
class Listed:
    """A page of a list. rows: with the columns of the file. next: where the next page begins, None at the end. files:
    of the list; looked: files that were looked at for this page."""

    kind: str
    rows: Sequence[dict[str, Any]]
    next: Position | None
    looked: int
    files: int


@dataclass(frozen=True)
class Asked:
    """What documents are asked for: address, host, source, stage, reason ("": any), and of kept ones a rule over
    columns."""

    kind: str = KEPT
    url: str = ""
    host: str = ""
    source: str = ""
    stage: str = ""
    reason: str = ""
    rule: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"in: {self.kind!r:.40} given, one of {', '.join(KINDS)} is allowed")
        if self.host and not HOST.fullmatch(self.host):
            raise ValueError("host: the name of a host is allowed, without scheme and path")
        if self.rule and self.kind != KEPT:
            raise ValueError("a rule is over columns that only kept documents have; look among the kept ones")

    def take(self, batch: pa.RecordBatch) -> Any:
        """Which rows of a batch are asked for, but for the rule. bool [rows]"""
        mask = np.ones(batch.num_rows, np.bool_)
        names = batch.schema.names
        why = REASONS.get(self.kind, "")
        for column, value in (("url", self.url), ("source", self.source), ("stage", self.stage), (why, self.reason)):
            if value:
                mask &= equal(batch, column, value) if column in names else np.zeros(batch.num_rows, np.bool_)
        if self.host:
            if "url" not in names:
                return np.zeros(batch.num_rows, np.bool_)
            near = pc.match_substring(batch.column("url"), self.host, ignore_case=True)
            mask &= near.fill_null(False).to_numpy(zero_copy_only=False)
            for row in np.flatnonzero(mask).tolist():
                mask[row] = is_of_host(batch.column("url")[row].as_py(), self.host)
        return mask


def equal(batch: pa.RecordBatch, column: str, value: str) -> Any:
    """bool [rows]"""
    return pc.equal(batch.column(column), value).fill_null(False).to_numpy(zero_copy_only=False)


def is_of_host(url: str, host: str) -> bool:
    """Whether an address is of the host, or of one below it.

    >>> is_of_host("https://www.example.org/a", "example.org"), is_of_host("https://e.org/example.org", "example.org")
    (True, False)
    """
    try:
        found = urlsplit(url).hostname or ""
    except ValueError:
        return False
    wanted = host.lower().partition(":")[0]
    return found == wanted or found.endswith(f".{wanted}")


def list_documents(corpus: PublishedCorpus, asked: Asked, start: Position, deadline: Deadline) -> Listed:
    """A page of what is asked for. Raises ValueError for a rule or a place that cannot be, FormatError for damage.

    Cost: the columns of the batches between `start` and the end of the page, at least one batch.
    """
    if asked.kind == KEPT:
        return _kept(corpus, asked, start, deadline)
    return _listed(corpus, asked, start, deadline)


@dataclass
class _Page:
    """A page that is being filled."""

    start: Position
    deadline: Deadline
    rows: list[dict[str, Any]] = field(default_factory=list)
    next: Position | None = None

    def add(self, file: int, first: int, batch: pa.RecordBatch, rows: Any) -> bool:
        """Take these rows of a batch that begins with row `first`; whether the page ends there."""
        for row in rows.tolist():
            if first + row < self.start.row and file == self.start.file:
                continue
            if len(self.rows) == ROWS:
                self.next = Position(file, first + row)
                return True
            self.rows += batch.slice(row, 1).to_pylist()
        looked = first + batch.num_rows
        if self.deadline.has_passed and (file, looked) > (self.start.file, self.start.row):
            self.next = Position(file, looked)
        return self.next is not None


def _kept(corpus: PublishedCorpus, asked: Asked, start: Position, deadline: Deadline) -> Listed:
    names = [name for name in corpus.schema.names if name not in LEFT_OUT]
    chosen = Columns(corpus.schema, names, asked.rule, corpus.root)
    shards, page, file = corpus.manifest.shards, _Page(start, deadline), start.file
    if not start.file <= len(shards):
        raise ValueError(f"from: shard {start.file} given, the corpus has {len(shards):,}")
    for file in range(start.file, len(shards)):
        shard, first = shards[file], 0
        columns = chosen.read if set(chosen.read) >= set(names) else [*names, *(set(chosen.read) - set(names))]
        for batch in _batches(corpus, shard.provenance.path, columns) if shard.documents else ():
            rows = np.flatnonzero(asked.take(batch))
            if len(rows) and chosen.rule:
                rows = np.intersect1d(rows, chosen.rows(batch), assume_unique=True)
            places = dict(zip(PLACES, (shard.split, shard.domain, shard.name), strict=False))
            done = len(page.rows)
            ended = page.add(file, first, batch.select(names), rows)
            for row in page.rows[done:]:
                row |= places
            first += batch.num_rows
            if ended:
                return Listed(KEPT, page.rows, page.next, file - start.file + 1, len(shards))
        if deadline.has_passed:  # also where shards are empty
            return Listed(KEPT, page.rows, _after(file, len(shards)), file - start.file + 1, len(shards))
    return Listed(KEPT, page.rows, None, file - start.file + 1 if shards else 0, len(shards))


def _listed(corpus: Corpus, asked: Asked, start: Position, deadline: Deadline) -> Listed:
    paths = [entry.path for entry in corpus.files(FOLDERS[asked.kind])]
    page, looked = _Page(start, deadline), 0
    for file in range(start.file, len(paths)):
        first, looked = 0, file - start.file + 1
        for batch in _batches(corpus, paths[file]):
            ended = page.add(file, first, batch, np.flatnonzero(asked.take(batch)))
            first += batch.num_rows
            if ended:
                return Listed(asked.kind, page.rows, page.next, looked, len(paths))
        if deadline.has_passed:
            return Listed(asked.kind, page.rows, _after(file, len(paths)), looked, len(paths))
    return Listed(asked.kind, page.rows, None, looked, len(paths))


def _after(file: int, files: int) -> Position | None:
    return Position(file + 1) if file + 1 < files else None


def _batches(corpus: Corpus, path: str, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    with corpus.parquet(path) as file:
        known = file.schema_arrow.names
        wanted = [name for name in (known if columns is None else columns) if name in known and name not in LEFT_OUT]
        yield from file.iter_batches(BATCH, columns=wanted, use_threads=False)
