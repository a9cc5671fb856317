import hashlib
import json
import os
import random
from dataclasses import replace
from pathlib import Path

import fasttext
import floret
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.pipelines.training.fasttext_training import as_fasttext, balanced, silent
from refinery.pipelines.training.held_out import THRESHOLDS, QualityMetrics, _rank_sum, measure
from refinery.pipelines.training.train_quality import TrainQualityParams, labelled_lines, train_quality
from refinery.transforms.filter.quality import HIGH_QUALITY, LOW_QUALITY, classifier_text

FAST = TrainQualityParams(epochs=20, dim=8, buckets=500, held_out=0.2)


def some_texts(words: str, count: int) -> list[str]:
    generator = random.Random(words)
    return [" ".join(generator.choices(words.split(), k=12)) for _ in range(count)]


GOOD = some_texts("river stone village miller wheel garden winter carries slowly under the of", 60)
BAD = some_texts("buy cheap pills casino bonus click here now win the of free", 60)


def test_learns_and_measures(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "model.bin")
    metrics = train_quality(GOOD, BAD, path, FAST)
    assert metrics.trained + metrics.held_out == 120
    assert metrics.held_out > 10
    assert metrics.auc == metrics.accuracy == metrics.precision == metrics.recall == 1.0
    captured = capfd.readouterr()
    size = os.path.getsize(path)
    assert captured.out == f"{path}: {size:,} bytes, {metrics}\n"
    assert captured.err == ""
    assert sorted(os.listdir(tmp_path)) == ["model.bin", "model.bin.json", "model.bin.md"]
    report = json.loads((tmp_path / "model.bin.json").read_text())
    assert (report["texts_hq"], report["texts_lq"]) == (60, 60)
    assert report["size_bytes"] == size and report["seed"] == 1 and report["metrics"]["auc"] == 1.0
    assert report["sha256"] == hashlib.sha256((tmp_path / "model.bin").read_bytes()).hexdigest()
    assert len(report["metrics"]["curve"]) == len(THRESHOLDS) and len(report["metrics"]["calibration"]) == 10
    card = (tmp_path / "model.bin.md").read_text()
    assert f"| size bytes | {size:,} |" in card and "## Calibration" in card


def test_a_quantised_model_is_small_sure_and_the_same_again(tmp_path: Path) -> None:
    """Enough rows for the 256 centroids that quantisation needs."""
    plain = replace(FAST, dim=16, buckets=2000)
    train_quality(GOOD, BAD, str(tmp_path / "plain.bin"), plain)
    for name in ("a.ftz", "b.ftz"):
        metrics = train_quality(GOOD, BAD, str(tmp_path / name), replace(plain, quantise=True))
        assert metrics.auc == 1.0
    sizes = {name: (tmp_path / name).stat().st_size for name in ("plain.bin", "a.ftz")}
    assert sizes["a.ftz"] * 3 < sizes["plain.bin"]
    for end in ("", ".json", ".md"):
        assert (tmp_path / f"a.ftz{end}").read_bytes() == (tmp_path / f"b.ftz{end}").read_bytes()


def test_a_report_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "m.bin.md").write_text("mine")
    with pytest.raises(ValueError, match=r"m\.bin\.md exists"):
        train_quality(GOOD, BAD, str(tmp_path / "m.bin"), FAST)
    assert os.listdir(tmp_path) == ["m.bin.md"]


def test_same_bytes_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    found = set()
    for positive, negative in ((GOOD, BAD), (GOOD[::-1], [*BAD, *BAD[:5]])):
        train_quality(positive, negative, str(path), FAST, overwrite=True)
        found.add(path.read_bytes())
    assert len(found) == 1
    other = TrainQualityParams(epochs=20, dim=8, buckets=500, held_out=0.2, seed=2)
    train_quality(GOOD, BAD, str(path), other, overwrite=True)
    assert path.read_bytes() not in found


