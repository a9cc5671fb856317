"""The oracle is greedy clustering on Python sets; signatures and parts are the real ones."""

import random
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.util import assert_that
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.transforms.core.document import Document, document_id
from refinery.transforms.dedup import propose_chunks
from refinery.transforms.dedup.exact_jaccard import VerifyExactly, documents_url, settle_batches, shingle_batches
from refinery.transforms.dedup.near_duplicates import NearParams, Scope
from refinery.transforms.dedup.propose_chunks import PROPOSAL, propose_batches
from refinery.transforms.dedup.records.record_batch import (
    BATCH_BYTES,
    COPIES,
    COPY,
    CORPUS,
    LABEL,
    LABELS,
    NEAR,
    PROPOSALS,
    REFERENCE,
    REMOVAL,
    REMOVALS,
    cut,
    form_batches,
    gather,
    header,
)
from refinery.transforms.dedup.reference_corpora import Parts
from refinery.transforms.dedup.signatures import SignatureParams, compute_signatures, shingle_set, signature_table
from refinery.transforms.dedup.verify_similarity import member_batches
from refinery.transforms.write.documents import documents_table
from tests.sampling import examples, one_commit_in_four

SOURCES = ("a", "b", "c")
SCOPE = Scope(NEAR, CORPUS, (0, 1, 2), apart=False)
NOISY = SignatureParams(permutations=16, ngram=1)  # an estimate is off by 0.1 or more as often as not
EXACT = NearParams(threshold=0.75, bands=1, rows=1, verify="exact")


@dataclass(frozen=True)
class Doc:
    text: str
    tie: int
    source: str = "a"
    component: int = 0
    reference: bool = False

    @property
    def id(self) -> bytes:
        return document_id(self.text)


@dataclass(frozen=True)
class Decided:
    """removed: tie of the document -> (id of the representative, similarity, scope). copies: (tie, source) ->
    documents.
    """

    removed: dict[int, tuple[bytes, float, int]]
    copies: dict[tuple[int, str], int]


