"""Deduplication of made-up documents, and the same verdicts by brute force."""

import math
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from refinery.loader.storage.store import size_and_crc32c
from refinery.transforms.core.address.normalise import normalise_address
from refinery.transforms.core.document import Document
from refinery.transforms.core.exchange.side_outputs import take_side_outputs
from refinery.transforms.core.job.report import merge_records
from refinery.transforms.dedup.deduplicate import Deduplicate, DedupParams, WriteVerdicts, list_parts
from refinery.transforms.dedup.near_duplicates import NearParams, sketches
from refinery.transforms.dedup.records.rank import RankParams, rank_key, seconds_of_date
from refinery.transforms.dedup.reference_corpora import ReferenceCorpus
from refinery.transforms.dedup.signatures import SignatureParams, compute_signatures, signature_table
from refinery.transforms.dedup.stages import URL_DUPLICATES
from refinery.transforms.dedup.verdicts import VERDICTS_SCHEMA
from tests.beam import make_document, run_and_collect

SIGNATURE = SignatureParams()
PRIORITIES = {"books": 1, "forum": 2, "web": 2}
DOMAINS = {"books": "prose", "forum": "web", "web": "web"}
SOURCES = ("web", "forum", "books")
Verdicts = dict[str, dict]  # origin -> row of its verdict


def write_parts(folder: Path, layout: Sequence[Sequence[Document]], group: int = 50) -> list[tuple[str, int]]:
    parts = []
    (folder / "signatures").mkdir(parents=True)
    for number, docs in enumerate(layout):
        table = signature_table(
            ids=[d.id for d in docs],
            ranks=[rank_key(d, PRIORITIES[d.source], RankParams()) for d in docs],
            sources=[d.source for d in docs],
            domains=[DOMAINS[d.source] for d in docs],
            sizes=[len(d.text.encode()) for d in docs],
            signatures=compute_signatures([d.text for d in docs], SIGNATURE),
            more=URL_DUPLICATES.hashed.made(docs, SIGNATURE),
        )
        path = f"{folder}/signatures/part-{number}.parquet"
        pq.write_table(table, path, compression="none", row_group_size=group)
        parts.append((path, len(docs)))
    return parts


@dataclass
class Outcome:
    verdicts: Verdicts
    report: dict


def publish(folder: Path, docs: Sequence[Document], unpublished: Sequence[Document] = ()) -> ReferenceCorpus:
    """A published corpus of `docs`, in two parts that also hold documents that its later stages dropped."""
    both = [*docs, *unpublished]
    parts = write_parts(folder, [both[::2], both[1::2]])
    provenance = folder / "provenance.parquet"
    pq.write_table(pa.table({"id": pa.array([d.id for d in docs], pa.binary(16))}), provenance)
    return ReferenceCorpus(folder.name, tuple(parts), ((str(provenance), len(docs), size_and_crc32c(provenance)[1]),))


def by_estimate(params: DedupParams) -> DedupParams:
    """The same, decided by signatures alone: the parts here have no texts."""
    own = {name: near and near.replace(verify="signature") for name, near in params.in_source.items()}
    return replace(params, near=params.near and params.near.replace(verify="signature"), in_source=own)


def deduplicate(
    folder: Path,
    layout: Sequence[Sequence[Document]],
    params: DedupParams | None = None,
    partitions: int = 1,
    flags: Sequence[str] = (),
    reference_corpora: tuple[ReferenceCorpus, ...] = (),
) -> Outcome:
    parts = write_parts(folder, layout)
    lists = list_parts(str(folder), parts, reference_corpora)
    params = by_estimate(params or DedupParams())

    def build(pipeline):
        packed = pipeline | Deduplicate(params, SIGNATURE, SOURCES, lists, partitions)
        packed | WriteVerdicts(str(folder), SOURCES)
        return [packed, *take_side_outputs(pipeline)]

    packed, *side_outputs = run_and_collect(build, *flags)
    assert sorted(part for part, _ in packed) == list(range(len(layout)))
    report = merge_records(record for side in side_outputs for record in side)
    verdicts: Verdicts = {}
    for (url, rows), docs in zip(parts, layout, strict=True):
        table = pq.read_table(url.replace("signatures", "verdicts"), partitioning=None)
        assert table.schema.names == VERDICTS_SCHEMA.names
        assert [field.type for field in table.schema] == [
            pa.list_(pa.field("element", field.type.value_type)) if pa.types.is_list(field.type) else field.type
            for field in VERDICTS_SCHEMA
        ]
        assert table.num_rows == rows
        verdicts |= {doc.origin: row for doc, row in zip(docs, table.to_pylist(), strict=True)}
    return Outcome(verdicts, report)


