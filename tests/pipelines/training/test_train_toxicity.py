import os
from pathlib import Path

import pytest

from refinery.pipelines.training.train_toxicity import ToxicityMetrics, TrainToxicityParams, train_toxicity
from refinery.transforms.filter.quality import load_classifier
from refinery.transforms.filter.toxic_sentences import sentences, toxic_line, toxic_share

SMALL = TrainToxicityParams(buckets=2_000, held_out=0.2)
TOXIC = [f"those {name} people are the {word} of the earth" for name in "abcdefgh" for word in ("dregs", "rot", "bane")]
CLEAN = [f"those {name} flowers are a {word} for the garden" for name in "abcdefgh" for word in ("joy", "gift", "gem")]


def test_learns_and_measures(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "model.bin")
    metrics = train_toxicity(TOXIC, CLEAN, path, SMALL)
    assert metrics.trained + metrics.held_out == 48
    assert (metrics.precision, metrics.recall, metrics.false_alarms) == (1.0, 1.0, 0.0)
    assert capfd.readouterr().out == f"{path}: {metrics}\n"
    model = load_classifier(path)
    assert toxic_share("Those people are the dregs. " * 3 + "Those flowers are a joy. " * 3, model, 0.5) > 0.4
    assert toxic_share("", model, 0.5) == 0.0


def test_the_default_model_is_small(tmp_path: Path) -> None:
    train_toxicity(TOXIC, CLEAN, str(tmp_path / "model.bin"), TrainToxicityParams())
    assert os.path.getsize(tmp_path / "model.bin") < 1_000_000


def test_same_bytes_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    found = set()
    for toxic, clean in ((TOXIC, CLEAN), (TOXIC[::-1], [*CLEAN, *CLEAN[:5]])):
        train_toxicity(toxic, clean, str(path), SMALL, overwrite=True)
        found.add(path.read_bytes())
    assert len(found) == 1
    with pytest.raises(ValueError, match="exists"):
        train_toxicity(TOXIC, CLEAN, str(path), SMALL)


@pytest.mark.parametrize(
    ("toxic", "clean", "message"),
    [
        ([], CLEAN, "toxic: no text given"),
        (TOXIC, [" "], "clean: no text given"),
        (["Same text", "b"], ["same  text"], "toxic: 1 texts given that are also clean ones, e.g. 'same text'"),
    ],
)
def test_impossible_classes(tmp_path: Path, toxic: list[str], clean: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        train_toxicity(toxic, clean, str(tmp_path / "m.bin"), SMALL)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "values", [{"held_out": 1.0}, {"learning_rate": 0}, {"dim": 0}, {"min_letters": 6}, {"buckets": 0}]
)
def test_impossible_settings(values: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(values))}: "):
        TrainToxicityParams(**values)  # type: ignore[arg-type]


def test_two_texts_are_enough(tmp_path: Path) -> None:
    params = TrainToxicityParams(dim=2, buckets=10, held_out=0.99, min_count=1)
    metrics = train_toxicity(["bad"], ["good"], str(tmp_path / "m.bin"), params)
    assert metrics == ToxicityMetrics(2, 0, None, None, None)
    assert "too few" in str(metrics)


def test_sentences() -> None:
    assert sentences("") == []
    assert sentences("One. Two! This is a longer sentence.\nAnd this is one more. x") == [
        "One. Two! This is a longer sentence.", "And this is one more.", "x",
    ]  # fmt: skip
    assert list(map(len, sentences("a" * 2_500))) == [1_000, 1_000, 500]
    assert toxic_line("ＦＯＯ, bar\n") == "foo , bar"
