"""statistics.json from reports: bounded whatever was counted, and what was not measured is said to be missing."""

from typing import Any

import orjson
import pytest

from refinery.loader.errors import FormatError
from refinery.pipelines.lanes import code, web
from refinery.pipelines.published.statistics.build import (
    HOSTS,
    SOURCES,
    VALUES,
    build_statistics,
    describe_test,
    distribution,
    places,
)
from refinery.pipelines.published.statistics.published import Statistics, dump_statistics, parse_statistics
from refinery.pipelines.recipe.load_recipe import parse_recipe
from refinery.pipelines.recipe.recipe import Recipe
from refinery.transforms.core.histogram import STEPS
from refinery.transforms.statistics.bins import Bins
from refinery.transforms.statistics.points import POINTS
from refinery.transforms.statistics.tally import MAX_SHARDS, Passing, Tally, measured_notes
from tests.sampling import one_commit_in_four

SOURCE = {"name": "crawl", "paths": ["a.warc.gz"]}


def recipe(**sections: Any) -> Recipe:
    return parse_recipe({"name": "r", "sources": [SOURCE], "tokenizer": {"path": "t.json"}, **sections})


def reports(tally: Tally) -> dict[str, Any]:
    """Of a run that counted the same everywhere."""
    clean, shards = ({p.name: tally.pack() for p in POINTS if p.phase == phase} for phase in ("clean", "shards"))
    return {
        "clean": {"statistics": clean},
        "dedup": {"components": [], "counters": []},
        "shards": {"statistics": shards},
    }


def crowded() -> Tally:
    """More of everything than is told apart."""
    tally, notes = Tally(), measured_notes(web.LANE.notes)
    for number in range(12_000):
        meta: dict[str, Any] = dict.fromkeys(notes.numbers, number / 97)
        meta |= dict.fromkeys(notes.categories, f"{number % 700:03}{'ü' * 90}")
        numbers = {"text-bytes": 1.1 ** (number % 300), "token-count": number, "bytes-per-token": 1 / (1 + number)}
        url = f"http://{number}.{'y' * 60}.{'x' * 60}.example/"
        found = ["markup", "entities", "control", "notices", "scripts"]
        doc = Passing(f"source-{number % 600:03}-{'s' * 60}", url, f"o@{number}", meta, number, 9, numbers, found)
        tally.add(doc, notes, hosts=True)
    for number in range(2000):
        values = {name: {f"v{value}": 10 + value for value in range(40)} for name in ("source", "language", "length")}
        tally.shards.at(f"train/web/{number}").update({"documents": 900, "tokens": number, "values": values})
    return tally


@pytest.fixture(scope="module")
def crowd() -> Statistics:
    return build_statistics(reports(crowded()), recipe(), 0)


@one_commit_in_four
def test_much_of_everything_is_less_than_what_the_page_says(crowd: Statistics) -> None:
    data = dump_statistics(crowd)
    assert len(data) < 1_200_000  # docs/statistics.md
    assert parse_statistics(data) == crowd


@one_commit_in_four
def test_what_is_told_apart_is_what_there_is_most_of_and_sums_hold(crowd: Statistics) -> None:
    for point in crowd.points:
        assert point.collected and point.total is not None
        for category in point.categories:
            assert category.other is not None
            assert len(category.values) == VALUES < category.distinct
            counted = [value.documents for value in category.values]
            assert counted == sorted(counted, reverse=True)
            assert sum(counted) + category.other.documents == point.total.documents == 12_000
            assert sum(v.bytes for v in category.values) + category.other.bytes == point.total.bytes
        for series in point.series:
            assert len(series.sources) == SOURCES + 1
            assert series.sources[-1].source == ""
            assert sum(each.distribution.documents for each in series.sources) == series.all.documents
            assert sum(count for _, _, count in series.all.bins) == series.all.documents
    hosts = [point.hosts for point in crowd.points if point.hosts is not None]
    assert len(hosts) == 2
    for found in hosts:
        assert len(found.top) == HOSTS and not found.exact and found.sampled == 4096
        assert found.distinct_low <= 12_000 <= found.distinct_high
    assert crowd.shards is not None
    assert crowd.shards.tested == MAX_SHARDS
    assert {test.category: test.p_value for test in crowd.shards.tests}["language"] == 1.0  # all rows are the same