Decisions = dict[str, tuple[Document, str, float, str]]  # origin -> representative, reason, similarity, scope


def brute_force(
    docs: Sequence[Document], params: DedupParams, reference_corpora: Mapping[str, Sequence[Document]] | None = None
) -> Verdicts:
    """The same verdicts by brute force: all pairs, plain sets and dicts. reference_corpora: documents of published
    corpora.
    """
    corpus_of = {d.origin: name for name, others in (reference_corpora or {}).items() for d in others}
    everyone = [d for others in (reference_corpora or {}).values() for d in others] + list(docs)

    def order(doc: Document) -> tuple[int, bytes, bytes]:
        rank = rank_key(doc, PRIORITIES[doc.source], RankParams())
        if doc.origin in corpus_of:  # the recipe's order of corpora stands for the priority
            return (list(reference_corpora or {}).index(corpus_of[doc.origin]), rank[8:], doc.id)
        return (len(reference_corpora or {}), rank, doc.id)

    def scope_of(representative: Document, scope: str) -> str:
        return f"reference:{corpus_of[representative.origin]}" if representative.origin in corpus_of else scope

    by_rank = sorted(everyone, key=order)
    decided: Decisions = {}
    if params.urls is not None:
        own = [d for d in docs if normalise_address(d.url)]
        best: dict[str, Document] = {}
        for doc in sorted(own, key=lambda d: capture_order(d, params.urls.prefer if params.urls else "")):
            kept = best.setdefault(normalise_address(doc.url), doc)
            if (kept.source, kept.origin) != (doc.source, doc.origin):
                decided[doc.origin] = (kept, "url-duplicate", 0.0, "corpus")
        by_rank = [d for d in by_rank if d.origin not in decided]
    if params.exact:
        firsts: dict[bytes, Document] = {}
        for doc in by_rank:
            if firsts.setdefault(doc.id, doc) is not doc:
                decided[doc.origin] = (firsts[doc.id], "exact-duplicate", 1.0, scope_of(firsts[doc.id], "corpus"))
    for source in sorted(SOURCES):
        near = params.in_source.get(source, params.in_source.get("*"))
        if near is not None:
            own = [d for d in by_rank if d.source == source and d.origin not in corpus_of and d.origin not in decided]
            for doc, better, similarity in near_pairs(own, near, set()):
                decided[doc.origin] = (better, "near-duplicate-in-source", similarity, "source")
    if params.near is not None:
        alive = [d for d in by_rank if d.origin not in decided]
        for doc, better, similarity in near_pairs(alive, params.near, set(corpus_of)):
            decided[doc.origin] = (better, "near-duplicate", similarity, scope_of(better, "corpus"))

    copies_of: dict[str, list[str]] = defaultdict(list)
    for doc in docs:
        if decided.get(doc.origin, (None, ""))[1] == "url-duplicate":  # not a copy of what is kept
            continue
        last = doc
        while last.origin in decided:
            last = decided[last.origin][0]
        copies_of[last.origin].append(doc.source)
    verdicts = {}
    for doc in docs:
        better, reason, similarity, scope = decided.get(doc.origin, (None, "", math.nan, ""))
        verdicts[doc.origin] = {
            "removed": bool(reason),
            "reason": reason,
            "kept_id": better.id if better else None,
            "similarity": float(np.float32(similarity)) if reason else None,
            "scope": scope,
            "copies": len(copies_of[doc.origin]),
            "sources": sorted(set(copies_of[doc.origin])),
            "cut": [],
            "cut_spans": [],
        }
    return verdicts


def capture_order(doc: Document, prefer: str) -> tuple[object, ...]:
    date, size = -seconds_of_date(doc.meta.get("date", "")), -len(doc.text.encode())
    first = (date, PRIORITIES[doc.source], size) if prefer == "newest" else (size, date, PRIORITIES[doc.source])
    return (*first, doc.id, rank_key(doc, 0, RankParams())[16:])


