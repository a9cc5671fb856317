from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner

from refinery.transforms.core.document import Document
from refinery.transforms.dedup.deduplicate import Deduplicate, DedupParams, list_parts
from refinery.transforms.dedup.near_duplicates import NearParams
from refinery.transforms.dedup.records.rank import RankParams, rank_key
from refinery.transforms.dedup.signatures import SignatureParams, compute_signatures
from tests.beam import make_document, run_and_collect
from tests.sampling import one_commit_in_four, sampled
from tests.transforms.dedup_oracle import (
    PRIORITIES,
    SIGNATURE,
    SOURCES,
    brute_force,
    check_conservation,
    corpus,
    deduplicate,
    layout_of,
    publish,
    write_parts,
)

IN_SOURCE = {
    "web": NearParams(threshold=0.6, bands=None, rows=None),
    "*": NearParams(threshold=0.7, bands=8, permutations=64),
}


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
    assert outcome.verdicts == brute_force(docs, params)
    check_conservation(docs, outcome, params)


@one_commit_in_four
def test_layout_order_partitions_and_replayed_bundles_do_not_matter(tmp_path):
    docs = corpus(2)
    runs = [
        deduplicate(tmp_path / "a", [docs]),
        deduplicate(tmp_path / "b", layout_of(docs, 5, 7), partitions=4),
        deduplicate(tmp_path / "c", layout_of(docs, 40, 8), partitions=3, flags=["--direct_runner_bundle_repeat=2"]),
    ]
    assert runs[0].verdicts == runs[1].verdicts == runs[2].verdicts
    assert runs[0].report["counters"] == runs[1].report["counters"] == runs[2].report["counters"]


@pytest.mark.parametrize("seed", [3, 4])
def test_every_removal_is_justified(tmp_path, seed):
    docs = corpus(seed, originals=40)
    verdicts = deduplicate(tmp_path, layout_of(docs, 2, seed)).verdicts
    kept = {d.id for d in docs if not verdicts[d.origin]["removed"]}
    signatures = dict(zip([d.id for d in docs], compute_signatures([d.text for d in docs], SIGNATURE), strict=True))
    near = {d.id: verdicts[d.origin]["kept_id"] for d in docs if verdicts[d.origin]["reason"] == "near-duplicate"}
    for doc in docs:
        verdict = verdicts[doc.origin]
        if verdict["reason"] == "exact-duplicate":
            assert verdict["kept_id"] == doc.id
            assert doc.id in kept or near[doc.id] in kept  # the chain ends at once
        elif verdict["reason"] == "near-duplicate":
            assert verdict["kept_id"] in kept
            similarity = (signatures[doc.id] == signatures[verdict["kept_id"]]).mean()
            assert similarity >= 0.75
            assert verdict["similarity"] == pytest.approx(similarity)


def test_chain_of_resemblance_keeps_documents_along_itself(tmp_path):
    """Windows that slide over a long text: each is similar to the next few, the ends have nothing in common."""
    words = [f"w{i}" for i in range(2000)]
    docs = [make_document(" ".join(words[i : i + 400]), f"o{i}", source="web") for i in range(0, 1600, 20)]
    verdicts = deduplicate(tmp_path, layout_of(docs, 2, 0)).verdicts
    assert verdicts == brute_force(docs, DedupParams())
    kept = [i for i, d in enumerate(docs) if not verdicts[d.origin]["removed"]]
    assert 10 < len(kept) < 60
    assert max(b - a for a, b in pairwise(kept)) <= 6  # 6 * 20 words apart: Jaccard about 0.54


@one_commit_in_four
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


def test_exact_copies_of_a_near_duplicate_count_for_its_representative(tmp_path):
    words = [f"w{i}" for i in range(200)]
    best = make_document(" ".join([*words, "end"]), "best", source="books")
    worse = [make_document(" ".join(words), f"worse{i}", source=s) for i, s in enumerate(["web", "forum", "web"])]
    verdicts = deduplicate(tmp_path, [[worse[0]], [best, worse[1]], [worse[2]]]).verdicts
    assert (verdicts["best"]["copies"], verdicts["best"]["sources"]) == (4, ["books", "forum", "web"])
    others = [verdicts[d.origin] for d in worse]
    assert sorted(v["reason"] for v in others) == ["exact-duplicate", "exact-duplicate", "near-duplicate"]
    assert {v["copies"] for v in others} == {0}