def write_parts(folder: Path, docs: list[Doc], layout: list[list[int]], group: int, signature: SignatureParams) -> None:
    for name in ("documents", "signatures"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for part, indices in enumerate(layout):
        chosen = [docs[i] for i in indices]
        rows = signature_table(
            ids=[doc.id for doc in chosen],
            ranks=[bytes(16) + doc.tie.to_bytes(8, "big") for doc in chosen],
            sources=["elsewhere" if doc.reference else doc.source for doc in chosen],
            domains=["web"] * len(chosen),
            sizes=[len(doc.text.encode()) for doc in chosen],
            signatures=compute_signatures([doc.text for doc in chosen], signature),
        )
        pq.write_table(rows, folder / f"signatures/{part}.parquet", row_group_size=group)
        texts = documents_table([Document(d.id, d.text, "", d.source, "", 0, {}) for d in chosen])
        if not any(doc.reference for doc in chosen):  # a published corpus may have no text any more
            pq.write_table(texts, folder / f"documents/{part}.parquet", row_group_size=group)


def shuffle(batches):
    grouped = defaultdict(list)
    for key, batch in batches:
        grouped[key].append(batch)
    for key, values in grouped.items():
        random.Random(key).shuffle(values)
    return grouped


def run(function, grouped):
    return list(form_batches(out for key, batches in grouped.items() for out in function(key, batches)))


def decide(
    folder: Path,
    docs: list[Doc],
    params: NearParams,
    signature: SignatureParams,
    layout: list[list[int]] | None = None,
    partitions: int = 1,
    group: int = 3,
    copies: dict[tuple[int, str], int] | None = None,
) -> Decided:
    """Every step from labels on, with a shuffle that disorders batches. Reference documents must be in the last
    parts.
    """
    layout = layout or [list(range(len(docs)))]
    write_parts(folder, docs, layout, group, signature)
    own = sum(not any(docs[i].reference for i in indices) for indices in layout)
    parts = Parts(own, (len(layout) - own,))
    place = {index: part << 32 | row for part, indices in enumerate(layout) for row, index in enumerate(indices)}
    ties = {place[index]: doc.tie for index, doc in enumerate(docs)}
    locators = {doc.tie: place[index] for index, doc in enumerate(docs)}
    given = [header(n, f"{folder}/signatures/{n}.parquet", len(indices)) for n, indices in enumerate(layout)]
    for index, doc in enumerate(docs):
        label = np.array([(place[index], doc.component)], LABEL)
        given += cut(place[index] >> 32, LABELS, label)
    for (tie, source), count in (copies or {}).items():
        given += cut(locators[tie] >> 32, COPIES, np.array([(locators[tie], SOURCES.index(source), count)], COPY))

    values = {"permutations": signature.permutations}
    common = {"params": params, "scope": SCOPE, "parts": parts}
    members = run(
        partial(member_batches, sources=SOURCES, parts=parts, partitions=partitions, **values), shuffle(given)
    )
    proposed = run(partial(propose_batches, **common, **values), shuffle(members))
    sets = run(partial(shingle_batches, signature=signature), shuffle(given + proposed))
    assert all(len(batch) <= BATCH_BYTES for _, batch in sets)
    settled = run(partial(settle_batches, **common), shuffle(sets))

    found = [batch for _, batch in proposed + settled]
    removed = {}
    for locator, high, low, similarity, reason, scope in gather(found, REMOVALS, REMOVAL).tolist():
        assert reason == NEAR and ties[locator] not in removed
        removed[ties[locator]] = (high.to_bytes(8, "big") + low.to_bytes(8, "big"), similarity, scope)
    handed: dict[tuple[int, str], int] = {}
    for locator, source, count in gather(found, COPIES, COPY).tolist():
        key = (ties[locator], SOURCES[source])
        handed[key] = handed.get(key, 0) + count
    return Decided(removed, handed)


def index_of_jaccard(x: set, y: set) -> float:
    return len(x & y) / len(x | y) if x | y else 1.0


def brute_force(docs: list[Doc], threshold: float, signature: SignatureParams) -> dict[int, tuple[int, float]]:
    """tie of a removed document -> (tie of its representative, exact similarity)."""
    removed = {}
    for component in {doc.component for doc in docs}:
        representatives: list = []
        for doc in sorted((d for d in docs if d.component == component), key=lambda d: d.tie):
            shingles = set(shingle_set(doc.text, signature).tolist())
            for other, theirs in representatives:
                similarity = index_of_jaccard(shingles, theirs)
                if similarity >= threshold:
                    removed[doc.tie] = (other.tie, similarity)
                    break
            else:
                representatives.append((doc, shingles))
    return removed


def random_docs(count: int, seed: int, words: int = 24, changes: int = 6, components: int = 2) -> list[Doc]:
    """Texts around one of few originals, most of them near the threshold."""
    rng = random.Random(seed)
    originals = [[f"w{rng.randrange(10**6)}" for _ in range(words)] for _ in range(3)]
    docs = []
    for tie in range(count):
        text = list(rng.choice(originals))
        for at in rng.sample(range(words), rng.randint(1, changes)):
            text[at] = f"x{rng.randrange(10**6)}"
        docs.append(Doc(" ".join(text), tie, rng.choice(SOURCES), rng.randrange(components)))
    return docs


def as_decided(docs: list[Doc], expected: dict[int, tuple[int, float]], copies: dict[tuple[int, str], int]) -> Decided:
    by_tie = {doc.tie: doc for doc in docs}
    handed: dict[tuple[int, str], int] = {}
    for (tie, source), count in [*((((d, by_tie[d].source), 1)) for d in expected), *copies.items()]:
        if tie in expected:
            key = (expected[tie][0], source)
            handed[key] = handed.get(key, 0) + count
    removed = {
        tie: (by_tie[representative].id, pytest.approx(similarity, abs=1e-6), CORPUS)
        for tie, (representative, similarity) in expected.items()
    }
    return Decided(removed, handed)


@settings(max_examples=examples(25), deadline=None)
@given(seed=st.integers(0, 10**6), count=st.integers(0, 40), spread=st.integers(1, 4))
def test_whole_components_equal_brute_force_in_any_layout(tmp_path_factory, seed, count, spread):
    docs = random_docs(count, seed)
    rng = random.Random(seed)
    layout: list[list[int]] = [[] for _ in range(spread)]
    for index in rng.sample(range(count), count):
        rng.choice(layout).append(index)
    copies = {(doc.tie, "c"): doc.tie + 1 for doc in docs[::3]}
    folder = tmp_path_factory.mktemp("parts")
    found = decide(folder, docs, EXACT, NOISY, layout, partitions=1 + seed % 3, group=1 + seed % 7, copies=copies)
    assert found == as_decided(docs, brute_force(docs, 0.75, NOISY), copies)


def test_unlucky_estimates_neither_remove_nor_save(tmp_path):
    """Pairs, each a component of its own, chosen where estimate and exact similarity disagree about the threshold."""
    docs = random_docs(4000, seed=4)
    signatures = compute_signatures([doc.text for doc in docs], NOISY)
    sets = [set(shingle_set(doc.text, NOISY).tolist()) for doc in docs]
    chosen: dict[bool, list[Doc]] = {True: [], False: []}
    for i in range(0, 4000, 2):
        exact = index_of_jaccard(sets[i], sets[i + 1]) >= 0.75
        if exact != ((signatures[i] == signatures[i + 1]).mean() >= 0.75):
            chosen[exact] += [replace(docs[i], component=i), replace(docs[i + 1], component=i)]
    assert min(len(pairs) for pairs in chosen.values()) >= 20
    lost = decide(tmp_path / "similar", chosen[True], EXACT, NOISY)
    assert set(lost.removed) == {doc.tie for doc in chosen[True][1::2]}
    assert decide(tmp_path / "different", chosen[False], EXACT, NOISY) == Decided({}, {})


@pytest.mark.parametrize(
    ("texts", "removed"),
    [
        (["", "", "word"], [1]),
        (["word", "Word!", "other", ""], [1]),
        (["same text here"] * 4, [1, 2, 3]),
        (["?", "!", "?"], [2]),
        (["one two three four five six", "one two three four five six seven"], []),
        ([], []),
    ],
)
def test_small_texts(tmp_path, texts, removed):
    """Equal texts fall to the first in rank also where exact deduplication is off."""
    signature = SignatureParams(permutations=16)
    docs = [Doc(text, tie) for tie, text in enumerate(texts)]
    found = decide(tmp_path, docs, EXACT, signature)
    assert {tie: similarity for tie, (_, similarity, _) in found.removed.items()} == dict.fromkeys(removed, 1.0)
    assert sum(found.copies.values()) == len(removed)


@one_commit_in_four
def test_giant_documents(tmp_path):
    """Of 300,000 words, so that their sets take several batches; 2 and 5 of 100 words are others."""
    rng = np.random.default_rng(2)
    words = rng.integers(0, 10**6, 300_000).astype(str)
    signature = SignatureParams(permutations=16)
    docs = [Doc(" ".join(words), 0)]  # 300,000 shingles: 1.2 MB
    for tie, share in ((1, 0.02), (2, 0.05)):
        changed = words.copy()
        changed[rng.random(len(words)) < share] = "another"
        docs.append(Doc(" ".join(changed), tie))
    expected = brute_force(docs, 0.75, signature)
    assert set(expected) == {1}
    assert 0.75 < expected[1][1] < 0.9
    assert decide(tmp_path, docs, EXACT, signature) == as_decided(docs, expected, {})


def test_in_favour_of_a_published_corpus_the_estimate_decides(tmp_path):
    """Its texts are gone. The one of ours that resembles it by its signature goes, others are compared exactly."""
    docs = random_docs(60, seed=8, components=1)
    theirs = [replace(doc, tie=doc.tie + 100, reference=True) for doc in random_docs(300, seed=8, components=1)[60:63]]
    mine = compute_signatures([doc.text for doc in docs], NOISY)
    reference = compute_signatures([doc.text for doc in theirs], NOISY)
    similarity = (mine[:, None] == reference[None]).mean(axis=2)
    lost = {
        doc.tie: (theirs[int(np.argmax(similarity[doc.tie] >= 0.75))], similarity[doc.tie])
        for doc in docs
        if (similarity[doc.tie] >= 0.75).any()
    }
    assert 5 < len(lost) < 55
    layout = [list(range(0, 60, 2)), list(range(1, 60, 2)), [60, 61, 62]]
    copies = {(doc.tie, "b"): 2 for doc in docs}
    found = decide(tmp_path, docs + theirs, EXACT, NOISY, layout, copies=copies)
    by_reference = {tie: entry for tie, entry in found.removed.items() if entry[2] == REFERENCE}
    assert {tie: entry[:2] for tie, entry in by_reference.items()} == {
        tie: (representative.id, values[values >= 0.75][0]) for tie, (representative, values) in lost.items()
    }
    rest = [doc for doc in docs if doc.tie not in lost]
    others = Decided({tie: e for tie, e in found.removed.items() if tie not in by_reference}, found.copies)
    assert others == as_decided(rest, brute_force(rest, 0.75, NOISY), copies)


@pytest.mark.parametrize(("members", "size", "share"), [(4, 32 << 20, 0.8), (4096, 1500, 0.8), (2, 1, 0.5)])
def test_large_components_are_divided_by_the_documents_alone(tmp_path, monkeypatch, members, size, share):
    """And still nothing goes below the threshold; pairs in different chunks are missed."""
    monkeypatch.setattr(propose_chunks, "CHUNK_MEMBERS", members)
    monkeypatch.setattr(propose_chunks, "CHUNK_BYTES", size)
    monkeypatch.setattr(propose_chunks, "KEY_BYTES", 2000)
    docs = random_docs(80, seed=3, changes=3)
    first = decide(tmp_path / "0", docs, EXACT, NOISY, copies={(doc.tie, "b"): 1 for doc in docs})
    for seed in (1, 2):
        order = random.Random(seed).sample(range(80), 80)
        layout = [order[:30], [], order[30:40], order[40:]]
        copies = {(doc.tie, "b"): 1 for doc in docs}
        again = decide(tmp_path / str(seed), docs, EXACT, NOISY, layout, partitions=seed, group=5, copies=copies)
        assert again == first
    sets = {doc.tie: set(shingle_set(doc.text, NOISY).tolist()) for doc in docs}
    by_id = {doc.id: doc for doc in docs}
    for tie, (representative, similarity, _) in first.removed.items():
        exact = index_of_jaccard(sets[tie], sets[by_id[representative].tie])
        assert similarity == pytest.approx(exact, abs=1e-6)
        assert exact >= 0.75
        assert by_id[representative].tie not in first.removed
    assert len(first.removed) >= share * len(brute_force(docs, 0.75, NOISY))
    assert sum(first.copies.values()) == 2 * len(first.removed)


@pytest.mark.parametrize(("members", "size"), [(5, 32 << 20), (4096, 1000)])
def test_chunks_keep_their_limits(tmp_path, monkeypatch, members, size):
    monkeypatch.setattr(propose_chunks, "CHUNK_MEMBERS", members)
    monkeypatch.setattr(propose_chunks, "CHUNK_BYTES", size)
    docs = random_docs(120, seed=6, changes=3, components=3)
    write_parts(tmp_path, docs, [list(range(120))], 50, NOISY)
    labels = np.array([(i, doc.component) for i, doc in enumerate(docs)], LABEL)
    given = [header(0, f"{tmp_path}/signatures/0.parquet", 120), *cut(0, LABELS, labels)]
    parts = Parts(1)
    make = partial(member_batches, sources=SOURCES, parts=parts, permutations=16, partitions=1)
    grouped = shuffle(run(make, shuffle(given)))
    batches = run(partial(propose_batches, params=EXACT, scope=SCOPE, parts=parts, permutations=16), grouped)
    rows = gather([batch for _, batch in batches], PROPOSALS, PROPOSAL)
    places: dict[int, int] = defaultdict(int)
    for chunk in np.unique(rows["chunk"]):
        inside = np.sort(rows[rows["chunk"] == chunk], order="tie")
        total = sum(len(docs[i].text) for i in inside["locator"].tolist())
        assert 2 <= len(inside) <= members
        assert total <= size or len(inside) == 2
        assert len(set(inside["key"].tolist())) == 1
        for locator in inside["locator"][1:].tolist():
            places[locator] += 1
    assert set(places.values()) == {1}


def test_parts_that_are_not_aligned_are_refused(tmp_path):
    docs = random_docs(4, seed=1, components=1)
    decide(tmp_path, docs, EXACT, NOISY)
    path = tmp_path / "documents/0.parquet"
    table = pq.read_table(path)
    pq.write_table(table.take(pa.array([1, 0, 2, 3])), path)
    rows = np.zeros(2, PROPOSAL)
    rows["locator"] = [0, 1]
    for name, at in (("id_high", 0), ("id_low", 8)):
        rows[name] = [int.from_bytes(doc.id[at : at + 8], "big") for doc in docs[:2]]
    url = f"{tmp_path}/signatures/0.parquet"
    batches = [header(0, url, 4)[1], *(batch for _, batch in cut(0, PROPOSALS, rows))]
    with pytest.raises(ValueError, match="its ids are not those"):
        list(shingle_batches(0, batches, NOISY))
    assert documents_url("gs://bucket/work/signatures/part-1.parquet") == "gs://bucket/work/documents/part-1.parquet"


def test_as_a_transform(tmp_path):
    docs = random_docs(40, seed=12)
    layout = [list(range(0, 40, 2)), list(range(1, 40, 2))]
    write_parts(tmp_path, docs, layout, 4, NOISY)
    headers, labels = [], []
    for part, indices in enumerate(layout):
        headers.append(header(part, f"{tmp_path}/signatures/{part}.parquet", len(indices)))
        rows = np.array([(part << 32 | row, docs[i].component) for row, i in enumerate(indices)], LABEL)
        labels += cut(part, LABELS, rows)
    parts = Parts(2)
    make = partial(member_batches, sources=SOURCES, parts=parts, permutations=16, partitions=2)
    members = [
        (key, batch)
        for part in range(2)
        for key, batch in form_batches(make(part, [headers[part][1], labels[part][1]]))
    ]
    expected = brute_force(docs, 0.75, NOISY)

    def check(found):
        removals = gather([batch for _, batch in found], REMOVALS, REMOVAL)
        ties = [docs[layout[r >> 32][r & 0xFFFFFFFF]].tie for r in removals["locator"].tolist()]
        assert sorted(ties) == sorted(expected) != []
        assert gather([batch for _, batch in found], COPIES, COPY)["documents"].sum() == len(expected)
        assert {batch[0] for _, batch in found} == {REMOVALS, COPIES}

    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        given = pipeline | "headers" >> beam.Create(headers).with_output_types(tuple[int, bytes])
        grouped = pipeline | "members" >> beam.Create(members).with_output_types(tuple[int, bytes]) | beam.GroupByKey()
        decided = (given, grouped) | VerifyExactly("near-duplicates", EXACT, SCOPE, parts, NOISY)
        assert_that(decided | beam.Flatten(), check)
