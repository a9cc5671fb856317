"""Deduplication as one transform: signatures/ parts in, one record batch of verdicts per part out.

    parts -> captures of addresses -> identities -> exact copies -> band hashes -> buckets -> sketches -> links
          -> components -> members -> verified removals -> what passes cut out of the kept documents
          -> verdicts

Every arrow is a shuffle of record batches (transforms/dedup/records/record_batch.py). The result depends on the
documents alone: not on the runner, the bundles, the order of elements, or how documents are spread over parts.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

import apache_beam as beam
import orjson

from refinery.loader.format.removals import REFERENCE as CORPUS_SCOPE
from refinery.loader.format.removals import WITHHELD
from refinery.transforms.core.exchange.exchange import Exchange
from refinery.transforms.core.job.read_task_list import ReadTaskList
from refinery.transforms.core.job.task_list import TaskList, write_task_list
from refinery.transforms.core.memory import family_bytes, with_memory
from refinery.transforms.dedup.components.find import FindComponents, Method, choose_method
from refinery.transforms.dedup.cutting_pass import Compared, CuttingPass
from refinery.transforms.dedup.exact_duplicates import (
    capture_batches,
    capture_removals,
    choose_captures,
    identity_batches,
    keep_first,
)
from refinery.transforms.dedup.exact_jaccard import VerifyExactly
from refinery.transforms.dedup.near_duplicates import (
    ANY_SOURCE,
    BUCKET_BYTES,
    NearParams,
    Scope,
    band_batches,
    bucket_batches,
    hash_batches,
    link_batches,
)
from refinery.transforms.dedup.records.map_record_batches import MapRecordBatches, only, without
from refinery.transforms.dedup.records.record_batch import (
    COPY_OF_DENIED,
    CORPUS,
    EXACT,
    NEAR,
    NEAR_IN_SOURCE,
    REFERENCE,
    REMOVALS,
    SCOPES,
    SOURCE,
    URL_DUP,
    KeyedBatch,
    header,
)
from refinery.transforms.dedup.reference_corpora import (
    Parts,
    ReferenceCorpus,
    listing,
    number_parts,
    reference_id_batches,
)
from refinery.transforms.dedup.signatures import SignatureParams, compare_key
from refinery.transforms.dedup.stages import UrlDupParams
from refinery.transforms.dedup.verdicts import STAGES
from refinery.transforms.dedup.verify_similarity import member_batches, verify_batches
from refinery.transforms.dedup.write_verdicts import AssembleVerdicts, WriteVerdicts

# A hash takes a sixth of the memory of a candidate with its sketch, so a key of the shuffle may have more of them: the
# fewer the keys, the larger the batches.
HASHES_PER_SKETCH = 4

__all__ = ["DedupParams", "Deduplicate", "PartLists", "WriteVerdicts", "list_parts"]


@dataclass(frozen=True)
class DedupParams:
    """exact: remove documents with equal text. near: remove documents that are near duplicates of a better one, or
    null. urls: before all, keep one capture of every address, or null.

    in_source: before that, the same within each source: source -> parameters, "*" for all others; null leaves a source
    out. cutting: passes that look for what is cut out of the kept documents, each with its parameters. labels: nothing
    is removed, and what would have been is counted as found. withheld: whether copies of what the lane dropped for its
    licence are removed.
    """

    exact: bool = True
    near: NearParams | None = field(default_factory=NearParams)
    in_source: Mapping[str, NearParams | None] = field(default_factory=lambda: MappingProxyType({}))
    urls: UrlDupParams | None = None
    cutting: tuple[tuple[CuttingPass[Any], Any], ...] = ()
    labels: bool = False
    withheld: bool = False

    def scopes(self, sources: Sequence[str]) -> Iterator[tuple[Scope, NearParams]]:
        """The passes over near duplicates, in order; sources with the same parameters share one."""
        names = sorted(sources)
        own = {name: self.in_source.get(name, self.in_source.get(ANY_SOURCE)) for name in names}
        for near in dict.fromkeys(own.values()):
            if near is not None:
                chosen = tuple(code for code, name in enumerate(names) if own[name] == near)
                yield Scope(NEAR_IN_SOURCE, SOURCE, chosen, apart=True), near
        if self.near is not None:
            yield Scope(NEAR, CORPUS, tuple(range(len(names))), apart=False), self.near


@dataclass(frozen=True)
class PartLists:
    """The input, as `list_parts` publishes it: headers of signatures/ parts, listings of provenance files.

    listings: None without reference corpora. numbers: numbering of the parts. documents: rows of all parts. corpora:
    names of the reference corpora, in order.
    """

    headers: TaskList
    listings: TaskList | None
    numbers: Parts
    documents: int
    corpora: tuple[str, ...]


def list_parts(
    location: str,
    parts: Sequence[tuple[str, int]],
    reference_corpora: tuple[ReferenceCorpus, ...] = (),
    withheld: Sequence[tuple[str, int]] = (),
) -> PartLists:
    """Publish the lists that `Deduplicate` reads in that work location.

    parts: (url, rows) of each part; their order numbers them. reference_corpora: published corpora whose documents
    win. withheld: (url, rows) of signatures of what was dropped with its copies; it wins over all others.
    """
    if withheld:
        if any(f"{CORPUS_SCOPE}{corpus.name}" == WITHHELD for corpus in reference_corpora):
            raise ValueError("reference_corpora: prefix 'withheld' given, any other is allowed")
        dropped = ReferenceCorpus(WITHHELD.removeprefix(CORPUS_SCOPE), tuple(withheld), ())
        reference_corpora = (dropped, *reference_corpora)
    every = [*parts, *(part for corpus in reference_corpora for part in corpus.parts)]
    headers = [orjson.dumps([number, url, rows]) for number, (url, rows) in enumerate(every)]
    listings = [
        listing(*file, REFERENCE + i) for i, corpus in enumerate(reference_corpora) for file in corpus.provenance
    ]
    return PartLists(
        headers=write_task_list(location, "dedup", headers),
        listings=write_task_list(location, "dedup", listings) if len(reference_corpora) > bool(withheld) else None,
        numbers=number_parts(len(parts), reference_corpora, bool(withheld)),
        documents=sum(rows for _, rows in every),
        corpora=tuple(corpus.name for corpus in reference_corpora),
    )


def _header(line: bytes) -> KeyedBatch:
    return header(*orjson.loads(line))


def _listing(line: bytes) -> KeyedBatch:
    return 0, line


@dataclass
class Deduplicate(beam.PTransform):
    """Decide which documents of these signatures/ parts are kept: -> (number of the part, serialized verdicts).

    sources: names of all sources. lists: of `list_parts`. partitions: keys of each shuffle (bands times as many for
    sketches, a quarter of that for band hashes); about one per 250,000 documents keeps a key's rows below 25 MB.
    components: how links become components, null chooses by the number of documents; the answer is the same. salt: for
    the key of comparisons where signatures have no secret (`compare_key`): who writes a text may not know it.
    Raises ValueError when the bands do not fit the signatures, for parameters of an unknown source, and for
    reference corpora without exact removal.
    """

    params: DedupParams
    signature: SignatureParams
    sources: Sequence[str]
    lists: PartLists
    partitions: int = 1
    components: Method | None = None
    salt: str = ""

    def __post_init__(self) -> None:
        super().__init__("deduplicate")
        if self.partitions < 1:
            raise ValueError(f"partitions: {self.partitions} given, 1 or more is allowed")
        for near in (*self.params.in_source.values(), self.params.near):
            if near is not None:
                near.layout(near.compared(self.signature.permutations))
        for name in self.params.in_source:
            if name not in (*self.sources, ANY_SOURCE):
                raise ValueError(f"in_source: {name!r} given, one of {sorted(self.sources)} or '*' is allowed")
        if self.lists.listings is not None and not self.params.exact:
            raise ValueError(
                "reference_corpora: corpora given with exact removal off, which is needed to know their ids"
            )

    def expand(self, pipeline: beam.Pipeline) -> beam.PCollection:
        sources = tuple(sorted(self.sources))
        numbered, documents = self.lists.numbers, self.lists.documents
        lines = pipeline | ReadTaskList(self.lists.headers)
        headers = lines | "headers" >> beam.Map(_header).with_output_types(tuple[int, bytes])
        decided, stages = [headers], [COPY_OF_DENIED] if self.params.withheld else []
        if self.params.urls is not None:
            stages.append(URL_DUP)
            decided.append(headers | RemoveUrls(self.params.urls, numbered, self.partitions))
        if self.params.exact:
            stages.append(EXACT)
            decided += tuple(decided) | RemoveExact(sources, self.lists, self.partitions)
        for number, (scope, near) in enumerate(self.params.scopes(sources)):
            if scope.reason not in stages:
                stages.append(scope.reason)
            step = f"{STAGES[scope.reason]}{f'-{number + 1}' if scope.apart else ''}"
            find = FindComponents(
                stage=STAGES[scope.reason],
                scope=step,
                method=self.components or choose_method(documents),
                partitions=max(1, self.partitions // 4),  # a link is small: one key per million documents
                documents=documents,
            )
            settled = near.settled(self.signature)
            remove = RemoveNear(
                step, settled, scope, find, self.signature, sources, numbered, self.partitions, self.salt
            )
            decided += tuple(decided) | remove
        before = tuple(decided)
        key = partial(compare_key, self.signature, self.salt)
        compared = Compared(sources, numbered, self.partitions, key)
        decided += [before | stage.transform(params, compared) for stage, params in self.params.cutting]
        grouped = tuple(decided) | Exchange("by part")  # (part, header, removals, copies, cuts)
        scopes = (*SCOPES, *(f"{CORPUS_SCOPE}{name}" for name in self.lists.corpora))
        cuts = tuple(stage.cuts for stage, _ in self.params.cutting)
        return grouped | AssembleVerdicts(
            sources, scopes, tuple(stages), numbered, cuts, self.params.labels
        )  # (part, serialized verdicts)


@dataclass
class RemoveUrls(beam.PTransform):
    """Headers of parts -> removals of all but one capture of every address, by part."""

    params: UrlDupParams
    parts: Parts
    partitions: int

    def __post_init__(self) -> None:
        super().__init__(STAGES[URL_DUP])

    def expand(self, headers: beam.PCollection) -> beam.PCollection:
        stage = STAGES[URL_DUP]
        read = partial(capture_batches, prefer=self.params.prefer, parts=self.parts, partitions=self.partitions)
        captures = headers | Exchange("to read") | MapRecordBatches(stage, "captures", read, by_part=True)
        grouped = captures | Exchange("by address")  # (range, captures)
        chosen = grouped | MapRecordBatches(stage, "choose", choose_captures)
        placed = (headers, chosen) | Exchange("to remove")  # (part, header and chosen captures)
        return placed | MapRecordBatches(stage, "remove", capture_removals, by_part=True)


@dataclass
class RemoveExact(beam.PTransform):
    """(headers of parts, removals so far by part, ...) -> PCollections of removals and copies by part."""

    sources: tuple[str, ...]
    lists: PartLists
    partitions: int

    def __post_init__(self) -> None:
        super().__init__(STAGES[EXACT])

    def expand(self, before: Any) -> Any:
        stage, parts, partitions = STAGES[EXACT], self.lists.numbers, self.partitions
        read = partial(identity_batches, sources=self.sources, parts=parts, partitions=partitions)
        first = partial(keep_first, parts=parts)
        placed = before | Exchange("to read")  # (part, header and removals)
        combined = placed | MapRecordBatches(stage, "identities", read, by_part=True)
        later = combined | "later in part" >> only(REMOVALS)  # (part, removals)
        found = [combined | "first of part" >> without(REMOVALS)]  # (range, identities)
        if self.lists.listings is not None:
            lines = placed.pipeline | "provenance" >> ReadTaskList(self.lists.listings)
            files = lines | "listings" >> beam.Map(_listing).with_output_types(tuple[int, bytes])
            ids = partial(reference_id_batches, partitions=partitions)
            found.append(files | MapRecordBatches(stage, "reference-ids", ids, stream=True))  # (range, ids)
        decided = tuple(found) | Exchange("by id") | MapRecordBatches(stage, "keep-first", first)
        return later, decided


@dataclass
class RemoveNear(beam.PTransform):
    """(headers of parts, removals and copies so far by part, ...) -> PCollections of near removals of one scope and
    copies by part."""

    step: str
    near: NearParams
    scope: Scope
    components: FindComponents
    signature: SignatureParams
    sources: tuple[str, ...]
    parts: Parts
    partitions: int
    salt: str

    def __post_init__(self) -> None:
        super().__init__(self.step)

    def expand(self, decided: Any) -> Any:
        stage, near = STAGES[self.scope.reason], self.near
        permutations = near.compared(self.signature.permutations)
        values: dict[str, Any] = {"permutations": permutations}
        spread: dict[str, Any] = {**values, "parts": self.parts, "partitions": self.partitions}
        hashed: dict[str, Any] = {"parts": self.parts, "partitions": max(1, self.partitions // HASHES_PER_SKETCH)}
        make_hashes = partial(hash_batches, params=near, scope=self.scope, names=self.sources, **values, **hashed)
        find_buckets = partial(bucket_batches, **hashed)
        make_bands = partial(band_batches, **spread)
        make_links = partial(link_batches, params=near, parts=self.parts, **values)
        make_members = partial(member_batches, sources=self.sources, **spread)
        verify = partial(verify_batches, params=near, scope=self.scope, parts=self.parts, **values)
        headers = decided[0]
        documents = self.components.documents
        buckets = with_memory(
            MapRecordBatches(stage, "buckets", find_buckets, stream=True), family_bytes(documents, BUCKET_BYTES)
        )

        hashes = (
            decided | Exchange("to hash") | MapRecordBatches(stage, "hashes", make_hashes, by_part=True)
        )  # ((band, range), hashes)
        shared = hashes | Exchange("by hash", like=buckets) | buckets  # (part, shared)
        wanted = (headers, shared) | Exchange("to sketch")  # (part, header and candidates)
        bands = wanted | MapRecordBatches(
            stage, "bands", make_bands, by_part=True
        )  # ((band, range), candidates with sketches)
        links = bands | Exchange("by band") | MapRecordBatches(stage, "links", make_links, stream=True)  # (0, links)
        labels = links | self.components  # (part, labels)
        placed = (*decided, labels) | Exchange("to verify")  # (part, header, copies, labels)
        members = placed | MapRecordBatches(
            stage, "members", make_members, by_part=True
        )  # (range of components, members and copies)
        grouped = members | Exchange("by component")
        if near.verify == "exact":
            exactly = VerifyExactly(stage, near, self.scope, self.parts, self.signature, self.salt)
            both: tuple[beam.PCollection, ...] = (*decided, grouped) | exactly
            return both  # (part, removals and copies)
        return (grouped | MapRecordBatches(stage, "verify", verify, stream=True),)  # (part, removals and copies)
