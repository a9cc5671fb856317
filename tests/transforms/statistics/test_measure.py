"""Documents are counted once wherever they are measured, however often bundles run, and as the lane says."""

from dataclasses import replace
from typing import Any

import apache_beam as beam
import orjson
import pytest

from refinery.pipelines.lanes.web import LANE
from refinery.transforms.core.exchange.records import side_output_record
from refinery.transforms.core.job.report import merge_records
from refinery.transforms.core.params import Params
from refinery.transforms.core.stage import Note, Stage
from refinery.transforms.statistics import measure_texts
from refinery.transforms.statistics.measure import KIND, MergeStatistics
from refinery.transforms.statistics.measure_texts import MeasureTexts
from refinery.transforms.statistics.points import EXTRACTED, POINTS, points_of
from refinery.transforms.statistics.tally import Tally, measured_notes, passing_text, unpack
from tests.beam import make_document, merge_side_outputs, run_and_collect

STEEP: Stage[Params] = Stage(
    name="steep",
    version=1,
    summary="Notes something.",
    params=Params,
    judge=lambda doc, params: doc,
    notes=(Note("steepness", float, "how steep"), Note("slope", str, "of which kind", category=True)),
)
NOTES = measured_notes(LANE.insert(STEEP, after="heuristics").notes)
DOCS = [
    replace(
        make_document(f"<p>text {number}</p>" + "x" * number, f"f@{number}"),
        url=f"https://{number % 5}.example/",
        meta={"steepness": number / 3, "slope": "up" if number % 3 else "down", "language": "en"},
    )
    for number in range(700)
]


def expected() -> Tally:
    tally = Tally()
    for doc in DOCS:
        tally.add(passing_text(doc, find=True), NOTES, hosts=True)
    return tally


@pytest.mark.parametrize("flags", [(), ("--direct_runner_bundle_repeat=2",)])
def test_every_document_is_counted_once(flags: tuple[str, ...]) -> None:
    def build(pipeline: beam.Pipeline) -> list[beam.PCollection]:
        pipeline | beam.Create(DOCS) | beam.Reshuffle() | MeasureTexts(EXTRACTED, NOTES)
        return [merge_side_outputs(pipeline)]

    (records,) = run_and_collect(build, *flags)
    report = merge_records(records, {KIND: MergeStatistics})
    assert report[KIND] == {"extracted": expected().pack()}
    assert report["seconds"][KIND] > 0
    found = unpack(report[KIND]["extracted"])
    assert found.categories["slope"].sums["up"][0] == 466
    assert found.distribution("steepness").documents == 700


def test_what_waits_to_be_measured_is_bounded() -> None:
    step: Any = measure_texts._MeasureTexts(EXTRACTED, NOTES)
    step.start_bundle()
    held = []
    for doc in DOCS:
        assert list(step.process(doc)) == []
        held.append(len(step.docs))
    assert max(held) < measure_texts.BATCH_DOCUMENTS
    step.process(replace(DOCS[0], text="", meta={"title": "t" * measure_texts.BATCH_CHARACTERS}))
    assert step.docs == []
    records = [orjson.loads(record.value.value) for record in step.finish_bundle()]
    assert [record["kind"] for record in records] == ["statistics", "seconds"]
    step.start_bundle()
    assert list(step.finish_bundle()) == []  # DirectRunner has such bundles after the last one


def test_a_report_of_a_job_that_does_not_measure_knows_no_statistics() -> None:
    assert KIND not in merge_records([])
    assert merge_records([], {KIND: MergeStatistics})[KIND] == {}
    with pytest.raises(ValueError, match="unknown side-output record 'statistics'"):
        merge_records([side_output_record(KIND, point="extracted", tally="")])


def test_points_follow_from_the_lane() -> None:
    def names(phase: str, *stages: Stage[Any]) -> list[tuple[str, str]]:
        return [(after, point.name) for after, point in points_of(phase, stages or LANE.phase(phase))]

    assert names("clean") == [("extract", "extracted"), ("heuristics", "cleaned")]
    assert names("shards") == [("", "deduplicated"), ("keep", "final")]
    assert names("clean", *LANE.clean, STEEP) == [("extract", "extracted"), ("steep", "cleaned")]
    assert names("shards", LANE.shards[-1]) == [("", "deduplicated"), ("", "final")]
    assert names("clean", LANE.clean[0]) == []
    assert len({point.name for point in POINTS}) == len(POINTS)
