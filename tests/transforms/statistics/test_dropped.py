"""What is recorded of dropped documents: the smallest hashes of all, whatever the bundles, workers and retries."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.core.answers import Answer
from refinery.transforms.core.document import Document, Drop, document_id
from refinery.transforms.filter.heuristics import HEURISTICS
from refinery.transforms.filter.heuristics_rules import GopherParams, HeuristicsParams
from refinery.transforms.statistics.dropped import (
    EXAMPLES,
    LIMITS,
    Dropped,
    DropRecorder,
    Example,
    Least,
    MergeDropped,
    dropped_hash,
    unpack_dropped,
)


def document(number: int, text: str = "too short") -> Document:
    return Document(document_id(text), text, f"https://a.example/{number}", "crawl", f"a.warc.gz@{number}", number)


def drop(number: int) -> Drop:
    return Drop("quality-score", {"quality": number % 7 / 10}, {"quality": 0.5})


def recorded(bundles: Sequence[Sequence[int]], recorder: DropRecorder | None = None) -> list[bytes]:
    """The records of a worker that is given these bundles."""
    recorder = recorder or DropRecorder(categories=("language",))
    records = []
    for bundle in bundles:
        recorder.start()
        for number in bundle:
            doc = document(number)
            recorder.add("quality", doc.source, doc.url, doc.origin, 9, Answer(drop(number)), doc)
        record = recorder.record()
        records += [record] if record else []
    return records


def merged(records: Sequence[bytes]) -> str:
    import orjson

    total = MergeDropped()
    for record in records:
        fields = orjson.loads(record)
        assert fields.pop("kind") == "dropped"
        total.add_record(fields)
    return total.result()


@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(1, 40))
def test_the_same_examples_however_the_work_was_cut(seed: int, workers: int, size: int) -> None:
    numbers = list(range(200))
    whole = merged(recorded([numbers]))
    random.Random(seed).shuffle(numbers)
    parts = [numbers[worker::workers] for worker in range(workers)]
    records = [
        record
        for part in parts
        for record in recorded([part[start : start + size] for start in range(0, len(part), size)])
    ]
    random.Random(seed + 1).shuffle(records)
    assert merged(records) == whole
    found = unpack_dropped(whole)
    hashes = sorted(
        dropped_hash("quality", "quality-score", "crawl", f"a.warc.gz@{number}", document(number).id)
        for number in range(200)
    )
    assert sorted(found.examples["quality", "quality-score"]) == hashes[:EXAMPLES]


def test_a_bundle_that_is_lost_and_repeated_leaves_no_trace() -> None:
    """A worker has seen the documents of a bundle that failed: it records them once more all the same."""
    recorder = DropRecorder(categories=("language",))
    recorded([range(50)], recorder)  # lost
    again = recorded([range(50), range(50, 200)], recorder)
    assert merged(again) == merged(recorded([range(200)]))


def test_only_few_documents_are_looked_at_closely() -> None:
    least = Least()
    taken = sum(least.takes(number) for number in random.Random(1).sample(range(10**9), 20_000))
    assert EXAMPLES <= taken < 400  # 20 (1 + ln(1,000)) = 158 are expected


def test_what_a_rule_measured_stands_beside_its_threshold() -> None:
    params = HeuristicsParams(gopher=GopherParams(min_words=50))
    recorder = DropRecorder(HEURISTICS, params)
    recorder.start()
    doc = document(1, " ".join(["word"] * 30) + ".")
    answer = HEURISTICS.judge(doc, params=params) if HEURISTICS.judge else None
    if not isinstance(answer, Drop):
        pytest.fail("kept")
    recorder.add("heuristics", doc.source, doc.url, doc.origin, 9, Answer(answer), doc)
    found = unpack_dropped(merged([recorder.record() or b""]))
    ((row,),) = (rows.values() for rows in found.examples.values())
    values = {name: (value, limit) for name, value, limit in row[5]}
    if answer.reason == "gopher-too-few-words":
        assert values == {"gopher.min_words": (30, 50.0)}
    else:  # a rule before it: its own threshold is missed
        (value, limit) = next(iter(values.values()))
        assert value != limit


def test_scores_languages_and_thresholds_are_counted_and_bounded() -> None:
    total = Dropped()
    for number in range(100):
        total.count("language", 10, {"language": f"l{number % 3}"}, drop(number))
        total.count("language", 10, {}, Drop("x", {"quality": 0.1}, {"quality": float(number)}))
    again = unpack_dropped(total.pack())
    assert again.pack() == total.pack()
    assert {key: sums[0] for key, sums in again.categories["language"]["language"].sums.items()} == {
        "l0": 34, "l1": 33, "l2": 33
    }  # fmt: skip
    assert sum(bins.documents for bins in again.scores["language"]["quality"].sums.values()) == 200
    assert again.limits["language"]["quality"] == {0.0, 0.5, *map(float, range(1, LIMITS - 1))}


def test_what_is_published_is_bounded_and_has_no_secrets_in_addresses() -> None:
    example = Example.of(
        "s", "https://user:pass@a.example/" + "x" * 9000, "o\udc80", 1, "f" * 9000, [("a", 0.1234567891, None)]
    )
    assert "pass" not in example.url and len(example.url) == 500 and len(example.found) == 200
    assert example.origin == "o?" and example.values == (("a", 0.123457, None),)


@pytest.mark.parametrize("packed", ["", "!!", "AAAA"])
def test_anything_else_is_refused(packed: str) -> None:
    with pytest.raises(ValueError):
        unpack_dropped(packed)
