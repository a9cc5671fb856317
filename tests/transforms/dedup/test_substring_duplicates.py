import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.transforms.core.document import Document
from refinery.transforms.core.exchange.side_outputs import take_side_outputs
from refinery.transforms.dedup import line_duplicates, substring_duplicates
from refinery.transforms.dedup.cut_lines import LINES as CUT_LINES_STAGE
from refinery.transforms.dedup.cut_lines import LineParams
from refinery.transforms.dedup.cut_substrings import SUBSTRINGS, SubstringParams
from refinery.transforms.dedup.deduplicate import Deduplicate, DedupParams, WriteVerdicts, list_parts
from refinery.transforms.dedup.records.rank import RankParams, rank_key
from refinery.transforms.dedup.records.record_batch import (
    BATCH_BYTES,
    SPAN,
    SPANS,
    Batch,
    form_batches,
    gather,
    header,
)
from refinery.transforms.dedup.reference_corpora import Parts
from refinery.transforms.dedup.signatures import Key, no_key
from refinery.transforms.dedup.substring_duplicates import (
    RUN,
    anchor_batches,
    repeat_batches,
    repeated_batches,
    span_batches,
    unpack_runs,
    window_batches,
)
from refinery.transforms.write.deal_kept_documents import ReadKeptDocuments
from refinery.transforms.write.kept_documents import PartPair, write_pairs
from tests.beam import make_document, run_and_collect
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR, examples
from tests.transforms.cutting_parts import SIGNATURE, SOURCES, Layout, deal, removal_batches, shuffle, write_parts
from tests.transforms.dedup.test_signatures import split

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

RANK = RankParams()
Spans = dict[str, list[tuple[int, int]]]  # origin -> begin and end of each span


def order(doc: Document) -> tuple[bytes, bytes, str]:
    return rank_key(doc, 0, RANK), doc.id, doc.origin


def oracle(docs: Iterable[Document], size: int) -> dict[str, list[tuple[int, int]]]:
    """The same by a plain dictionary of all runs of words: origin -> runs of words to cut, as (first, behind)."""
    stays: dict[tuple[str, ...], tuple[str, int]] = {}
    gone: dict[str, set[int]] = defaultdict(set)
    for doc in sorted(docs, key=order):
        words = split(doc.text)
        for i in range(len(words) - size + 1):
            if stays.setdefault(tuple(words[i : i + size]), (doc.origin, i)) != (doc.origin, i):
                gone[doc.origin].update(range(i, i + size))
    return {origin: runs_of(sorted(words)) for origin, words in gone.items()}


