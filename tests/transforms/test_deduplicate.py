import math
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner

from tests.beam import make_document, run_and_collect
from transforms.deduplicate import Deduplicate, DedupParams, WriteVerdicts
from transforms.document import Document
from transforms.near_duplicates import NearParams, sketches
from transforms.per_document import take_sides
from transforms.rank import RankParams, rank_key
from transforms.report import merge_records
from transforms.signatures import SignatureParams, compute_signatures, signature_table
from transforms.verdicts import VERDICTS_SCHEMA

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
        )
        path = f"{folder}/signatures/part-{number}.parquet"
        pq.write_table(table, path, compression="none", row_group_size=group)
        parts.append((path, len(docs)))
    return parts


@dataclass
class Outcome:
    verdicts: Verdicts
    report: dict


def deduplicate(
    folder: Path,
    layout: Sequence[Sequence[Document]],
    params: DedupParams | None = None,
    partitions: int = 1,
    flags: Sequence[str] = (),
) -> Outcome:
    parts = write_parts(folder, layout)

    def build(pipeline):
        packed = pipeline | Deduplicate(params or DedupParams(), SIGNATURE, SOURCES, parts, partitions)
        packed | WriteVerdicts(str(folder), SOURCES, parts)
        return [packed, *take_sides(pipeline)]

    packed, *sides = run_and_collect(build, *flags)
    assert sorted(part for part, _ in packed) == list(range(len(layout)))
    report = merge_records(record for side in sides for record in side)
    verdicts: Verdicts = {}
    for (url, rows), docs in zip(parts, layout, strict=True):
        table = pq.read_table(url.replace("signatures", "verdicts"), partitioning=None)
        assert table.schema.names == VERDICTS_SCHEMA.names
        assert [field.type for field in table.schema] == [
            pa.list_(pa.field("element", pa.string())) if pa.types.is_list(field.type) else field.type
            for field in VERDICTS_SCHEMA
        ]
        assert table.num_rows == rows
        verdicts |= {doc.origin: row for doc, row in zip(docs, table.to_pylist(), strict=True)}
    return Outcome(verdicts, report)


def reference(docs: Sequence[Document], params: DedupParams) -> Verdicts:
    """The same verdicts by brute force: all pairs, plain sets and dicts."""
    signatures = compute_signatures([d.text for d in docs], SIGNATURE)
    order = {d.origin: (rank_key(d, PRIORITIES[d.source], RankParams()), d.id) for d in docs}
    by_rank = sorted(docs, key=lambda d: order[d.origin])
    survivor: dict[str, tuple[Document, str, float]] = {}
    if params.exact:
        firsts: dict[bytes, Document] = {}
        for doc in by_rank:
            if firsts.setdefault(doc.id, doc) is not doc:
                survivor[doc.origin] = (firsts[doc.id], "exact-duplicate", 1.0)
    if params.near is not None:
        alive = [d for d in by_rank if d.origin not in survivor]
        place = {d.origin: i for i, d in enumerate(docs)}
        rows = signatures[[place[d.origin] for d in alive]]
        sketch = sketches(rows)
        nibbles = np.concatenate([sketch & 15, sketch >> 4], axis=1)
        bands, size = params.near.layout(SIGNATURE.permutations)
        banded = rows[:, : bands * size].reshape(len(rows), bands, size)
        labels = list(range(len(alive)))
        for i in range(len(alive)):
            candidates = (banded[:i] == banded[i]).all(axis=2).any(axis=1)
            alike = (nibbles[:i] == nibbles[i]).sum(axis=1) >= params.near.minimum(112)
            for j in np.flatnonzero(candidates & alike).tolist():
                low, high = sorted((labels[i], labels[j]))
                labels = [low if label == high else label for label in labels]
        kept: dict[int, list[int]] = defaultdict(list)
        for i, doc in enumerate(alive):
            for j in kept[labels[i]]:
                similarity = float((rows[i] == rows[j]).mean())
                if similarity >= params.near.threshold:
                    survivor[doc.origin] = (alive[j], "near-duplicate", similarity)
                    break
            else:
                kept[labels[i]].append(i)
    stands_for: dict[str, list[str]] = defaultdict(list)
    for doc in docs:
        last = doc
        while last.origin in survivor:
            last = survivor[last.origin][0]
        stands_for[last.origin].append(doc.source)
    verdicts = {}
    for doc in docs:
        better, reason, similarity = survivor.get(doc.origin, (None, "", math.nan))
        verdicts[doc.origin] = {
            "removed": bool(reason),
            "reason": reason,
            "survivor": better.id if better else None,
            "similarity": float(np.float32(similarity)) if reason else None,
            "scope": "corpus" if reason else "",
            "copies": len(stands_for[doc.origin]),
            "sources": sorted(set(stands_for[doc.origin])),
        }
    return verdicts


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


