"""`refinery trace`: what became of a page, from the published files of a corpus, and from work/ if it is still there.

A pure core: `trace` takes queries and returns answers as data; pipelines/tracing/trace_text.py formats them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import RUN, Manifest, read_manifest, unseal
from refinery.loader.format.provenance import ADOPTED
from refinery.loader.format.removals import ID_BYTES, REFERENCE, URL_DUPLICATE
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store
from refinery.pipelines.run.phases import Phase, read_phase
from refinery.pipelines.tracing.lookup import (
    Row,
    Wanted,
    find_documents,
    find_kept,
    find_records,
    find_removed,
    input_files,
)
from refinery.transforms.address.redact import redact_address
from refinery.transforms.core.rejects import OVER_TARGET, TARGET_STAGE

REJECTS = ("stage", "reason", "source", "url", "origin", "found")  # older corpora do not have the last
DEAD = ("stage", "error", "source", "origin", "sha256", "size")
SHOWN = 80  # characters of a wrong value that a message repeats


@dataclass(frozen=True)
class Query:
    """A query: field is "url", "id" (32 hexadecimal digits) or "origin" (file@offset)."""

    field: str
    value: str

    def __post_init__(self) -> None:
        if self.field not in ("url", "id", "origin"):
            raise ValueError(f"field: {self.field!r} given, url, id or origin is allowed")
        if not self.value:  # many documents have no URL: '' would match them all
            raise ValueError(f"--{self.field}: '' given, one or more characters are allowed")
        try:
            self.value.encode()
        except UnicodeEncodeError:
            raise ValueError(f"--{self.field} {self.value[:SHOWN]!a}: valid UTF-8 is allowed") from None
        if self.field == "id":
            digits = self.value.lower()
            if len(digits) != 2 * ID_BYTES or set(digits) - set("0123456789abcdef"):
                raise ValueError(f"--id {self.value[:SHOWN]!a}: {2 * ID_BYTES} hexadecimal digits are allowed")
            object.__setattr__(self, "value", digits)


@dataclass(frozen=True)
class Doc:
    """A document. id in hexadecimal; id and url are "" where the files read do not have them."""

    id: str = ""
    url: str = ""
    source: str = ""
    origin: str = ""


@dataclass(frozen=True)
class Kept:
    """In the corpus. Its tokens are token_offset to token_offset + token_count of the shard; copies counts the document
    itself.
    """

    doc: Doc
    shard: str
    document: int
    token_offset: int
    token_count: int
    text_bytes: int
    copies: int
    sources: tuple[str, ...]
    columns: Mapping[str, Any]  # what stages noted: language, scores, …


@dataclass(frozen=True)
class Rejected:
    """Dropped by a rule, and in the sample of rejects; or cut at the target of its source. found: what the stage says
    that it found, or ""."""

    doc: Doc
    stage: str
    reason: str
    found: str = ""


@dataclass(frozen=True)
class Dead:
    """Failed: a dead letter. sha256 and size: of the record, or of the part that could be read."""

    doc: Doc
    stage: str
    error: str
    sha256: str
    size: int


@dataclass(frozen=True)
class Passed:
    """Kept by deduplication, dropped by a later stage, not listed: rejects/ has this share (rate) of the dropped.

    over_target: whether documents of its source were cut at the source's target, which rejects/ never lists.
    """

    doc: Doc
    rate: float | None
    over_target: bool = False


@dataclass(frozen=True)
class Elsewhere:
    """The document kept at the end of a chain is in a reference corpus."""

    doc: Doc
    prefix: str


@dataclass(frozen=True)
class Cycle:
    """The chain of kept documents is a cycle: the corpus is damaged."""

    doc: Doc


@dataclass(frozen=True)
class Step:
    """One removal of a chain: why, and which document was kept instead."""

    reason: str
    scope: str
    similarity: float
    kept: Doc


Record = Rejected | Dead | Passed
End = Kept | Rejected | Dead | Passed | Elsewhere | Cycle


@dataclass(frozen=True)
class Removed:
    """Removed by deduplication. steps: its own removal, that of the document kept instead, …; end: what became of the
    last one.
    """

    doc: Doc
    steps: tuple[Step, ...]
    end: End


@dataclass(frozen=True)
class Missing:
    """Not found, and facts that may explain it.

    rate: share of dropped documents that rejects/ lists (None: unknown). dead: number of dead letters, which have no
    URL. file_read: for an origin, whether its file was among the inputs. work: whether cleaned documents were searched,
    too. over_target: as of Passed, of any source.
    """

    rate: float | None
    dead: int
    file_read: bool | None
    work: bool
    over_target: bool = False


Answer = Kept | Removed | Rejected | Dead | Passed | Missing


@dataclass(frozen=True)
class Trace:
    """(query, answer) in the order of the queries. inputs: source -> files. notes: what was not searched, and why."""

    answers: tuple[tuple[Query, Answer], ...]
    inputs: Mapping[str, Sequence[str]]
    notes: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether every query was answered."""
        return not any(isinstance(answer, Missing) for _, answer in self.answers)


