"""The work of the phases as it is foreseen is what the jobs count, to the last row, byte and shard."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from refinery.pipelines.progress.work import Work
from refinery.pipelines.recipe.load_recipe import load_recipe
from refinery.pipelines.run.refine import Refinement
from refinery.pipelines.runners.runner import Runner
from refinery.transforms.core.counters import LiveBytes
from refinery.transforms.core.live import LIVE, WORK, live_totals
from tests.sampling import sampled


class Noting(Runner):
    """Notes what each job was to do, and what it did."""

    noted: list[tuple[Work, Counter[str]]]

    def run(self, label: str, build: Callable[..., None], work: Work | None = None, *more: Any, **facts: Any) -> None:
        before = live_totals()
        super().run(label, build, work, *more, **facts)
        done = live_totals()
        done.subtract(before)
        assert work is not None
        self.noted.append((work, done))


@pytest.mark.parametrize(
    "settings",
    sampled(
        "jobs that are foreseen",
        [
            ["exact_dup=true"],
            ["near_dup={}", "near_dup_in_source={s: {}}", "url_dup={}"],
            ["near_dup={verify: exact}", "line_dup={}", "run.wave_files=1"],
            ["substring_dup={}", "exact_dup=false"],
        ],
        2,
    ),
)
def test_every_job_does_what_was_foreseen(small: Path, tmp_path: Path, settings: list[str]) -> None:
    recipe = load_recipe(str(small / "recipe.yaml"), settings, [])
    runner = Noting("local", 0, quiet=True)
    runner.noted = []
    with runner.open():
        Refinement(recipe, str(tmp_path / "out"), runner, say=lambda line: None).run()
    assert [work.phase for work, _ in runner.noted][-2:] == ["dedup", "shards"]
    for work, done in runner.noted:
        assert work.steps and all(step.total > 0 for step in work.steps)
        assert {step.unit: done[f"{WORK} {step.unit}"] for step in work.steps} == {
            step.unit: step.total for step in work.steps
        }, work.phase
        assert work.stages and (work.phase == "dedup" or done[work.documents] > 0)
    clean = [work for work, _ in runner.noted if work.phase == "clean"]
    assert len({work.bytes_total for work in clean}) == 1 and clean[-1].bytes_after == 0 == clean[0].bytes_before


def test_bytes_of_a_file_are_counted_once_however_it_is_read() -> None:
    before = LIVE[WORK, "bytes"]
    share = LiveBytes(100)
    for size in (60, 0, 60, 60):  # a reader that goes back after damage
        share.add(size)
    assert LIVE[WORK, "bytes"] - before == 100
    share.end()
    other = LiveBytes(100)
    other.add(10)  # a reader that needs some columns alone
    other.end()
    assert LIVE[WORK, "bytes"] - before == 200
