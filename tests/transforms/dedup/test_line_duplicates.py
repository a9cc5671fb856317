import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import apache_beam as beam
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.transforms.core.document import Document
from refinery.transforms.core.exchange.side_outputs import take_side_outputs
from refinery.transforms.dedup import line_duplicates
from refinery.transforms.dedup.cut_lines import LINE_CUTS, LineParams, cut_text, hash_lines
from refinery.transforms.dedup.cut_lines import LINES as CUT_STAGE
from refinery.transforms.dedup.deduplicate import Deduplicate, DedupParams, WriteVerdicts, list_parts
from refinery.transforms.dedup.line_duplicates import (
    LINE,
    CountLines,
    cut_batches,
    hot_batches,
    line_batches,
    sum_by_hash,
)
from refinery.transforms.dedup.records.rank import RankParams
from refinery.transforms.dedup.records.record_batch import (
    CUT,
    CUTS,
    LINES,
    REMOVALS,
    Batch,
    cut,
    form_batches,
    gather,
    header,
)
from refinery.transforms.dedup.reference_corpora import Parts
from refinery.transforms.write.deal_kept_documents import ReadKeptDocuments
from refinery.transforms.write.documents import SourceFacts
from refinery.transforms.write.kept_documents import PartPair, write_pairs
from refinery.transforms.write.write_documents import WriteDocuments
from tests.beam import make_document, run_and_collect
from tests.sampling import examples, scaled
from tests.transforms.cutting_parts import SIGNATURE, SOURCES, Layout, deal, removal_batches, shuffle, write_parts
from tests.transforms.dedup.test_signatures import split

Cuts = set[tuple[str, int]]  # origin and number of every line that is cut


def oracle(docs: Iterable[Document], removed: set[str], params: LineParams) -> Cuts:
    """The same by plain sets of normal forms: the words of a line, joined by a space."""
    owners: dict[tuple[str, str], set[str]] = defaultdict(set)
    places: list[tuple[tuple[str, str], str, int]] = []
    for doc in docs:
        if doc.origin in removed:
            continue
        for number, line in enumerate(doc.text.split("\n")):
            words = split(line)
            if len(words) >= params.min_line_words:
                key = (doc.source if params.scope == "source" else "", " ".join(words))
                owners[key].add(doc.origin)
                places.append((key, doc.origin, number))
    return {(origin, number) for key, origin, number in places if len(owners[key]) > params.max_documents}


def found_cuts(layout: Layout, batches: Iterable[Batch]) -> Cuts:
    """CUT batches as origins and numbers; every batch lies under the key of its part, and no line is cut twice."""
    found = []
    for part, batch in batches:
        for locator, number in gather([batch], CUTS, CUT).tolist():
            assert locator >> 32 == part
            found.append((layout[part][locator & 0xFFFFFFFF].origin, number))
    assert len(set(found)) == len(found)
    return set(found)


def count_lines(
    parts: Sequence[tuple[str, int]], layout: Layout, removed: set[str], params: LineParams, partitions: int, seed: int
) -> Cuts:
    """`CountLines` without Beam: its steps with shuffles between them."""
    rng = random.Random(seed)
    start = [*(header(part, url, rows) for part, (url, rows) in enumerate(parts)), *removal_batches(layout, removed)]
    lines = [
        batch
        for part, batches in shuffle(start, rng).items()
        for batch in form_batches(line_batches(part, batches, params, SOURCES, Parts(len(parts)), partitions))
    ]
    hot = [
        batch
        for key, batches in shuffle(lines, rng).items()
        for batch in form_batches(hot_batches(key, batches, params.max_documents))
    ]
    cuts = [
        batch
        for part, batches in shuffle([*start, *hot], rng).items()
        for batch in cut_batches(part, batches, params, SOURCES)
    ]
    return found_cuts(layout, cuts)


STOCK = [
    "",
    "Home",
    "HOME!",
    "home\r",
    "About us",
    "about  us",
    "--",
    "日 本",
    "日本",
    "日本語",
    "x…",
    "x",
    "a b c d",
]
DOCUMENTS = st.lists(
    st.tuples(st.lists(st.sampled_from(STOCK), min_size=1, max_size=6), st.sampled_from(SOURCES), st.booleans()),
    max_size=14,
)
PARAMS = st.builds(
    LineParams,
    max_documents=st.integers(1, 4),
    scope=st.sampled_from(["source", "corpus"]),
    min_line_words=st.integers(1, 4),
)