@pytest.mark.parametrize(
    "params",
    [
        DedupParams(),
        DedupParams(near=None),
        DedupParams(exact=False, near=NearParams(threshold=0.85, bands=None, rows=None)),
        DedupParams(exact=False, near=None),
    ],
    ids=["both", "exact", "near", "none"],
)
def test_equals_brute_force(tmp_path, params):
    docs = corpus(1)
    outcome = deduplicate(tmp_path, layout_of(docs, 3, 1), params, partitions=2)
    assert outcome.verdicts == reference(docs, params)
    check_conservation(docs, outcome, params)


def check_conservation(docs: Sequence[Document], outcome: Outcome, params: DedupParams) -> None:
    tallies = {(t["stage"], t["source"], t["outcome"]): t for t in outcome.report["tallies"]}
    stages = ["exact-duplicates"] * params.exact + ["near-duplicates"] * (params.near is not None)
    assert {stage for stage, _, _ in tallies} == set(stages)
    for source in SOURCES:
        own = [d for d in docs if d.source == source]
        entering = (len(own), sum(len(d.text.encode()) for d in own))
        for stage in stages:
            numbers = {}
            for result in ("in", "kept", "dropped"):
                tally = tallies.get((stage, source, result), {"documents": 0, "bytes": 0})
                numbers[result] = (tally["documents"], tally["bytes"])
            assert numbers["in"] == entering == tuple(map(sum, zip(numbers["kept"], numbers["dropped"], strict=True)))
            entering = numbers["kept"]
        kept = [d for d in own if not outcome.verdicts[d.origin]["removed"]]
        assert entering == (len(kept), sum(len(d.text.encode()) for d in kept))
    assert sum(v["copies"] for v in outcome.verdicts.values()) == len(docs)
    survivors: dict[str, dict[str, int]] = defaultdict(lambda: {"documents": 0, "bytes": 0})
    for doc in docs:
        if not outcome.verdicts[doc.origin]["removed"]:
            survivors[DOMAINS[doc.source]]["documents"] += 1
            survivors[DOMAINS[doc.source]]["bytes"] += len(doc.text.encode())
    assert outcome.report["survivors"] == survivors


def test_layout_order_partitions_and_replayed_bundles_do_not_matter(tmp_path):
    docs = corpus(2)
    runs = [
        deduplicate(tmp_path / "a", [docs]),
        deduplicate(tmp_path / "b", layout_of(docs, 5, 7), partitions=4),
        deduplicate(tmp_path / "c", layout_of(docs, 40, 8), partitions=3, flags=["--direct_runner_bundle_repeat=2"]),
    ]
    assert runs[0].verdicts == runs[1].verdicts == runs[2].verdicts
    assert runs[0].report["tallies"] == runs[1].report["tallies"] == runs[2].report["tallies"]


@pytest.mark.parametrize("seed", [3, 4])
def test_every_removal_is_justified(tmp_path, seed):
    docs = corpus(seed, originals=40)
    verdicts = deduplicate(tmp_path, layout_of(docs, 2, seed)).verdicts
    kept = {d.id for d in docs if not verdicts[d.origin]["removed"]}
    signatures = dict(zip([d.id for d in docs], compute_signatures([d.text for d in docs], SIGNATURE), strict=True))
    near = {d.id: verdicts[d.origin]["survivor"] for d in docs if verdicts[d.origin]["reason"] == "near-duplicate"}
    for doc in docs:
        verdict = verdicts[doc.origin]
        if verdict["reason"] == "exact-duplicate":
            assert verdict["survivor"] == doc.id
            assert doc.id in kept or near[doc.id] in kept  # the chain ends at once
        elif verdict["reason"] == "near-duplicate":
            assert verdict["survivor"] in kept
            similarity = (signatures[doc.id] == signatures[verdict["survivor"]]).mean()
            assert similarity >= 0.75
            assert verdict["similarity"] == pytest.approx(similarity)


