from pathlib import Path

import apache_beam as beam
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.pipelines.training.train_quality import TrainQualityParams, train_quality
from refinery.transforms.core.document import Document, Drop, document_id
from refinery.transforms.filter.quality import (
    PUNCTUATION,
    QUALITY,
    SCALE,
    ClassifierParams,
    QualityParams,
    check_quality,
    classifier_text,
    judge_quality,
    load_classifier,
    model_lines,
    pareto_keeps,
    score_line,
)
from tests.beam import make_document, run_and_collect

GOOD = [f"Chapter {i}. The river carries sand past village number {i}." for i in range(40)]
BAD = [f"BUY NOW cheap pills {i} casino bonus click here" for i in range(40)]


@pytest.fixture(scope="module")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("quality") / "model.bin")
    train_quality(GOOD, BAD, path, TrainQualityParams(epochs=25, dim=8, buckets=1000))
    return path


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ""),
        (" \n\t ", ""),
        ("Hello, World!\nNext", "hello , world ! next"),
        ("__label__hq a", "_ _ label _ _ hq a"),
        ("a</s>b", "a < / s > b"),
        ("naïve “x” 中文。", "naïve “ x ” 中文 。"),
        ("a\0b\u2028c", "a b c"),
        ("a\ud800b", "a?b"),
        ("abcdef", "abcd"),
    ],
)
def test_classifier_text(text: str, line: str) -> None:
    assert classifier_text(text, 4 if text == "abcdef" else 100) == line


def test_every_mark_and_nothing_else_stands_apart() -> None:
    points = [chr(point) for point in range(0x110000)]
    for first in range(0, len(points), 50_000):
        text = "a".join(points[first : first + 50_000])
        line = text.lower().replace("\0", " ")
        for mark in PUNCTUATION:
            line = line.replace(mark, f" {mark} ")
        assert classifier_text(text, 200_000) == " ".join(line.split()).encode("utf-8", "replace").decode()


@given(st.text())
def test_classifier_text_is_one_line_without_labels(text: str) -> None:
    line = classifier_text(text, 1000)
    assert line.splitlines() in ([], [line])
    assert line == " ".join(line.split())
    assert not any(word.startswith("__label__") or word == "</s>" for word in line.split())
    assert all(word == mark or mark not in word for word in line.split() for mark in PUNCTUATION)


def test_score_and_threshold(model_path: str) -> None:
    params = QualityParams(model=model_path, threshold=0.5)
    model = load_classifier(model_path)
    good = judge_quality(make_document(GOOD[3], meta={"language": "en"}), [model], params)
    assert isinstance(good, Document)
    score = good.meta["quality"]
    assert isinstance(score, float) and score >= 0.5 and score == round(score, 4)
    assert good.meta["language"] == "en" and good.text == GOOD[3]
    assert judge_quality(make_document(BAD[3]), [model], params) == Drop("quality-score")
    assert isinstance(
        judge_quality(make_document(BAD[3]), [model], QualityParams(model=model_path, threshold=0)), Document
    )


def test_scores_of_the_labels_add_up_to_one(model_path: str) -> None:
    model = load_classifier(model_path)
    params = QualityParams(model=model_path)
    for text in (GOOD[0], BAD[0], "nothing it has seen", "", "\ud800", "a" * 100_000):
        line = model_lines(text)(params.max_chars, params.normalise)
        total = sum(score_line(line, model, label) for label in (params.label, "__label__lq"))
        assert total == pytest.approx(1, abs=1e-3) or total == 0