@settings(max_examples=examples(60), deadline=None)
@given(DOCUMENTS, PARAMS, st.integers(1, 4), st.integers(1, 20), st.integers(0, 9), st.booleans())
def test_equals_brute_force(rows, params, parts, partitions, seed, many_lots):
    docs = [make_document("\n".join(t), f"f@{i}", source=source) for i, (t, source, _) in enumerate(rows)]
    removed = {f"f@{i}" for i, (_, _, gone) in enumerate(rows) if gone}
    layout = deal(docs, parts, seed)
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        if many_lots:
            patch.setattr(line_duplicates, "HELD_LINES", 3)
        urls = write_parts(Path(folder), layout)
        assert count_lines(urls, layout, removed, params, partitions, seed) == oracle(docs, removed, params)


@pytest.mark.parametrize("held_lines", [1, 7, 60, 1 << 20])
def test_lots_add_up(tmp_path, monkeypatch, held_lines):
    docs = corpus(4)
    layout = deal(docs, 2, 1)
    urls = write_parts(tmp_path, layout, group=4)
    expected = oracle(docs, set(), LineParams())
    monkeypatch.setattr(line_duplicates, "HELD_LINES", held_lines)
    assert count_lines(urls, layout, set(), LineParams(), 3, 0) == expected
    assert len(expected) > 200


def corpus(seed: int, documents: int = 150) -> list[Document]:
    """Documents of two sources with lines of their own and lines of a stock, some of which are very frequent."""
    rng = random.Random(seed)
    stock = [f"stock line {n} of many" for n in range(60)]
    docs = []
    for n in range(documents):
        lines = ["Everywhere the same."] + [
            rng.choice(stock[: rng.choice([3, 60])]) if rng.random() < 0.5 else f"line {rng.random()} of document {n}"
            for _ in range(rng.randrange(1, 12))
        ]
        rng.shuffle(lines)
        docs.append(make_document("\n".join(lines), f"f@{n}", source=rng.choice(SOURCES)))
    return docs


@dataclass
class _Decided(beam.PTransform):
    """Headers and removals as `Deduplicate` hands them over."""

    start: list[Batch]

    def expand(self, pipeline):
        headers, removals = ([b for b in self.start if (b[1][0] == REMOVALS) is kind] for kind in (False, True))
        typed = tuple[int, bytes]
        return tuple(
            pipeline | name >> beam.Create(batches).with_output_types(typed)
            for name, batches in (("headers", headers), ("removals", removals))
        )


@pytest.mark.parametrize(("parts", "partitions", "scope"), [(1, 1, "corpus"), (5, 3, "corpus"), (5, 3, "source")])
def test_as_a_transform(tmp_path, parts, partitions, scope):
    docs = corpus(1)
    removed = {doc.origin for doc in docs[::7]}
    params = LineParams(max_documents=4, scope=scope)
    layout = deal(docs, parts, parts)
    urls = write_parts(tmp_path, layout, group=20)
    start = [*(header(part, *url) for part, url in enumerate(urls)), *removal_batches(layout, removed)]

    def build(pipeline):
        decided = pipeline | _Decided(start)
        take_side_outputs(pipeline)
        return [decided | CountLines(params, SOURCES, Parts(parts), partitions)]

    (batches,) = run_and_collect(build)
    expected = oracle(docs, removed, params)
    assert found_cuts(layout, batches) == expected
    assert len(expected) > 200  # there is something to find


def test_a_hot_line_costs_a_row_per_part(tmp_path):
    docs = [make_document("everywhere\n" * 20 + f"own {n}", f"f@{n}", source="web") for n in range(200)]
    layout = [docs[:150], docs[150:], []]
    urls = write_parts(tmp_path, layout, group=10)
    rows = np.concatenate(
        [
            gather([batch], LINES, LINE)
            for part, url in enumerate(urls)
            for _, batch in form_batches(
                line_batches(part, [header(part, *url)[1]], LineParams(), SOURCES, Parts(3), 4)
            )
        ]
    )
    (hot,) = hash_lines(["everywhere"]).to_pylist()[0]
    assert sorted(rows[rows["hash"] == hot][["part", "documents"]].tolist()) == [(0, 150), (1, 50)]
    assert len(rows) == 202


def test_published_corpora_do_not_count(tmp_path):
    urls = write_parts(tmp_path, [[make_document("menu", "f@0", source="web")]] * 2)
    found = [
        list(line_batches(part, [header(part, *url)[1]], LineParams(), SOURCES, Parts(1), 1))
        for part, url in enumerate(urls)
    ]
    assert [len(batches) for batches in found] == [1, 0]


def test_parts_without_a_hot_line_are_not_read():
    assert list(cut_batches(0, [header(0, "missing/part.parquet", 3)[1]], LineParams(), SOURCES)) == []
    assert list(hot_batches(0, [], 6)) == []