def test_chain_of_resemblance_keeps_survivors_along_itself(tmp_path):
    """Windows that slide over a long text: each is similar to the next few, the ends have nothing in common."""
    words = [f"w{i}" for i in range(2000)]
    docs = [make_document(" ".join(words[i : i + 400]), f"o{i}", source="web") for i in range(0, 1600, 20)]
    verdicts = deduplicate(tmp_path, layout_of(docs, 2, 0)).verdicts
    assert verdicts == reference(docs, DedupParams())
    kept = [i for i, d in enumerate(docs) if not verdicts[d.origin]["removed"]]
    assert 10 < len(kept) < 60
    assert max(b - a for a, b in pairwise(kept)) <= 6  # 6 * 20 words apart: Jaccard about 0.54


def test_identical_pages_in_plenty(tmp_path):
    page = " ".join(f"w{i}" for i in range(200))
    docs = [make_document(page, f"o{i}", source=SOURCES[i % 3], url=f"u{i}") for i in range(2000)]
    docs += [make_document(f"{page} visit {i}", f"n{i}", source="web") for i in range(300)]
    outcome = deduplicate(tmp_path, layout_of(docs, 3, 0))
    kept = [v for v in outcome.verdicts.values() if not v["removed"]]
    assert [(v["copies"], v["sources"]) for v in kept] == [(2300, ["books", "forum", "web"])]
    reasons = [v["reason"] for v in outcome.verdicts.values()]
    assert (reasons.count("exact-duplicate"), reasons.count("near-duplicate")) == (1999, 300)
    best = min(docs, key=lambda d: rank_key(d, PRIORITIES[d.source], RankParams()))
    assert not outcome.verdicts[best.origin]["removed"]


def test_exact_copies_of_a_near_duplicate_count_for_its_survivor(tmp_path):
    words = [f"w{i}" for i in range(200)]
    best = make_document(" ".join([*words, "end"]), "best", source="books")
    worse = [make_document(" ".join(words), f"worse{i}", source=s) for i, s in enumerate(["web", "forum", "web"])]
    verdicts = deduplicate(tmp_path, [[worse[0]], [best, worse[1]], [worse[2]]]).verdicts
    assert (verdicts["best"]["copies"], verdicts["best"]["sources"]) == (4, ["books", "forum", "web"])
    others = [verdicts[d.origin] for d in worse]
    assert sorted(v["reason"] for v in others) == ["exact-duplicate", "exact-duplicate", "near-duplicate"]
    assert {v["copies"] for v in others} == {0}


def test_nothing_and_empty_parts(tmp_path):
    assert deduplicate(tmp_path / "none", []).verdicts == {}
    outcome = deduplicate(tmp_path / "empty", [[], []])
    assert outcome.verdicts == {}
    assert outcome.report["tallies"] == []


def test_a_part_that_changed_is_an_error(tmp_path):
    parts = write_parts(tmp_path, [corpus(5, 3)])
    wrong = [(url, rows + 1) for url, rows in parts]
    with pytest.raises(Exception, match="rows found"):
        run_and_collect(lambda p: [p | Deduplicate(DedupParams(), SIGNATURE, SOURCES, wrong)])


def test_parameters_are_checked_before_anything_runs():
    with pytest.raises(ValueError, match="at most 100 values"):
        Deduplicate(DedupParams(), SignatureParams(permutations=100), SOURCES, [])
    with pytest.raises(ValueError, match="partitions: 0 given"):
        Deduplicate(DedupParams(), SIGNATURE, SOURCES, [], 0)


def test_blocks_travel_by_explicit_coders():
    """Only ints and bytes cross a shuffle: no runner ever pickles a row."""
    pipeline = beam.Pipeline(runner=FnApiRunner())
    pipeline | Deduplicate(DedupParams(), SIGNATURE, SOURCES, [("part.parquet", 1)])
    components = pipeline.to_runner_api().components
    grouped = [t for t in components.transforms.values() if t.spec.urn == "beam:transform:group_by_key:v1"]
    assert len(grouped) == 10
    for transform in grouped:
        (name,) = transform.inputs.values()
        coder = components.coders[components.pcollections[name].coder_id]
        kinds = [components.coders[part].spec.urn for part in coder.component_coder_ids]
        expected = ("beam:coder:kv:v1", ["beam:coder:varint:v1", "beam:coder:bytes:v1"])
        assert (coder.spec.urn, kinds) == expected, transform.unique_name
