"""What a finished run says: counts of its files, families of copies, retentions; and plans from it."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import read_manifest
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.reports.plan.formulas import product
from refinery.pipelines.reports.plan.from_run import forecast_lines, plan_from
from refinery.pipelines.reports.plan.measured import Measured, _end, measure
from refinery.pipelines.reports.plan.presets import STAGES
from refinery.pipelines.run.api import refine
from refinery.pipelines.run.phases import seconds_of_work
from tests.corpus_factory import replace_manifest
from tests.pipelines.small_runs import OFF, WORDS
from tests.plain_manifest import manifest_of


def text(number: int) -> str:
    """40 words; no two texts resemble each other."""
    return " ".join(f"{WORDS[(number * 7 + place * place) % 60]}{number}" for place in range(40))


@pytest.fixture(scope="module")
def measured(small: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Measured, Path]:
    """Ten files of four documents; text 1000 is in all even files, text 1 of file 0 is in file 1, too, and twice."""
    folder = tmp_path_factory.mktemp("ten")
    for number in range(10):
        texts = [text(number * 10 + place) for place in range(4)]
        texts += [text(1000)] if number % 2 == 0 else []
        texts += [text(1), text(1)] if number == 1 else []
        rows = [json.dumps({"text": each, "url": f"https://h{number}.example/{i}"}) for i, each in enumerate(texts)]
        (folder / f"part-{number}.jsonl").write_text("\n".join(rows) + "\n")
    recipe = {
        "name": "ten",
        "sources": [{"name": "s", "paths": [str(folder / "*.jsonl")]}],
        "tokenizer": {"path": str(small / "tokenizer.json")},
        "shards": {"validation": 0.3},
        **OFF,
    }
    refine(recipe, folder / "out", workers=0)
    prefix = str(folder / "out")
    seconds = seconds_of_work(open_store(prefix)) or {}
    return measure(prefix, sum(seconds.values())), folder / "out"


def test_a_runs_files_are_a_sample(measured: tuple[Measured, Path]) -> None:
    run, prefix = measured
    manifest = read_manifest(open_store(str(prefix)))
    sample = run.sample
    assert sample is not None
    assert run.why == ""
    assert sample.tokens == pytest.approx(manifest.totals["tokens"])
    assert sorted(sorted(files) for _, files in sample.families) == [[0, 1], [0, 2, 4, 6, 8]]
    assert sample.documents == 40 + 5 + 1
    assert list(sample.sizes) == [path.stat().st_size for path in sorted(prefix.parent.glob("*.jsonl"))]
    each = manifest.totals["tokens"] / 41  # texts are of one shape, so of nearly one length
    assert sample.weights == pytest.approx(np.array([5, 5, 5, 4, 5, 4, 5, 4, 5, 4]) * each, rel=0.2)


def test_retentions_are_of_every_stage_of_the_lane(measured: tuple[Measured, Path]) -> None:
    run, prefix = measured
    manifest = read_manifest(open_store(str(prefix)))
    assert list(run.retentions) == list(STAGES)
    assert run.retentions["exact-duplicates"] == pytest.approx(41 / 47, rel=0.05)
    assert run.raw * product(run.retentions) == pytest.approx(manifest.totals["bytes"])
    assert run.seconds > 0
    assert (run.files, run.tokens) == (10, manifest.totals["tokens"])


def test_the_plan_of_the_whole(measured: tuple[Measured, Path]) -> None:
    run, _ = measured
    found = plan_from(run, {}, share=0.01)
    assert found.times == 100
    said = found.forecast
    assert said is not None
    values = found.plan.values()
    assert values["output_tokens"] == pytest.approx(said.tokens.middle, rel=1e-3)
    assert values["target_share"] >= 1
    assert said.rest.middle == pytest.approx(said.tokens.middle - run.tokens)
    assert found.retentions["exact-duplicates"] < run.retentions["exact-duplicates"]
    lines = "\n".join(forecast_lines(found))
    assert "of 10 files" in lines
    assert "the whole: 100 times that" in lines


def test_how_large_the_whole_has_to_be(measured: tuple[Measured, Path]) -> None:
    run, _ = measured
    for tokens in (1e5, 1e7):
        found = plan_from(run, {"tokens": tokens})
        assert found.forecast is not None
        assert found.forecast.tokens.middle == pytest.approx(tokens, rel=1e-6)
        assert found.plan.values()["raw"] == pytest.approx(run.raw * found.times, rel=1e-3)
    assert plan_from(run, {"raw": run.raw * 7}).times == pytest.approx(7)


@pytest.mark.parametrize(
    ("given", "share", "message"),
    [
        ({}, 0.0, "by one of --share, --raw and --tokens"),
        ({"raw": 1e9}, 0.5, "by one of --share, --raw and --tokens"),
        ({"raw": 1.0}, 0.0, "the run itself read"),
        ({"tokens": 1.0}, 0.0, "the run itself has"),
        ({"tokens": 1e29}, 0.0, "would not give that many"),
    ],
)
def test_a_whole_that_cannot_be(
    measured: tuple[Measured, Path], given: dict[str, float], share: float, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        plan_from(measured[0], given, share)


def test_three_files_give_no_interval(corpus: Path) -> None:
    """The demo's crawl: a plan all the same, and why there is no interval."""
    run = measure(str(corpus))
    found = plan_from(run, {}, share=0.1)
    assert found.forecast is None
    assert found.plan.values()["output_tokens"] == pytest.approx(run.tokens * 10, rel=1e-2)
    assert any("no interval: " in line and "not independent" in line for line in forecast_lines(found))


def changed(prefix: Path, to: Path, change: Any) -> str:
    """A copy of the corpus with another manifest, sealed anew."""
    shutil.copytree(prefix, to, ignore=shutil.ignore_patterns("work"))
    payload = manifest_of(to)
    change(payload)
    replace_manifest(to, payload)
    return str(to)


def test_runs_of_which_nothing_follows(measured: tuple[Measured, Path], tmp_path: Path) -> None:
    _, prefix = measured

    def to_target(payload: dict[str, Any]) -> None:
        last = dict(payload["funnel"][-1], stage="target", dropped={"over-target": {"documents": 1, "bytes": 1}})
        payload["funnel"].append(last)

    with pytest.raises(ValueError, match="held to its target"):
        measure(changed(prefix, tmp_path / "target", to_target))
    with pytest.raises(FormatError, match="is not a corpus"):
        measure(str(tmp_path / "nothing"))
    without = measure(changed(prefix, tmp_path / "discarded", lambda payload: None))
    assert without.seconds == 0
    assert any("the work location is gone" in line for line in forecast_lines(plan_from(without, {}, share=0.5)))


def test_damaged_removals_are_an_error(measured: tuple[Measured, Path], tmp_path: Path) -> None:
    prefix = changed(measured[1], tmp_path / "damaged", lambda payload: None)
    for path in Path(prefix, "removals").iterdir():
        path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises((FormatError, OSError, ValueError)):
        measure(prefix)


def test_ways_of_removals_end() -> None:
    ids = [bytes([number]) * 16 for number in range(6)]
    instead = {ids[5]: ids[4], ids[4]: ids[3], ids[2]: ids[1], ids[1]: ids[2]}
    assert [_end(id_, dict(instead)) for id_ in ids] == [ids[0], ids[1], ids[1], ids[3], ids[3], ids[3]]
    shared = dict(instead)
    assert [_end(id_, shared) for id_ in reversed(ids)] == [ids[3], ids[3], ids[3], ids[1], ids[1], ids[0]]