def test_the_launchers_check(model_path: str, tmp_path: Path) -> None:
    check_quality(QualityParams(model=model_path))
    junk = tmp_path / "junk.bin"
    junk.write_bytes(b"junk" * 100)
    for params, message in (
        (
            QualityParams(model=model_path, label="__label__x"),
            "label: '__label__x' given, __label__hq or __label__lq is allowed",
        ),
        (QualityParams(model=str(tmp_path / "none.bin")), "model: '.*none.bin' given, which cannot be loaded"),
        (QualityParams(model=str(junk)), "model: '.*junk.bin' given, which cannot be loaded"),
    ):
        with pytest.raises(ValueError, match=message) as error:
            check_quality(params)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model": ""}, r"model: '' \(empty text\) given, text that is not empty is allowed"),
        ({"label": ""}, r"label: '' \(empty text\) given, text that is not empty is allowed"),
        ({"threshold": 1.5}, "threshold: 1.5 given, a number from 0 to 1 is allowed"),
        ({"max_chars": 0}, "max_chars: 0 given, 1 or more is allowed"),
    ],
)
def test_impossible_parameters(values: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        QualityParams(**{"model": "m", **values})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model": "m", "classifiers": [{"model": "a"}]}, "model: given beside classifiers"),
        ({"threshold": 0.7, "classifiers": [{"model": "a"}]}, "threshold: given beside classifiers"),
        ({"classifiers": [{"model": "a"}, {"model": "b"}]}, "classifiers: the name 'quality' given twice"),
        (
            {"classifiers": [{"name": "a b", "model": "a"}]},
            "classifiers\\[0\\].name: '.*' given, up to 40 small letters",
        ),
        ({"classifiers": [{"model": ""}]}, r"classifiers\[0\].model: '' \(empty text\) given"),
        ({"model": "m", "rule": "maybe"}, "rule: 'maybe'"),
        ({"model": "m", "alpha": 0}, "alpha: 0 given, an integer from 1 to 100 is allowed"),
    ],
)
def test_impossible_rules(values: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        QualityParams(**values)  # type: ignore[arg-type]


def test_its_models_are_its_files() -> None:
    assert tuple(QUALITY.files(QualityParams(model="m"))) == ("m",)
    several = tuple(ClassifierParams(name=name, model=model) for name, model in (("x", "b"), ("y", "a"), ("z", "b")))
    assert tuple(QUALITY.files(QualityParams(classifiers=several))) == ("b", "a")


@pytest.mark.parametrize("points", [0, 3000, 7000, 9500, 10_000])
def test_the_pareto_rule_keeps_the_share_that_numpy_keeps(points: int) -> None:
    """`np.random.pareto(9) > 1 - score`, Brown et al. 2020, appendix A."""
    params = ClassifierParams(model="m", rule="pareto")
    kept = sum(pareto_keeps(document_id(f"text {i}"), points, params) for i in range(20_000)) / 20_000
    drawn = np.random.default_rng(1).pareto(9, 200_000) > 1 - points / SCALE
    assert kept == pytest.approx(drawn.mean(), abs=0.01)


def test_a_draw_depends_on_id_name_and_seed_alone() -> None:
    ids = [document_id(f"text {i}") for i in range(64)]

    def draws(**values: object) -> list[bool]:
        return [pareto_keeps(i, 9000, ClassifierParams(model="m", **values)) for i in ids]  # type: ignore[arg-type]

    assert len({tuple(draws(seed=1)), tuple(draws(seed=2)), tuple(draws(name="other"))}) == 3
    assert all(not earlier or later for earlier, later in zip(draws(alpha=20), draws(alpha=3), strict=True))


def test_several_classifiers(model_path: str) -> None:
    model = load_classifier(model_path)
    high = ClassifierParams(name="high", model=model_path)
    low = ClassifierParams(name="low", model=model_path, label="__label__lq")
    noted = ClassifierParams(name="noted", model=model_path, rule="note")
    both = QualityParams(classifiers=(high, low))
    assert judge_quality(make_document(GOOD[3]), [model] * 2, both) == Drop("quality-score")
    either = judge_quality(make_document(GOOD[3]), [model] * 2, both.replace(keep="any"))
    assert isinstance(either, Document)
    assert either.meta["high"] == either.meta["quality"]
    assert either.meta["high"] + either.meta["low"] == pytest.approx(1, abs=1e-3)
    assert [note.name for note in QUALITY.asked_notes(both)] == ["high", "low"]
    for keep in ("all", "any"):
        params = QualityParams(classifiers=(noted, high), keep=keep)
        assert judge_quality(make_document(BAD[3]), [model] * 2, params) == Drop("quality-score")
    alone = QualityParams(classifiers=(noted,), keep="any")
    assert isinstance(judge_quality(make_document(BAD[3]), [model], alone), Document)
    never = QualityParams(model=model_path, rule="pareto", alpha=100)
    assert judge_quality(make_document(BAD[3]), [model], never) == Drop("quality-pareto")


def test_a_pipeline_keeps_the_good_ones(model_path: str) -> None:
    docs = [make_document(text, f"f@{i}") for i, text in enumerate([*GOOD[:3], *BAD[:3]])]
    [kept] = run_and_collect(lambda p: [p | beam.Create(docs) | QUALITY(QualityParams(model=model_path))])
    assert sorted(doc.text for doc in kept) == sorted(GOOD[:3])