def trace(prefix: str, queries: Sequence[Query], work: str = "") -> Trace:
    """What became of the queried documents in the corpus at `prefix` (a local folder or gs://bucket/prefix).

    work: the work location (default: PREFIX/work), searched where it belongs to this corpus. Raises FormatError where
    there is no corpus, OSError for a file that cannot be read, ValueError without a query. Cost: one pass over the
    queried columns of every file, of few files for ids alone; memory: one row group of these columns, and the rows
    found.
    """
    if not queries:
        raise ValueError("nothing to trace: give --url, --id, --origin or --urls")
    return _Tracer(prefix, work or f"{prefix.rstrip('/')}/work").trace(tuple(dict.fromkeys(queries)))


class _Tracer:
    def __init__(self, prefix: str, work: str) -> None:
        self.store: Store = open_store(prefix)
        self.manifest: Manifest = read_manifest(self.store)
        if self.manifest.lane == ADOPTED:
            raise FormatError(f"{prefix} was adopted from files without provenance: nothing of it can be traced")
        self.run: dict[str, Any] = unseal(self.store.read(RUN), self.store.url(RUN))
        self.notes: list[str] = []
        self.phases = self._open_work(work)
        rejects = self.manifest.recipe.get("rejects")
        rate = rejects.get("rate") if isinstance(rejects, dict) else None
        self.rate: float | None = rate if isinstance(rate, (int, float)) else None
        self.cut = frozenset(
            row["source"]
            for row in self.manifest.funnel
            if row["stage"] == TARGET_STAGE and row["dropped"].get(OVER_TARGET)
        )
        self.kept: dict[str, list[Kept]] = {}  # by id: every document found so far
        self.moved: dict[str, Row] = {}  # by id: its removal in favour of another id, or of another corpus
        self.lost: dict[str, End] = {}  # by id: kept documents that are not in the corpus

    def _open_work(self, work: str) -> tuple[Phase, Phase] | None:
        try:
            clean, dedup = (read_phase(work, name, self.run["phases"][name]) for name in ("clean", "dedup"))
        except (FormatError, OSError, KeyError, TypeError) as error:
            self.notes.append(f"{work} was not searched: {error}")
            return None
        return (clean, dedup) if clean and dedup else None

    def trace(self, queries: tuple[Query, ...]) -> Trace:
        wanted = Wanted(
            frozenset(q.value for q in queries if q.field == "url"),
            frozenset(bytes.fromhex(q.value) for q in queries if q.field == "id"),
            frozenset(q.value for q in queries if q.field == "origin"),
        )
        kept = self._find_kept(wanted)
        removed = list(find_removed(self.store, self.manifest, wanted))
        self._follow({row["kept_id"] for row in removed if not row["scope"].startswith(REFERENCE)})
        ends = {id_ for row in removed if (id_ := self._last(row)) is not None}

        unfinished = self._find_documents(replace(wanted, id=wanted.id | {bytes.fromhex(id_) for id_ in ends}))
        shown = wanted.url | {redact_address(url) for url in wanted.url}  # older corpora have them as they were
        origins = wanted.origin | {doc.origin for doc in unfinished}
        records: list[Record] = [
            Rejected(_doc(row), row["stage"], row["reason"], row.get("found") or "")
            for row in find_records(self.store, self.manifest, "rejects", Wanted(shown, origin=origins), REJECTS)
        ]
        records += [
            Dead(_doc(row), row["stage"], row["error"], row["sha256"], row["size"])
            for row in find_records(self.store, self.manifest, "dead_letters", Wanted(origin=origins), DEAD)
        ]
        records = _name_documents(records, unfinished)
        seen = {(r.doc.source, r.doc.origin) for r in records}
        records += [self._passed(doc) for doc in unfinished if (doc.source, doc.origin) not in seen]
        for record in records:
            self.lost.setdefault(record.doc.id, record)

        answers: list[Answer] = [*kept, *(self._chain(row) for row in removed), *records]
        return Trace(tuple(self._sort_out(queries, answers)), input_files(self.run), tuple(self.notes))

    def _find_kept(self, wanted: Wanted) -> list[Kept]:
        found = [
            Kept(
                doc=_doc(row),
                shard=shard.bin.path.removesuffix(".bin"),
                document=number,
                token_offset=row["token_offset"],
                token_count=row["token_count"],
                text_bytes=row["text_bytes"],
                copies=row["copies"],
                sources=tuple(row["sources"]),
                columns={column.name: _round(row[column.name]) for column in self.manifest.columns},
            )
            for shard, number, row in find_kept(self.store, self.manifest, wanted)
        ]
        for one in found:
            self.kept.setdefault(one.doc.id, []).append(one)
        return found

    def _follow(self, ids: set[bytes]) -> None:
        """Follow kept_id from these ids, and from the ids that it leads to, until no new one comes up."""
        seen: set[bytes] = set()
        while ids := ids - seen:
            seen |= ids
            self._find_kept(Wanted(id=frozenset(ids)))
            rest = frozenset(id_ for id_ in ids if id_.hex() not in self.kept)
            ids = set()
            for row in find_removed(self.store, self.manifest, Wanted(id=rest)):
                if row["reason"] == URL_DUPLICATE:  # another document of this id: captures are compared first of all
                    continue
                elsewhere = row["scope"].startswith(REFERENCE)
                if elsewhere or row["kept_id"] != row["id"]:
                    self.moved.setdefault(row["id"].hex(), row)
                if not elsewhere:
                    ids.add(row["kept_id"])

    def _walk(self, row: Row) -> tuple[list[Row], bool]:
        """A removal and those of the documents kept instead, in turn; True where they form a cycle."""
        rows, seen = [row], set()
        while not row["scope"].startswith(REFERENCE):
            id_ = row["kept_id"].hex()
            if id_ in self.kept or id_ not in self.moved:
                return rows, False
            if id_ in seen:
                return rows, True
            seen.add(id_)
            row = self.moved[id_]
            rows.append(row)
        return rows, False

    def _last(self, row: Row) -> str | None:
        """The id at the end of a chain, if the published files do not say what became of it."""
        rows, cycle = self._walk(row)
        id_ = str(rows[-1]["kept_id"].hex())
        known = cycle or rows[-1]["scope"].startswith(REFERENCE) or id_ in self.kept
        return None if known else id_

    def _chain(self, row: Row) -> Removed:
        rows, cycle = self._walk(row)
        last, id_ = rows[-1], rows[-1]["kept_id"].hex()
        end: End
        if cycle:
            end = Cycle(Doc(id_))
        elif last["scope"].startswith(REFERENCE):
            end = Elsewhere(Doc(id_), last["scope"].removeprefix(REFERENCE))
        elif id_ in self.kept:
            end = self.kept[id_][0]
        else:
            end = self.lost.get(id_, Passed(Doc(id_), self.rate, bool(self.cut)))
        kept = [*(_doc(after) for after in rows[1:]), end.doc]
        steps = (
            Step(r["reason"], r["scope"], _round(r["similarity"]) or 0.0, doc)
            for r, doc in zip(rows, kept, strict=True)
        )
        return Removed(_doc(row), tuple(steps), end)

    def _find_documents(self, wanted: Wanted) -> list[Doc]:
        """Documents that deduplication kept and that did not reach the corpus, from the work location."""
        if not self.phases:
            return []
        try:
            found = [_doc(row) for row in find_documents(*self.phases, wanted)]
        except OSError as error:
            self.notes.append(f"work/ was not searched: {error}")
            self.phases = None
            return []
        reached = {one.doc for many in self.kept.values() for one in many}
        return [doc for doc in found if doc not in reached]

    def _passed(self, doc: Doc) -> Passed | Rejected:
        """What became of a document that was dropped after deduplication and is not listed. Where all that rules drop
        is listed, only the target is left."""
        if doc.source in self.cut and self.rate == 1:
            return Rejected(doc, TARGET_STAGE, OVER_TARGET)
        return Passed(doc, self.rate, doc.source in self.cut)

    def _sort_out(self, queries: Iterable[Query], answers: Sequence[Answer]) -> Iterable[tuple[Query, Answer]]:
        """The answers to each query, and a Missing for each without any."""
        by_value: dict[tuple[str, str], list[Answer]] = {}
        for answer in answers:
            if not isinstance(answer, Missing):
                for field in ("url", "id", "origin"):
                    by_value.setdefault((field, getattr(answer.doc, field)), []).append(answer)
        dead = sum(count["documents"] for row in self.manifest.funnel for count in row["dead"].values())
        paths = {path for files in input_files(self.run).values() for path in files}
        sources = self.manifest.recipe.get("sources") or ()
        # documents taken from another run keep their origins, which are not inputs of this one
        earlier = any(isinstance(s, dict) and s.get("format") == "documents" for s in sources)
        for query in queries:
            values = (query.value, redact_address(query.value)) if query.field == "url" else (query.value,)
            found = [answer for value in dict.fromkeys(values) for answer in by_value.get((query.field, value), [])]
            yield from ((query, answer) for answer in found)
            if not found:
                file_read = query.value.rpartition("@")[0] in paths if query.field == "origin" else None
                if file_read is False and earlier:
                    file_read = None
                yield query, Missing(self.rate, dead, file_read, self.phases is not None, bool(self.cut))


def _name_documents(records: Sequence[Record], docs: Iterable[Doc]) -> list[Record]:
    """Records with the ids that only the work location has, and the URLs where they have none: theirs are redacted."""
    known = {(doc.source, doc.origin): doc for doc in docs}
    pairs = ((r, known.get((r.doc.source, r.doc.origin), r.doc)) for r in records)
    return [replace(r, doc=replace(doc, url=r.doc.url or doc.url)) for r, doc in pairs]


def _doc(row: Row) -> Doc:
    return Doc(row["id"].hex() if "id" in row else "", row.get("url", ""), row["source"], row["origin"])


def _round(value: Any) -> Any:
    """A float32 rounded to its precision; None for null, NaN and infinity, which JSON cannot represent."""
    if not isinstance(value, float):
        return value
    return None if value is None or not isfinite(value) else float(f"{value:.6g}")
