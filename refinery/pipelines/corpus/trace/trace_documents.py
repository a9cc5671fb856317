"""`refinery trace`: what became of a page, from the published files of a corpus, and from work/ if it is still there.

A pure core: `trace` takes queries and returns answers as data; pipelines/corpus/trace/trace_text.py formats them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from math import isfinite
from typing import Any

from refinery.loader.errors import FormatError
from refinery.loader.format.document_fields import DEAD_LETTERS, REJECTS, names_of
from refinery.loader.format.manifest import Manifest, ShardEntry
from refinery.loader.format.removals import REFERENCE, URL_DUPLICATE
from refinery.pipelines.corpus.trace.answers import (
    Answer,
    Cycle,
    Dead,
    Doc,
    Elsewhere,
    End,
    Kept,
    Missing,
    Passed,
    Query,
    Record,
    Rejected,
    Removed,
    Step,
    Trace,
)
from refinery.pipelines.corpus.trace.by_token import find_shard, text_around
from refinery.pipelines.corpus.trace.lookup import find_documents, input_files
from refinery.pipelines.corpus.trace.takedowns import doc_of, find_taken_down, takedowns_of_texts, with_returns
from refinery.pipelines.published.find_rows import Row, Wanted, find_kept, find_records, find_removed
from refinery.pipelines.published.lookup_index import LookupIndex
from refinery.pipelines.published.published import PublishedCorpus
from refinery.pipelines.published.scan import Say, silent
from refinery.pipelines.published.shard_tokens import find_token, shard_path
from refinery.pipelines.run.phases import Phase, read_phase
from refinery.transforms.core.names import OVER_TARGET, TARGET_STAGE
from refinery.transforms.redaction.redact_address import redact_address

REJECTED = tuple(name for name in names_of(REJECTS) if name != "excerpt")  # older corpora do not have the last


def trace(
    prefix: str, queries: Sequence[Query], work: str = "", say: Say = silent, corpus: PublishedCorpus | None = None
) -> Trace:
    """What became of the queried documents in the corpus at `prefix` (a local folder, gs:// or s3://).

    work: the work location (default: PREFIX/work), searched where it belongs to this corpus. say: receives progress
    lines. corpus: the one at `prefix`, where it is opened. Raises FormatError where there is no corpus, OSError for
    a file that cannot be read, ValueError without a query.

    Cost: an id, a text or a token takes the one shard of a domain and split, and the one file of removals, that its
    hash or name says, and work/ only where it is not there. A URL or an origin takes 0.2 MB of the lookup index and the
    files that it names, and where none has it a pass over that column of work/documents/; in a corpus without an index
    a pass over that column of every file. Memory: one row group of the searched columns for each thread, and the rows
    found.
    """
    if not queries:
        raise ValueError("nothing to trace: give --url, --id, --origin, --token, --text or --urls")
    return _Tracer(prefix, work or f"{prefix.rstrip('/')}/work", say, corpus).trace(tuple(dict.fromkeys(queries)))


class _Tracer:
    def __init__(self, prefix: str, work: str, say: Say, corpus: PublishedCorpus | None) -> None:
        self.say = say
        self.corpus = corpus or PublishedCorpus(prefix)
        self.manifest = self.corpus.manifest
        if self.corpus.is_adopted:
            raise FormatError(f"{prefix} was adopted from files without provenance, so it cannot be traced")
        self.run = self.corpus.run
        self.index = LookupIndex(self.corpus, say)
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
        at = {query: self._at_token(query) for query in queries if query.field == "token"}
        keys = [query.key for query in queries]
        wanted = Wanted(
            frozenset(value for field, value in keys if field == "url"),
            frozenset(bytes.fromhex(value) for field, value in keys if field == "id"),
            frozenset(value for field, value in keys if field == "origin"),
        )
        kept = self._find_kept(wanted)
        removed = list(find_removed(self.corpus, wanted, self.index, self.say))
        self._follow({row["kept_id"] for row in removed if not row["scope"].startswith(REFERENCE)})
        ends = {bytes.fromhex(id_) for row in removed if (id_ := self._last(row)) is not None}

        known = {row["id"] for row in removed if row["reason"] != URL_DUPLICATE}  # of which others may have the id
        known |= {bytes.fromhex(id_) for id_ in self.kept}
        left = wanted.id - known if self.manifest.recipe.get("exact_dup", True) else wanted.id  # else several have one
        shown = wanted.url | {redact_address(url) for url in wanted.url}  # older corpora have them as they were
        gone = replace(wanted, url=shown, id=wanted.id | ends)
        taken_down = list(find_taken_down(self.corpus, gone))
        listed = Wanted(shown, origin=wanted.origin)
        records = self._records(listed) if self.index.files else []
        answered = [*(each.doc for each in (*kept, *taken_down, *records)), *map(doc_of, removed)]
        rest = self._unanswered(wanted, answered)
        unfinished = self._find_documents(replace(rest, id=left | ends), {each.doc for each in taken_down})
        more = frozenset(doc.origin for doc in unfinished)
        again = Wanted(origin=more) if self.index.files else replace(listed, origin=listed.origin | more)
        records = list(dict.fromkeys([*records, *self._records(again)]))
        records = _name_documents(records, unfinished)
        seen = {(r.doc.source, r.doc.origin) for r in records}
        records += [self._passed(doc) for doc in unfinished if (doc.source, doc.origin) not in seen]
        for record in records:
            self.lost.setdefault(record.doc.id, record)

        answers: list[Answer] = [*kept, *(self._chain(row) for row in removed), *taken_down, *records]
        told = tuple(self._sort_out(queries, answers, at))
        if any(isinstance(answer, Missing) for _, answer in told):
            self.notes += takedowns_of_texts(self.manifest)
        return Trace(told, input_files(self.run), tuple(self.notes))

    def _at_token(self, query: Query) -> Kept:
        """The document that a token is in."""
        name, offset = query.place()
        shard = find_shard(self.manifest, name)
        number, row = find_token(self.corpus, shard, offset)
        around = text_around(self.corpus, shard, row, offset)
        return replace(kept_answer(self.manifest, shard, number, row), around=around)

    def _records(self, wanted: Wanted) -> list[Record]:
        """What rejects/ and dead_letters/ list of these addresses and origins."""

        def find(folder: str, columns: Sequence[str]) -> Iterator[Row]:
            chosen = wanted if "url" in columns else replace(wanted, url=frozenset())
            return find_records(self.corpus, folder, chosen, columns, self.index, self.say)

        rejected = (
            Rejected(doc_of(row), row["stage"], row["reason"], row.get("found") or "")
            for row in find(REJECTS, REJECTED)
        )
        dead = (
            Dead(doc_of(row), row["stage"], row["error"], row["sha256"], row["size"])
            for row in find(DEAD_LETTERS, names_of(DEAD_LETTERS))
        )
        return [*rejected, *dead]

    def _unanswered(self, wanted: Wanted, docs: Sequence[Doc]) -> Wanted:
        """Addresses and origins that are to be looked for in work/, where a pass over all parts is the only way: those
        of none of these documents. All of them in a corpus without an index, where everything was read already."""
        if not self.index.files:
            return wanted
        urls, origins = {doc.url for doc in docs}, {doc.origin for doc in docs}
        left = frozenset(url for url in wanted.url if not {url, redact_address(url)} & urls)
        return replace(wanted, url=left, origin=wanted.origin - origins)

    def _find_kept(self, wanted: Wanted) -> list[Kept]:
        rows = find_kept(self.corpus, wanted, self.index, self.say)
        found = [kept_answer(self.manifest, *each) for each in rows]
        found = with_returns(self.corpus, found)
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
            for row in find_removed(self.corpus, Wanted(id=rest), self.index, self.say):
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
        kept = [*(doc_of(after) for after in rows[1:]), end.doc]
        steps = (
            Step(r["reason"], r["scope"], _round(r["similarity"]) or 0.0, doc)
            for r, doc in zip(rows, kept, strict=True)
        )
        return Removed(doc_of(row), tuple(steps), end)

    def _find_documents(self, wanted: Wanted, taken_down: Set[Doc]) -> list[Doc]:
        """Documents that deduplication kept and that did not reach the corpus, from the work location; not those that
        were taken out of it."""
        if not self.phases or not wanted:
            return []
        try:
            found = [doc_of(row) for row in find_documents(*self.phases, wanted, self.say)]
        except (FormatError, OSError) as error:
            self.notes.append(f"work/ was not searched: {error}")
            self.phases = None
            return []
        reached = taken_down | {one.doc for many in self.kept.values() for one in many}
        return [doc for doc in found if doc not in reached]

    def _passed(self, doc: Doc) -> Passed | Rejected:
        """What became of a document that was dropped after deduplication and is not listed. Where all that rules drop
        is listed, only the target is left."""
        if doc.source in self.cut and self.rate == 1:
            return Rejected(doc, TARGET_STAGE, OVER_TARGET)
        return Passed(doc, self.rate, doc.source in self.cut)

    def _sort_out(
        self, queries: Iterable[Query], answers: Sequence[Answer], at: Mapping[Query, Kept]
    ) -> Iterable[tuple[Query, Answer]]:
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
            if query in at:
                yield query, at[query]
                continue
            field, value = query.key
            values = (value, redact_address(value)) if field == "url" else (value,)
            found = [answer for value in dict.fromkeys(values) for answer in by_value.get((field, value), [])]
            yield from ((query, answer) for answer in found)
            if not found:
                file_read = query.value.rpartition("@")[0] in paths if query.field == "origin" else None
                if file_read is False and earlier:
                    file_read = None
                yield query, Missing(self.rate, dead, file_read, self.phases is not None, bool(self.cut))


def kept_answer(manifest: Manifest, shard: ShardEntry, number: int, row: Row) -> Kept:
    """A document of a shard, from its provenance row."""
    return Kept(
        doc=doc_of(row),
        shard=shard_path(shard),
        document=number,
        token_offset=row.get("token_offset", -1),
        token_count=row.get("token_count", -1),
        text_bytes=row["text_bytes"],
        copies=row["copies"],
        sources=tuple(row["sources"]),
        columns={column.name: _round(row[column.name]) for column in manifest.columns},
    )


def _name_documents(records: Sequence[Record], docs: Iterable[Doc]) -> list[Record]:
    """Records with the ids that only the work location has, and the URLs where they have none: theirs are redacted."""
    known = {(doc.source, doc.origin): doc for doc in docs}
    pairs = ((r, known.get((r.doc.source, r.doc.origin), r.doc)) for r in records)
    return [replace(r, doc=replace(doc, url=r.doc.url or doc.url)) for r, doc in pairs]


def _round(value: Any) -> Any:
    """A float32 rounded to its precision; None for null, NaN and infinity, which JSON cannot represent."""
    if not isinstance(value, float):
        return value
    return None if value is None or not isfinite(value) else float(f"{value:.6g}")