@one_commit_in_four
def test_nothing_and_empty_parts(tmp_path):
    assert deduplicate(tmp_path / "none", []).verdicts == {}
    outcome = deduplicate(tmp_path / "empty", [[], []])
    assert outcome.verdicts == {}
    assert outcome.report["counters"] == []


def test_errors_of_damaged_files_name_them(tmp_path):
    docs = corpus(5, 3)
    published = publish(tmp_path / "old", docs)
    ((url, rows, crc32c),) = published.provenance
    wrong = replace(published, provenance=((url, rows, "00000000"),))
    with pytest.raises(Exception, match=rf"provenance.parquet: crc32c {crc32c} found, 00000000 expected .*verify"):
        deduplicate(tmp_path / "new", [docs], reference_corpora=(wrong,))
    parts = write_parts(tmp_path / "own", [docs])
    path = Path(parts[0][0])
    path.write_bytes(path.read_bytes()[:-5])
    lists = list_parts(str(tmp_path), parts)
    with pytest.raises(Exception, match=r"part-0.parquet: cannot be read: "):
        run_and_collect(lambda p: [p | Deduplicate(DedupParams(), SIGNATURE, SOURCES, lists)])


def test_a_part_that_changed_is_an_error(tmp_path):
    parts = write_parts(tmp_path, [corpus(5, 3)])
    wrong = list_parts(str(tmp_path), [(url, rows + 1) for url, rows in parts])
    with pytest.raises(Exception, match="rows found"):
        run_and_collect(lambda p: [p | Deduplicate(DedupParams(), SIGNATURE, SOURCES, wrong)])


def test_parameters_are_checked_before_anything_runs(tmp_path):
    nothing = list_parts(str(tmp_path), [])
    with pytest.raises(ValueError, match="at most 100 values"):
        Deduplicate(DedupParams(), SignatureParams(permutations=100), SOURCES, nothing)
    with pytest.raises(ValueError, match=r"permutations: 113 given, at most 112 \(signature.permutations\) is allowed"):
        Deduplicate(DedupParams(near=NearParams(permutations=113)), SIGNATURE, SOURCES, nothing)
    with pytest.raises(ValueError, match="at most 64 values"):
        Deduplicate(DedupParams(in_source={"*": NearParams(permutations=64)}), SIGNATURE, SOURCES, nothing)
    with pytest.raises(ValueError, match=r"in_source: 'shop' given, one of .*'forum', 'web'\] or '\*' is allowed"):
        Deduplicate(DedupParams(in_source={"shop": NearParams()}), SIGNATURE, SOURCES, nothing)
    with pytest.raises(ValueError, match="partitions: 0 given"):
        Deduplicate(DedupParams(), SIGNATURE, SOURCES, nothing, 0)


def test_batches_travel_by_explicit_coders(tmp_path):
    """Only ints and bytes cross a shuffle: no runner ever pickles a row."""
    pipeline = beam.Pipeline(runner=FnApiRunner())
    pipeline | Deduplicate(DedupParams(), SIGNATURE, SOURCES, list_parts(str(tmp_path), [("part.parquet", 1)]))
    components = pipeline.to_runner_api().components
    grouped = [t for t in components.transforms.values() if t.spec.urn == "beam:transform:group_by_key:v1"]
    grouped = [t for t in grouped if "/list/deal/" not in t.unique_name]  # that shuffle is Beam's own
    assert len(grouped) == 13
    for transform in grouped:
        (name,) = transform.inputs.values()
        coder = components.coders[components.pcollections[name].coder_id]
        kinds = [components.coders[part].spec.urn for part in coder.component_coder_ids]
        expected = ("beam:coder:kv:v1", ["beam:coder:varint:v1", "beam:coder:bytes:v1"])
        assert (coder.spec.urn, kinds) == expected, transform.unique_name


@pytest.mark.parametrize("near", sampled("within sources, then across or alone", [NearParams(), None], 1), ids=str)
def test_within_each_source_first_with_its_own_parameters(tmp_path, near):
    docs = corpus(6, originals=120)
    params = DedupParams(near=near, in_source=IN_SOURCE)
    outcome = deduplicate(tmp_path, layout_of(docs, 4, 1), params, partitions=3)
    assert outcome.verdicts == brute_force(docs, params)
    check_conservation(docs, outcome, params)
    sources_of: dict[bytes, set[str]] = defaultdict(set)
    for doc in docs:
        sources_of[doc.id].add(doc.source)
    inside = [d for d in docs if outcome.verdicts[d.origin]["reason"] == "near-duplicate-in-source"]
    assert len(inside) > 10
    assert all(d.source in sources_of[outcome.verdicts[d.origin]["kept_id"]] for d in inside)