def near_pairs(
    ranked: Sequence[Document], near: NearParams, always_stay: set[str]
) -> list[tuple[Document, Document, float]]:
    """(removed, representative, similarity) among documents in rank order; those whose origin is in `always_stay`
    stay.
    """
    used = near.compared(SIGNATURE.permutations)
    rows = compute_signatures([d.text for d in ranked], SIGNATURE)[:, :used]
    sketch = sketches(rows)
    nibbles = np.concatenate([sketch & 15, sketch >> 4], axis=1)
    bands, size = near.layout(used)
    banded = rows[:, : bands * size].reshape(len(rows), bands, size)
    labels = list(range(len(ranked)))
    for i in range(len(ranked)):
        candidates = (banded[:i] == banded[i]).all(axis=2).any(axis=1)
        alike = (nibbles[:i] == nibbles[i]).sum(axis=1) >= near.minimum(used)
        for j in np.flatnonzero(candidates & alike).tolist():
            low, high = sorted((labels[i], labels[j]))
            labels = [low if label == high else label for label in labels]
    kept: dict[int, list[int]] = defaultdict(list)
    found = []
    for i, doc in enumerate(ranked):
        for j in kept[labels[i]] if doc.origin not in always_stay else []:
            similarity = float((rows[i] == rows[j]).mean())
            if similarity >= near.threshold:
                found.append((doc, ranked[j], similarity))
                break
        else:
            kept[labels[i]].append(i)
    return found


def corpus(seed: int, originals: int = 60) -> list[Document]:
    """Random texts, and mutated, shortened and exact copies of them in several sources."""
    rng = random.Random(seed)
    texts = []
    for _ in range(originals):
        words = [f"w{rng.randrange(5000)}" for _ in range(rng.choice([3, 30, 120, 300]))]
        texts.append(" ".join(words))
        for _ in range(rng.choice([0, 0, 1, 3, 8])):
            mutated = list(words)
            for _ in range(int(len(words) * rng.choice([0, 0, 0.01, 0.03, 0.06]))):
                mutated[rng.randrange(len(mutated))] = f"x{rng.randrange(5000)}"
            texts.append(" ".join(mutated))
    texts += ["", "", "one", "One!", "one", "two words", "!!!"]
    return [make_document(text, f"o{i}", url=f"u{i % 7}", source=rng.choice(SOURCES)) for i, text in enumerate(texts)]


def layout_of(docs: Sequence[Document], parts: int, seed: int) -> list[list[Document]]:
    """The documents in another order, dealt at random to parts (of which some may be empty)."""
    rng = random.Random(seed)
    layout: list[list[Document]] = [[] for _ in range(parts)]
    for doc in rng.sample(list(docs), len(docs)):
        layout[rng.randrange(parts)].append(doc)
    return layout


def check_conservation(docs: Sequence[Document], outcome: Outcome, params: DedupParams) -> None:
    counters = {(t["stage"], t["source"], t["outcome"]): t for t in outcome.report["counters"]}
    stages = ["url-duplicates"] * (params.urls is not None) + ["exact-duplicates"] * params.exact
    stages += ["near-duplicates-in-source"] * bool(params.in_source)
    stages += ["near-duplicates"] * (params.near is not None)
    assert {stage for stage, _, _ in counters} == set(stages)
    for source in SOURCES:
        own = [d for d in docs if d.source == source]
        entering = (len(own), sum(len(d.text.encode()) for d in own))
        for stage in stages:
            numbers = {}
            for result in ("in", "kept", "dropped"):
                counter = counters.get((stage, source, result), {"documents": 0, "bytes": 0})
                numbers[result] = (counter["documents"], counter["bytes"])
            assert numbers["in"] == entering == tuple(map(sum, zip(numbers["kept"], numbers["dropped"], strict=True)))
            entering = numbers["kept"]
        kept = [d for d in own if not outcome.verdicts[d.origin]["removed"]]
        assert entering == (len(kept), sum(len(d.text.encode()) for d in kept))
    captures = sum(v["reason"] == "url-duplicate" for v in outcome.verdicts.values())
    assert sum(v["copies"] for v in outcome.verdicts.values()) == len(docs) - captures
    representatives: dict[str, dict[str, int]] = defaultdict(lambda: {"documents": 0, "bytes": 0})
    for doc in docs:
        if not outcome.verdicts[doc.origin]["removed"]:
            representatives[DOMAINS[doc.source]]["documents"] += 1
            representatives[DOMAINS[doc.source]]["bytes"] += len(doc.text.encode())
    assert outcome.report["kept"] == representatives