@one_commit_in_four
def test_a_phase_of_a_run_that_did_not_measure_is_not_collected() -> None:
    made = reports(crowded())
    del made["clean"]["statistics"], made["dedup"]["components"]
    found = build_statistics(made, recipe(), 0)
    assert [point.name for point in found.points if point.collected] == ["deduplicated", "final", "published"]
    assert found.point("extracted") is None and found.clusters == ()
    del made["shards"]["statistics"]
    found = build_statistics(made, recipe(), 0)
    assert not any(point.collected for point in found.points) and found.shards is None
    assert parse_statistics(dump_statistics(found)) == found


def test_a_writer_that_does_not_measure_leaves_its_point_out() -> None:
    made = reports(Tally())
    del made["shards"]["statistics"]["published"]
    found = build_statistics(made, recipe(), 0)
    assert [point.name for point in found.points if not point.collected] == ["published"]
    assert found.shards is None


def test_a_run_without_documents_has_points_without_documents() -> None:
    found = build_statistics({**reports(Tally()), "clean": {"statistics": {}}}, recipe(), 0)
    for point in found.points:
        assert point.collected and point.total is not None and point.total.documents == 0
        assert point.series == point.categories == ()


def test_places_follow_from_the_stages_that_are_on() -> None:
    def found(made: Recipe, *ran: str) -> dict[str, str]:
        return {point.name: after for point, after in places(made, {"counters": [{"stage": name} for name in ran]})}

    assert found(recipe(), "exact-duplicates", "near-duplicates") == {
        "extracted": "extract",
        "cleaned": "heuristics",
        "deduplicated": "near-duplicates",
        "final": "pii",
        "published": "encode",
    }
    off = dict.fromkeys(("secrets", "url", "language", "heuristics", "toxicity", "pii"))
    bare = found(recipe(**off))
    assert bare == dict.fromkeys(("extracted", "cleaned", "deduplicated", "final"), "extract") | {"published": "encode"}
    assert found(recipe(lane="code"))["extracted"] == "source-text"
    assert measured_notes(code.LANE.notes).categories == ("license_class", "code_language", "chunk_kind")


def test_numbers_at_the_ends_are_in_bins() -> None:
    bins = Bins()
    for value in (-3.0, 0.0, 1.0, 2.0**60):
        bins.add(value)
    found = distribution(bins, 4)
    assert (found.least, found.most) == (-3.0, 2.0**60)
    assert found.bins[0][0] == -3.0 and found.bins[0][2] == 2
    assert found.quantiles[0] == -3.0
    assert distribution(Bins(), STEPS).bins == ()


def held(german: int, english: int) -> dict[str, Any]:
    """What a shard holds."""
    return {"documents": german + english, "tokens": 9, "values": {"language": {"de": german, "en": english}}}


def test_shards_are_compared_inside_splits_and_splits_inside_domains() -> None:
    alike = {"train/a/0": held(50, 50), "train/a/1": held(52, 48), "validation/a/0": held(25, 25)}
    alike["train/b/0"] = held(90, 10)
    found = describe_test("language", list(alike.items()))
    assert (found.documents, found.degrees_of_freedom) == (350, 2) and found.p_value > 0.9
    inside = {**alike, "train/a/1": held(5, 95)}
    assert describe_test("language", list(inside.items())).p_value < 1e-6
    outside = {"train/a/0": held(50, 50), "validation/a/0": held(5, 95)}
    assert describe_test("language", list(outside.items())).p_value < 1e-6
    assert describe_test("language", [("train/a/0", held(50, 50))]).degrees_of_freedom == 0


CLUSTER = {"scope": "s", "documents": 2, "components": 1, "largest": 2}
NOTHING: dict[str, Any] = {"points": [], "clusters": [CLUSTER], "shards": None}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"more": 1}, "more: "),
        ({"kind": "x"}, "kind: "),
        ({"schema_version": 2}, "schema_version: "),
        ({"points": [{"name": 7}]}, r"points\.0\.name: "),
        ({"clusters": [{**CLUSTER, "documents": -1}]}, r"clusters\.0\.documents: "),
        ({"clusters": [{**CLUSTER, "scope": "x" * 300}]}, r"clusters\.0\.scope: "),
    ],
)
def test_what_no_run_writes_is_refused_in_a_line(change: dict[str, Any], message: str) -> None:
    parse_statistics(orjson.dumps(NOTHING))
    for data in (orjson.dumps({**NOTHING, **change}), b"", b"[]", b"\xff"):
        with pytest.raises(FormatError, match=message if data[:2] == b'{"' else "statistics.json: JSON: ") as raised:
            parse_statistics(data)
        assert "\n" not in str(raised.value)