def test_a_source_without_parameters_of_its_own_is_left_alone(tmp_path):
    docs = corpus(7)
    params = DedupParams(near=None, in_source={"forum": NearParams()})
    verdicts = deduplicate(tmp_path, layout_of(docs, 2, 1), params).verdicts
    assert verdicts == brute_force(docs, params)
    assert {d.source for d in docs if verdicts[d.origin]["scope"] == "source"} == {"forum"}


@one_commit_in_four
def test_a_source_without_parameters_is_left_alone_where_all_others_have_some(tmp_path):
    docs = corpus(7)
    params = DedupParams(near=None, in_source={"*": NearParams(), "forum": None})
    verdicts = deduplicate(tmp_path, layout_of(docs, 2, 1), params).verdicts
    assert verdicts == brute_force(docs, params)
    assert {d.source for d in docs if verdicts[d.origin]["scope"] == "source"} == {"books"}


def split_corpora(seed: int) -> tuple[list[Document], dict[str, list[Document]], list[Document]]:
    """Documents of ours, of two published corpora, and of one that reached nobody's shards."""
    docs = corpus(seed, originals=90)
    parts: dict[str, list[Document]] = {"ours": [], "first": [], "second": [], "dropped": []}
    for i, doc in enumerate(docs):
        parts[["ours", "first", "ours", "second", "dropped"][i % 5]].append(doc)
    dropped = [d for d in parts["dropped"] if d.id not in {e.id for e in parts["first"]}]
    return parts["ours"], {"first": parts["first"], "second": parts["second"]}, dropped


@one_commit_in_four
def test_documents_of_published_corpora_win_and_get_no_verdict(tmp_path):
    ours, reference_corpora, dropped = split_corpora(8)
    corpora = (
        publish(tmp_path / "first", reference_corpora["first"], dropped),
        publish(tmp_path / "second", reference_corpora["second"]),
    )
    params = DedupParams(in_source={"*": NearParams(threshold=0.9)})
    runs = [
        deduplicate(tmp_path / "a", [ours], params, reference_corpora=corpora),
        deduplicate(tmp_path / "b", layout_of(ours, 6, 2), params, partitions=3, reference_corpora=corpora),
    ]
    expected = brute_force(ours, params, reference_corpora)
    assert runs[0].verdicts == expected == runs[1].verdicts
    assert runs[0].report["counters"] == runs[1].report["counters"]
    scopes = {v["scope"] for v in expected.values()}
    assert scopes == {"reference:first", "reference:second", "source", ""}


def test_with_a_reference_corpus_of_the_same_documents_nothing_is_left(tmp_path):
    docs = corpus(9)
    outcome = deduplicate(
        tmp_path / "again", layout_of(docs, 3, 1), reference_corpora=(publish(tmp_path / "before", docs),)
    )
    assert all(v["removed"] and v["scope"] == "reference:before" for v in outcome.verdicts.values())
    assert outcome.report["kept"] == {}


@one_commit_in_four
def test_published_documents_stay_even_where_they_resemble_each_other(tmp_path):
    """B is published beside A, which it resembles; C resembles B alone, and goes because B stands."""
    words = [f"w{i}" for i in range(300)]
    a, b, c = (make_document(" ".join(words[i : i + 250]), f"o{i}", source="web") for i in (0, 20, 40))
    verdict = deduplicate(tmp_path / "run", [[c]], reference_corpora=(publish(tmp_path / "old", [a, b]),)).verdicts[
        "o40"
    ]
    assert (verdict["removed"], verdict["kept_id"], verdict["scope"]) == (True, b.id, "reference:old")
    alone = deduplicate(tmp_path / "other", [[c]], reference_corpora=(publish(tmp_path / "a-only", [a]),)).verdicts[
        "o40"
    ]
    assert not alone["removed"]


def test_reference_corpora_need_exact_removal(tmp_path):
    lists = list_parts(str(tmp_path), [], (publish(tmp_path / "p", corpus(1)),))
    with pytest.raises(ValueError, match=r"reference_corpora: .* exact removal off"):
        Deduplicate(DedupParams(exact=False), SIGNATURE, SOURCES, lists)