def runs_of(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Ascending numbers as (first, behind the last) of those that follow each other."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number:
            runs[-1] = (runs[-1][0], number + 1)
        else:
            runs.append((number, number + 1))
    return runs


def found_spans(layout: Layout, batches: Iterable[Batch]) -> Spans:
    """SPAN batches by origin; every batch lies under the key of its part, spans ascend and do not touch."""
    found: Spans = defaultdict(list)
    for part, batch in batches:
        for locator, begin, end in gather([batch], SPANS, SPAN).tolist():
            assert locator >> 32 == part
            spans = found[layout[part][locator & 0xFFFFFFFF].origin]
            assert begin < end
            assert not spans or spans[-1][1] < begin
            spans.append((begin, end))
    return dict(found)


def in_words(docs: Iterable[Document], spans: Spans) -> dict[str, list[tuple[int, int]]]:
    """Spans of characters as runs of words. No span begins or ends inside a word or outside of one."""
    texts = {doc.origin: doc.text for doc in docs}
    found = {}
    for origin, runs in spans.items():
        text = texts[origin]
        found[origin] = [(len(split(text[:begin])), len(split(text[:end]))) for begin, end in runs]
        for begin, end in runs:
            assert len(split(text[begin:end])) == len(split(text[:end])) - len(split(text[:begin]))
            assert len(split(text[begin + 1 : end])) <= len(split(text[begin:end]))
            assert text[begin] != " "
            assert text[end - 1] != " "
    return found


def find(
    parts: Sequence[tuple[str, int]],
    layout: Layout,
    removed: set[str],
    size: int,
    partitions: int,
    seed: int,
    key: Key = no_key,
) -> Spans:
    """`FindSubstrings` without Beam: its steps with shuffles between them."""
    rng, params = random.Random(seed), SubstringParams(min_words=size)
    start = [*(header(part, url, rows) for part, (url, rows) in enumerate(parts)), *removal_batches(layout, removed)]
    anchors = [
        batch
        for part, batches in shuffle(start, rng).items()
        for batch in form_batches(anchor_batches(part, batches, Parts(len(parts)), partitions))
    ]
    repeated = [
        batch
        for key, batches in shuffle(anchors, rng).items()
        for batch in form_batches(repeated_batches(key, batches))
    ]
    windows = [
        batch
        for part, batches in shuffle([*start, *repeated], rng).items()
        for batch in window_batches(part, batches, params, partitions, key)
    ]
    repeats = [
        batch for key, batches in shuffle(windows, rng).items() for batch in form_batches(repeat_batches(key, batches))
    ]
    spans = [
        batch
        for part, batches in shuffle([*start, *repeated, *repeats], rng).items()
        for batch in span_batches(part, batches, params, key)
    ]
    return found_spans(layout, spans)


# Runs of a shared stream of words, of any length around the limits, with words of a document's own between them.
PIECES = st.lists(
    st.tuples(
        st.sampled_from("ABCp"), st.integers(0, 60), st.sampled_from([3, 24, 25, 26, 49, 50, 51, 52, 74, 75, 90])
    ),
    min_size=1,
    max_size=4,
)
STREAMS = {
    **{name: [f"{name}{i * i % 71}" for i in range(200)] for name in "ABC"},
    "p": ["round", "and", "round,"] * 70,
}


def text_of(pieces: Iterable[tuple[str, int, int]], number: int) -> str:
    words = []
    for index, (stream, begin, length) in enumerate(pieces):
        words += [*STREAMS[stream][begin : begin + length], *([f"own{number}x{index}."] if index % 2 else [])]
    return " ".join(words)


@settings(max_examples=examples(120), deadline=None)
@given(
    st.lists(st.tuples(PIECES, st.booleans()), min_size=1, max_size=6),
    st.sampled_from([50, 50, 51, 60]),
    st.integers(1, 3),
    st.integers(1, 20),
    st.integers(0, 9),
    st.sampled_from([None, 1, 40]),
    st.booleans(),
)
def test_equals_brute_force(rows, size, parts, partitions, seed, held, all_hot):
    """Everything that is repeated is found, and nothing else, however the work is cut."""
    docs = [make_document(text_of(pieces, i), f"f@{i}", source="web") for i, (pieces, _) in enumerate(rows)]
    removed = {f"f@{i}" for i, (_, gone) in enumerate(rows) if gone and i}
    layout = deal(docs, parts, seed)
    kept = [doc for doc in docs if doc.origin not in removed]
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        if held:
            patch.setattr(line_duplicates, "HELD_LINES", held)
            patch.setattr(substring_duplicates, "HELD_WINDOWS", held)
            patch.setattr(substring_duplicates, "RUN_WINDOWS", 7)
        if all_hot:
            patch.setattr(substring_duplicates, "HOT_PLACES", 2)
        found = find(write_parts(Path(folder), layout), layout, removed, size, partitions, seed)
    assert in_words(docs, found) == oracle(kept, size)


def prose(rng: random.Random, words: int) -> list[str]:
    return [f"w{int(rng.paretovariate(1)) % 5000}" for _ in range(words)]


def planted(seed: int, documents: int = 60) -> list[Document]:
    """Documents of skewed words, most with passages of a stock, whole or in part."""
    rng = random.Random(seed)
    stock = [prose(rng, rng.randrange(40, 300)) for _ in range(8)]
    docs = []
    for n in range(documents):
        words = prose(rng, 200)
        for passage in rng.sample(stock, rng.randrange(3)):
            begin = rng.randrange(len(passage) // 2)
            place = rng.randrange(len(words))
            words[place:place] = passage[begin:]
        docs.append(make_document(" ".join(words), f"f@{n}", source=rng.choice(SOURCES)))
    return docs


@pytest.mark.parametrize("held", [100, 1 << 20])
def test_planted_passages(tmp_path, monkeypatch, held):
    docs = planted(3)
    monkeypatch.setattr(substring_duplicates, "HELD_WINDOWS", held)
    layout = deal(docs, 3, 1)
    found = find(write_parts(tmp_path, layout), layout, set(), 50, 5, 0)
    expected = oracle(docs, 50)
    assert in_words(docs, found) == expected
    assert sum(end - begin for runs in expected.values() for begin, end in runs) > 2000


def test_every_word_of_a_repeat_remains_once():
    """Chains of overlapping repeats, each document cut in favour of others that are cut themselves: nothing is lost."""
    stream = [f"s{i}" for i in range(400)]
    docs = [make_document(" ".join(stream[b : b + 120]), f"f@{b}", source="web") for b in range(0, 280, 20)]
    with TemporaryDirectory() as folder:
        found = find(write_parts(Path(folder), [docs]), [docs], set(), 50, 4, 0)
    left: dict[str, int] = defaultdict(int)
    for doc in docs:
        words, gone = split(doc.text), in_words([doc], {k: v for k, v in found.items() if k == doc.origin})
        cut = {i for begin, end in gone.get(doc.origin, []) for i in range(begin, end)}
        for i, word in enumerate(words):
            left[word] += i not in cut
    assert min(left.values()) == 1
    assert sum(left.values()) < sum(len(split(doc.text)) for doc in docs) / 2


@pytest.mark.parametrize("hot_places", [1, 1 << 20])
def test_a_hot_passage_costs_a_row_per_part_and_window(tmp_path, monkeypatch, hot_places):
    monkeypatch.setattr(substring_duplicates, "HOT_PLACES", hot_places)
    passage = " ".join(f"licence{i}" for i in range(80))
    docs = [make_document(f"own{n} {passage}", f"f@{n}", source="web") for n in range(90)]
    layout = [docs[:60], docs[60:], []]
    urls = write_parts(tmp_path, layout, group=10)
    start = [header(part, *url) for part, url in enumerate(urls)]
    anchors = [b for part, batch in start for b in form_batches(anchor_batches(part, [batch], Parts(3), 4))]
    grouped = shuffle(anchors, random.Random(0))
    repeated = [b for key, batches in grouped.items() for b in form_batches(repeated_batches(key, batches))]
    params = SubstringParams()
    sent = [
        batch
        for part, batches in shuffle([*start, *repeated], random.Random(1)).items()
        for batch in window_batches(part, batches, params, 4)
    ]
    _, hashes = unpack_runs([batch for _, batch in sent])
    assert len(hashes) <= 2 * 31 + len(docs)  # the passage's windows, twice; a document's own first one at most
    repeats = [
        b
        for key, batches in shuffle(sent, random.Random(2)).items()
        for b in form_batches(repeat_batches(key, batches))
    ]
    everything = shuffle([*start, *repeated, *repeats], random.Random(3))
    spans = found_spans(
        layout, [b for part, batches in everything.items() for b in span_batches(part, batches, params)]
    )
    best = min(docs, key=order).origin
    assert set(spans) == {doc.origin for doc in docs} - {best}


def test_batches_are_bounded():
    keys = np.repeat([0, 1], 3000)
    runs = np.zeros(6000, RUN)
    runs["count"] = np.tile([1, 1000, 0], 2000)
    hashes = np.arange(int(runs["count"].sum()), dtype=np.uint64)
    batches = list(substring_duplicates.pack_runs(keys, runs, hashes))
    assert len(batches) > 10
    assert all(len(batch) <= BATCH_BYTES for _, batch in batches)
    unpacked, values = unpack_runs([batch for _, batch in batches])
    assert np.array_equal(unpacked, runs)
    assert np.array_equal(values, hashes)


def test_published_corpora_do_not_count(tmp_path):
    docs = [make_document(" ".join(f"w{i}" for i in range(60)), "f@0", source="web")]
    urls = write_parts(tmp_path, [docs, docs])
    found = [list(anchor_batches(part, [header(part, *url)[1]], Parts(1), 1)) for part, url in enumerate(urls)]
    assert [len(batches) for batches in found] == [1, 0]


def test_parts_without_a_repeat_are_not_read():
    (_, missing), params = header(0, "missing/part.parquet", 3), SubstringParams()
    assert list(window_batches(0, [missing], params, 1)) == []
    assert list(span_batches(0, [missing], params)) == []
    assert list(repeated_batches(0, [])) == []
    assert list(repeat_batches(0, [])) == []


# --- from documents to documents -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("parts", "partitions", "salt"), [(1, 1, ""), (4, 2, "what a run reads")])
def test_repeats_leave_the_kept_documents(tmp_path, parts, partitions, salt):
    docs = planted(5)
    docs += [make_document(doc.text, f"copy-{doc.origin}", source="books") for doc in docs[:20]]
    params = SubstringParams(min_chars=60)
    layout = deal(docs, parts, 5)
    lists = list_parts(str(tmp_path), write_parts(tmp_path, layout, group=20))

    def decide(pipeline):
        chosen = DedupParams(near=None, cutting=((CUT_LINES_STAGE, LineParams()), (SUBSTRINGS, params)))
        verdicts = pipeline | Deduplicate(chosen, SIGNATURE, SOURCES, lists, partitions, salt=salt)
        verdicts | WriteVerdicts(str(tmp_path), SOURCES)
        return take_side_outputs(pipeline)

    run_and_collect(decide)
    pairs = [
        PartPair(str(tmp_path), f"documents/part-{n}.parquet", str(tmp_path), f"verdicts/part-{n}.parquet", groups)
        for n, groups in enumerate(-(-len(part) // 20) for part in layout)
    ]
    listed = write_pairs(str(tmp_path), pairs)

    def build(pipeline):
        cuts = (CUT_LINES_STAGE.cuts, SUBSTRINGS.cuts)
        return [pipeline | ReadKeptDocuments(listed, cuts) | SUBSTRINGS(params) | CUT_LINES_STAGE(LineParams())]

    (kept,) = run_and_collect(build)
    best: dict[bytes, Document] = {}
    for doc in sorted(docs, key=order):
        best.setdefault(doc.id, doc)
    gone = oracle(best.values(), 50)
    expected = {}
    for doc in best.values():
        cut = {i for begin, end in gone.get(doc.origin, []) for i in range(begin, end)}
        text = " ".join(word for i, word in enumerate(doc.text.split(" ")) if i not in cut).strip()
        if len(text) >= params.min_chars or not cut:
            expected[doc.origin] = text
    assert {doc.origin: doc.text.strip() for doc in kept} == expected
    assert sum("chars_cut" in doc.meta for doc in kept) > 10