def test_nothing_is_written_over(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_text("mine")
    with pytest.raises(ValueError, match=r"model\.bin exists; choose another name, or give --overwrite to replace it"):
        train_quality(GOOD, BAD, str(path), FAST)
    assert path.read_text() == "mine"


def test_the_converted_model_predicts_what_floret_does(tmp_path: Path) -> None:
    text, source, target = tmp_path / "train.txt", tmp_path / "floret.bin", tmp_path / "fasttext.bin"
    lines = [f"{HIGH_QUALITY} {line}" for line in GOOD] + [f"{LOW_QUALITY} {line}" for line in BAD]
    text.write_text("\n".join(lines) + "\n")
    with silent():
        trained = floret.train_supervised(
            str(text), dim=8, wordNgrams=2, bucket=500, thread=1, seed=1, epoch=5, verbose=0
        )
        trained.save_model(str(source))
    target.write_bytes(as_fasttext(source.read_bytes()))
    assert len(target.read_bytes()) == len(source.read_bytes()) - 8
    converted = fasttext.load_model(str(target)).f
    for line in [*GOOD[:10], *BAD[:10], "river casino", "unknown words only"]:
        expected = {label: p for p, label in trained.f.predict(line + "\n", 2, 0.0, "strict")}
        found = {label: p for p, label in converted.predict(line + "\n", 2, 0.0, "strict")}
        assert found == pytest.approx(expected, abs=1e-6)
        assert len(found) == 2


def test_foreign_model_files_are_refused() -> None:
    with pytest.raises(ValueError, match="not as expected"):
        as_fasttext(b"\0" * 100)


@pytest.mark.parametrize(
    ("positive", "negative", "message"),
    [
        ([], BAD, "positive: no text given"),
        (GOOD, [], "negative: no text given"),
        (GOOD, ["", " \n"], "negative: no text given"),
        (["Same text", "b"], ["same  text"], "positive: 1 texts given that are also negative ones, e.g. 'same text'"),
    ],
)
def test_impossible_classes(tmp_path: Path, positive: list[str], negative: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        train_quality(positive, negative, str(tmp_path / "m.bin"), FAST)
    assert os.listdir(tmp_path) == []


def test_two_texts_are_enough(tmp_path: Path) -> None:
    metrics = train_quality(
        ["good"], ["bad"], str(tmp_path / "m.bin"), TrainQualityParams(dim=2, buckets=10, held_out=0.99)
    )
    assert metrics == QualityMetrics(2, 0)
    assert "too few" in str(metrics)


def test_the_smaller_class_is_repeated() -> None:
    lines = labelled_lines(GOOD[:30], BAD[:10], FAST)
    repeated = balanced(lines, 1)
    assert sorted(set(repeated)) == sorted(lines)
    assert [label for label, _ in repeated].count(LOW_QUALITY) == 30
    assert repeated != sorted(repeated)


class Oracle:
    """A "model" that reads the score out of the line."""

    def predict(self, line: str, *_: object) -> list[tuple[float, str]]:
        return [(float(line), HIGH_QUALITY)]


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.2, 0.5, 0.7, 1.0]), st.booleans()), max_size=20))
def test_metrics_equal_their_definitions(scores: list[tuple[float, bool]]) -> None:
    lines = [(HIGH_QUALITY if good else LOW_QUALITY, str(score)) for score, good in scores]
    metrics = measure(Oracle(), lines, 3)
    goods, bads = [s for s, good in scores if good], [s for s, good in scores if not good]
    if not goods or not bads:
        assert metrics.auc is None
        return
    pairs = [(good > bad) + (good == bad) / 2 for good in goods for bad in bads]
    kept = [good for score, good in scores if score >= 0.5]
    assert metrics.auc == pytest.approx(np.mean(pairs))
    assert metrics.accuracy == pytest.approx(np.mean([(score >= 0.5) == good for score, good in scores]))
    assert metrics.recall == pytest.approx(np.mean([score >= 0.5 for score in goods]))
    assert metrics.precision == pytest.approx(np.mean(kept) if kept else 0)
    assert metrics.brier == pytest.approx(np.mean([(score - good) ** 2 for score, good in scores]))
    for point in metrics.curve:
        assert point.recall == pytest.approx(np.mean([score >= point.threshold for score in goods]))
        assert point.fall_out == pytest.approx(np.mean([score >= point.threshold for score in bads]))
    assert sum(part.texts for part in metrics.calibration) == len(scores)
    error = sum(abs(sum(s - good for s, good in scores if int(min(s, 0.99) * 10) == step)) for step in range(10))
    assert metrics.calibration_error == pytest.approx(error / len(scores))


def test_rank_sum_of_ties() -> None:
    assert _rank_sum([(0.1, False), (0.5, True), (0.5, False), (0.9, True)]) == 2.5 + 4


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"held_out": 1}, "held_out: 1 given"),
        ({"learning_rate": 0}, "learning_rate: 0 given, more than 0 is allowed"),
        ({"dim": 0}, "dim: 0 given, 1 or more is allowed"),
    ],
)
def test_impossible_parameters(values: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TrainQualityParams(**values)  # type: ignore[arg-type]


@given(st.text())
def test_no_text_can_forge_a_training_line(text: str) -> None:
    lines = labelled_lines([text, "good"], ["bad"], FAST) if classifier_text(text, 100) != "bad" else []
    assert all("\n" not in line and not line.startswith("__label__") for _, line in lines)
