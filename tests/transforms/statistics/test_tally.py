"""The same sums, byte for byte, in whatever parts and order documents come together; and never more than so many."""

import base64
import random
import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.pipelines.lanes.web import LANE
from refinery.transforms.statistics import hosts, tally
from refinery.transforms.statistics.hosts import HostCounts, read_hosts
from refinery.transforms.statistics.keyed import counts
from refinery.transforms.statistics.measure import MergeStatistics, merge_statistics
from refinery.transforms.statistics.tally import Measured, Passing, Tally, measured_notes, passing_text, unpack
from tests.beam import make_document
from tests.sampling import examples, one_commit_in_four

NOTES = Measured(("language",), ("score", "level"))


def passing(number: int) -> Passing:
    """An invented document; few of them are alike."""
    draw = random.Random(number)
    meta: dict[str, Any] = {"language": f"l{draw.randrange(40)}", "score": draw.random(), "level": draw.randrange(5)}
    meta = {name: value for name, value in meta.items() if draw.random() < 0.8}
    url = f"https://h{int(draw.expovariate(0.05))}.example/{number}" if number % 7 else ""
    size = int(draw.lognormvariate(8, 2))
    numbers = {"text-bytes": size, "bytes-per-token": size / (1 + draw.randrange(900))}
    found = draw.sample(["markup", "control"], draw.randrange(3))
    return Passing(f"s{draw.randrange(9)}", url, f"file@{number}", meta, size, size // 4, numbers, found)


def tally_of(docs: Sequence[Passing]) -> Tally:
    whole = Tally()
    for doc in docs:
        whole.add(doc, NOTES, hosts=True)
    return whole


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds so low that a few hundred documents exceed all of them."""
    monkeypatch.setattr(hosts, "TABLE", 12)
    monkeypatch.setattr(hosts, "SAMPLE", 20)
    monkeypatch.setattr(hosts, "LG_K", 5)
    monkeypatch.setattr(tally, "counts", lambda: counts(5))
    monkeypatch.setattr(tally, "_distributions", lambda: tally.Keyed(tally.Bins, tally.merge_bins, 4))


def merged_in_some_order(parts: list[Tally], draw: random.Random) -> Tally:
    """One tally of all, by a random tree of merges; some of them pass through a report."""
    parts = [unpack(part.pack()) if draw.random() < 0.5 else part for part in parts]
    while len(parts) > 1:
        draw.shuffle(parts)
        first, second = parts.pop(), parts.pop()
        first.merge(second)
        parts.append(unpack(first.pack()) if draw.random() < 0.3 else first)
    return parts[0]


@given(st.integers(0, 300), st.integers(1, 12), st.integers(0, 2**32))
@settings(max_examples=examples(60), deadline=None)
@pytest.mark.usefixtures("small")
def test_parts_and_their_order_leave_no_trace(documents: int, bundles: int, seed: int) -> None:
    draw = random.Random(seed)
    docs = [passing(number) for number in range(documents)]
    whole = tally_of(docs)
    draw.shuffle(docs)
    parts: list[list[Passing]] = [[] for _ in range(bundles)]
    for doc in docs:
        draw.choice(parts).append(doc)
    assert merged_in_some_order([tally_of(part) for part in parts], draw).pack() == whole.pack()
    together = Tally()
    for part in parts:
        together.add_all(part, NOTES, hosts=True)
    assert together.pack() == whole.pack()


@pytest.mark.usefixtures("small")
def test_what_is_kept_of_many_keys_is_exact_and_the_rest_is_a_sum() -> None:
    docs = [passing(number) for number in range(300)]
    found = tally_of(docs)
    found.pack()
    languages = found.categories["language"]
    assert len(languages.sums) == 5
    for key, sums in languages.sums.items():
        mine = [doc for doc in docs if doc.meta.get("language", "") == key]
        assert sums == [len(mine), sum(doc.size for doc in mine), sum(doc.tokens for doc in mine)]
    assert languages.rest is not None
    assert [sum(column) for column in zip(*languages.sums.values(), languages.rest, strict=True)] == found.total
    assert found.distribution("text-bytes").documents == 300


def test_hosts_are_exact_as_long_as_they_fit_the_table() -> None:
    found = HostCounts()
    for number in range(3000):
        found.add(f"http://h{number % hosts.TABLE}.example/{number}", f"o@{number}", 10)
    found.add("", "o@x", 5)
    found.add("no address", "o@y", 5)
    assert found.without == [2, 10]
    assert found.distinct() == (3000,) * 3
    assert found.errors() == (0, 0, 1.0)
    assert found.top(2) == [("h0.example", 1, 10), ("h1.example", 1, 10)]


def test_hosts_beyond_the_table_are_as_near_as_is_said() -> None:
    """20,000 hosts of which a few have a thousandth of the documents or more."""
    draw, found, exact = random.Random(5), HostCounts(), dict[str, list[int]]()
    for number in range(60_000):
        host = f"big{number % 7}.example" if number % 3 == 0 else f"h{draw.randrange(20_000)}.example"
        found.add(f"https://{host}/{number}", f"o@{number}", 100)
        entry = exact.setdefault(host, [0, 0])
        entry[0] += 1
        entry[1] += 100
    found = read_hosts(found.plain())
    estimate, low, high = found.distinct()
    assert low <= len(exact) <= high
    assert low < estimate < high < 1.1 * low
    documents_error, bytes_error, confidence = found.errors()
    assert 0 < documents_error < 60_000 / 1000
    top = found.top(100)
    assert {host for host, _, _ in top[:7]} == {f"big{n}.example" for n in range(7)}
    right = [
        exact[host][0] <= documents <= exact[host][0] + documents_error
        and exact[host][1] <= size <= exact[host][1] + bytes_error
        for host, documents, size in top
    ]
    assert sum(right) >= confidence * len(right)


@one_commit_in_four
def test_a_report_holds_less_than_a_megabyte_whatever_comes() -> None:
    whole = Tally()
    for number in range(20_000):
        source, host = f"source {number % 900}", f"{number}.{'x' * 40}.example"
        meta = {"language": f"{number % 1000}" * 200, "score": number / 7}
        numbers = {"text-bytes": 2 ** (number % 47), "text-lines": number}
        doc = Passing(source, f"http://{host}/", f"o@{number}", meta, number, 1, numbers, ["markup", "control"])
        whole.add(doc, NOTES, hosts=True)
    for number in range(3000):
        values = {name: {f"v{value}": number for value in range(50)} for name in ("source", "language", "length")}
        whole.shards.at(f"train/web/{number}").update({"documents": number, "tokens": 9, "values": values})
    assert len(whole.pack()) < 1_500_000
    assert len(whole.shards.sums) == tally.MAX_SHARDS
    assert unpack(whole.pack()).pack() == whole.pack()


HOSTILE = (
    "\ud800",
    "http://" + "\ud800" * 300 + ".a/",
    "http://[::1",
    "http://a\x00b/",
    "//\\@%ff",
    "x" * 5000,
    "http://" + "ü" * 400 + "/",
    "a.b:99999/?#",
)


@pytest.mark.parametrize("url", HOSTILE)
def test_no_document_stops_a_run(url: str) -> None:
    odd = {"language": "\ud800", "score": float("nan"), "level": 10**400}
    found = Tally()
    doc = replace(make_document(""), text="t\ud800ext\r\0" + url)
    found.add(Passing("s", url, "o\ud800", odd, 3, 0, {"text-bytes": 3}), NOTES, hosts=True)
    found.add(passing_text(doc, find=True), measured_notes(LANE.notes), hosts=True)
    found.merge(unpack(found.pack()))
    assert found.total[0] == 4
    assert not {"score", "level"} & set(found.series)


def test_what_is_measured_follows_from_the_lane() -> None:
    notes = measured_notes(LANE.notes)
    assert notes.categories == ("license", "language", "perplexity_bucket")
    assert {"language_score", "quality", "copies", "perplexity"} <= set(notes.numbers)
    assert not {"copy_sources", "pii_types"} & set(notes.numbers)


def test_a_report_that_did_not_measure_makes_the_sum_unknown() -> None:
    whole = tally_of([passing(1), passing(2)])
    halves = [{"statistics": {"extracted": tally_of([passing(number)]).pack()}} for number in (1, 2)]
    assert merge_statistics(halves) == {"extracted": whole.pack()}
    assert merge_statistics([*halves, {"statistics": {}}]) == {"extracted": whole.pack()}
    assert merge_statistics([*halves, {"counters": []}]) is None
    merger = MergeStatistics()
    for half in reversed(halves):
        merger.add_record({"point": "extracted", "tally": half["statistics"]["extracted"]})
    assert merger.result() == {"extracted": whole.pack()}


BOMB = base64.b64encode(zlib.compress(b" " * (tally.MAX_UNPACKED // 64 + 1))).decode()
DAMAGED = (("", "zero-length"), ("AAAA", "not a tally"), ("no base64!", "base64"), (BOMB, "more than"))


@pytest.mark.parametrize(("packed", "message"), DAMAGED)
def test_a_damaged_tally_is_an_error(packed: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "MAX_UNPACKED", tally.MAX_UNPACKED // 64)
    with pytest.raises(ValueError, match=message):
        unpack(packed)