@pytest.mark.parametrize(("documents", "hot"), [(3, False), (4, True)])
def test_limit_is_the_last_number_that_stays(documents, hot):
    rows = np.array([(7, part, 1) for part in range(documents)], LINE)
    (batches,) = [[batch for _, batch in cut(0, LINES, rows)]]
    assert [key for key, _ in form_batches(hot_batches(0, batches, 3))] == (list(range(documents)) if hot else [])


def test_counts_do_not_overflow():
    rows = np.array([(9, 0, 2**32 - 1), (9, 1, 2**32 - 1)], LINE)
    batches = [batch for _, batch in cut(0, LINES, rows)]
    assert [key for key, _ in form_batches(hot_batches(0, batches, 2**32 - 1))] == [0, 1]
    hashes, sums = sum_by_hash(rows["hash"], rows["documents"].astype(np.int64))
    assert (hashes.tolist(), sums.tolist()) == ([9], [2**33 - 2])


def test_documents_of_very_many_lines(tmp_path):
    half = scaled(500_000, 150_000)
    texts = ["\n".join(["same"] * half + [f"{n} {i}" for i in range(half)]) for n in (0, 1)]
    layout = [[make_document(text, "f", source="web") for text in texts]]
    ((url, rows),) = write_parts(tmp_path, layout)
    start, params = header(0, url, rows)[1], LineParams(max_documents=1)
    lines = [batch for _, batch in form_batches(line_batches(0, [start], params, SOURCES, Parts(1), 1))]
    assert len(gather(lines, LINES, LINE)) == 2 * half + 1
    hot = [batch for _, batch in form_batches(hot_batches(0, lines, params.max_documents))]
    cuts = gather([batch for _, batch in cut_batches(0, [start, *hot], params, SOURCES)], CUTS, CUT)
    assert np.array_equal(cuts["locator"], np.repeat([0, 1], half))
    assert np.array_equal(cuts["line"], np.tile(np.arange(half), 2))


# --- from documents to documents -----------------------------------------------------------------------------------


def test_parts_are_written_with_lines_only_on_demand(tmp_path):
    docs = corpus(2, 30)
    facts = {name: SourceFacts(0, name) for name in SOURCES}
    for lines in (False, True):
        folder = tmp_path / str(lines)

        def build(pipeline, folder=folder, lines=lines):
            written = pipeline | beam.Create(docs).with_output_types(Document)
            hashed = (CUT_STAGE.hashed,) if lines else ()
            written | WriteDocuments(str(folder), SIGNATURE, RankParams(), facts, hashed=hashed)
            return take_side_outputs(pipeline)

        run_and_collect(build)
        for path in (folder / "signatures").iterdir():
            table = pq.ParquetFile(path).read()
            assert ("lines" in table.column_names) is lines
            if lines:
                texts = pq.ParquetFile(folder / "documents" / path.name).read()["text"].to_pylist()
                assert table["lines"].to_pylist() == hash_lines(texts).to_pylist()


@pytest.mark.parametrize("parts", [1, 4])
def test_frequent_lines_leave_the_kept_documents(tmp_path, parts):
    docs = corpus(3)
    docs += [make_document(doc.text, f"copy-{doc.origin}", source="books") for doc in docs[:40]]
    params = LineParams(max_documents=10, min_chars=60)
    layout = deal(docs, parts, 5)
    lists = list_parts(str(tmp_path), write_parts(tmp_path, layout, group=20))

    def decide(pipeline):
        verdicts = pipeline | Deduplicate(
            DedupParams(near=None, cutting=((CUT_STAGE, params),)), SIGNATURE, SOURCES, lists
        )
        verdicts | WriteVerdicts(str(tmp_path), SOURCES)
        return take_side_outputs(pipeline)

    run_and_collect(decide)
    pairs = [
        PartPair(str(tmp_path), f"documents/part-{n}.parquet", str(tmp_path), f"verdicts/part-{n}.parquet", groups)
        for n, groups in enumerate(-(-len(part) // 20) for part in layout)
    ]
    listed = write_pairs(str(tmp_path), pairs)
    (kept,) = run_and_collect(lambda pipeline: [pipeline | ReadKeptDocuments(listed, (LINE_CUTS,)) | CUT_STAGE(params)])

    first = {doc.id: doc for doc in docs}
    by_id = {origin: doc.id for doc in docs for origin in [doc.origin]}
    representatives = {doc.id: doc for doc in first.values()}
    cuts = oracle(representatives.values(), set(), params)
    expected = {}
    for doc in representatives.values():
        numbers = [number for origin, number in cuts if by_id[origin] == doc.id]
        text = cut_text(doc.text, numbers)
        if len(text) >= params.min_chars or not numbers:
            expected[doc.id] = (text, len(numbers))
    assert {doc.id: (doc.text, doc.meta.get("lines_cut", 0)) for doc in kept} == expected
    assert 0 < len(expected) < len(representatives)
    assert sum(count for _, count in expected.values()) > 100
