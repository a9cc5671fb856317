"""Arithmetic of progress: fractions, rates, how long it will still take; with zero, unknown and resumed totals."""

import pytest

from refinery.pipelines.progress.measure import LEAST_WINDOW, MOST_SAMPLES, Phase, Rates, Sample
from refinery.pipelines.progress.work import StageCounts, Step, Work, stage_counts
from tests.pipelines.progress.snapshots import clean_snapshot, clean_work


@pytest.mark.parametrize(
    ("steps", "totals", "done"),
    [
        ([], {"work bytes": 5}, None),  # nothing is known
        ([Step("bytes", 0)], {"work bytes": 5}, None),  # there is nothing to do
        ([Step("bytes", 10)], {}, 0.0),
        ([Step("bytes", 10)], {"work bytes": 5}, 0.5),
        ([Step("bytes", 10)], {"work bytes": 25}, 1.0),  # a bundle was retried
        ([Step("rows", 10, 3), Step("shards", 4, 1)], {"work rows": 10}, 0.75),
        ([Step("rows", 10, 3), Step("shards", 0, 1)], {"work rows": 5}, 0.5),  # a corpus without shards
        ([Step("rows", 10)], {"work rows": -3}, 0.0),
    ],
)
def test_how_much_of_a_job_is_done(steps: list[Step], totals: dict[str, int], done: float | None) -> None:
    assert Work(steps=steps).done(totals) == done


def test_a_wave_is_a_part_of_its_phase() -> None:
    work = clean_work()
    assert (work.title, work.bytes_total, work.ends_phase) == ("1/3 clean", 300_000_000, False)
    assert work.phase_done(0.5) == 0.5 == work.bytes_done({"work bytes": 50_000_000}) / work.bytes_total
    assert work.phase_done(None) is None and Work().phase_done(0.25) == 0.25
    assert Work("export").title == "export" and Work().ends_phase


def test_a_snapshot_in_the_middle() -> None:
    found = clean_snapshot()
    assert (found.bytes_done, found.documents, found.files_done) == (150_000_000, 700, 1)
    assert (found.bytes_per_second, found.documents_per_second) == (5_000_000, 70)
    assert found.fraction == 0.5 and found.eta_seconds == pytest.approx(30)
    assert found.stages == (StageCounts("read", 1700, 250, 2), StageCounts("extract", 690, 0, 0))


def test_what_earlier_commands_did_is_no_speed_of_this_one() -> None:
    phase, work = Phase(began=0.0, bytes_before=100_000_000), clean_work(wave=3, bytes_after=0)
    first = phase.snapshot("", work, {}, 1.0)
    assert (first.fraction, first.bytes_per_second, first.eta_seconds) == (0.5, None, None)
    end = phase.snapshot("", work, {"read kept": 40}, 10.0, final=True)
    assert (end.fraction, end.bytes_done, end.eta_seconds) == (1.0, 200_000_000, 0.0)
    assert (end.bytes_per_second, end.documents_per_second) == (10_000_000, 4)  # of the whole phase, here


def test_a_phase_of_which_nothing_is_known() -> None:
    phase, work = Phase(began=0.0), Work("dedup")
    assert phase.snapshot("", work, {"near kept": 3}, 5.0).fraction is None
    end = phase.snapshot("", work, {}, 5.0, final=True)
    assert (end.fraction, end.eta_seconds, end.seconds) == (1.0, None, 5.0)


def rates(*points: tuple[float, float]) -> Rates:
    made = Rates()
    for time, fraction in points:
        made.add(Sample(time, fraction, int(1000 * fraction), int(100 * fraction)))
    return made


@pytest.mark.parametrize(
    ("points", "eta"),
    [
        ((), None),
        (((0, 0.0),), None),
        (((0, 0.0), (1, 0.5)), None),  # too early to guess
        (((0, 0.0), (10, 0.0)), None),  # nothing moves
        (((0, 0.0), (10, 0.5)), 10),
        (((5, 0.5), (5, 0.6)), None),  # no time has gone by
        (((0, 0.9), (10, 1.0)), 0),
        (((0, 0.0), (100, 0.1), (150, 0.2), (200, 0.4)), 200),  # the last half counts: .3 in 100 seconds
        (((0, 0.5), (10, 0.6), (20, 0.3), (30, 0.4)), 60),  # the next job knew better
    ],
)
def test_how_long_it_will_still_take(points: tuple[tuple[float, float], ...], eta: float | None) -> None:
    assert rates(*points).eta() == (None if eta is None else pytest.approx(eta))


def test_a_long_run_keeps_few_samples() -> None:
    made = rates(*((float(second), second / 20_000) for second in range(10_000)))
    assert len(made.samples) <= MOST_SAMPLES
    assert made.per_second(lambda sample: sample.bytes) == pytest.approx(0.05, rel=0.01)
    assert made.eta() == pytest.approx(10_000, rel=0.01)
    first, last = made.window() or (None, None)
    assert first and last and last.time - first.time > LEAST_WINDOW


def test_stages_keep_their_order_and_add_up() -> None:
    totals = {"b kept": 3, "a kept": 5, "a created": 2, "a dropped": 1, "a dead": 1, "a found": 9, "files done": 4}
    found = stage_counts(totals, ["a", "silent"])
    assert [(stage.name, *stage.plain().values()) for stage in found] == [("a", 5, 5, 1, 1), ("b", 3, 3, 0, 0)]
