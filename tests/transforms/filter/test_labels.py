"""Best labels of classifiers with many."""

from pathlib import Path

import pytest

from refinery.transforms.core.document import Document
from refinery.transforms.filter.labels import LABELS, LabelsParams, asked_notes, judge_labels, load_models
from tests.beam import make_document
from tests.transforms.filter.fasttext_files import train_labelled

TOPICS = {
    "science": ["the cell divides and the protein folds", "a star burns hydrogen for ages"],
    "food": ["fry the onion in butter and salt", "bake the bread until it is brown"],
    "law": ["the court dismissed the appeal", "the contract is void by statute"],
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("labels") / "topics.bin"
    train_labelled(path, TOPICS)
    return str(path)


def test_the_best_label_and_its_probability(model: str) -> None:
    params = LabelsParams(
        models=({"name": "topic", "model": model}, {"name": "sure", "model": model, "min_score": 1.0})
    )
    models = load_models(params)
    for topic, texts in TOPICS.items():
        doc = judge_labels(make_document(texts[0].capitalize() + ".", meta={"language": "en"}), models, params)
        assert isinstance(doc, Document)
        assert doc.meta["topic"] == topic
        assert 0.5 < doc.meta["topic_score"] <= 1.0 and doc.meta["topic_score"] == round(doc.meta["topic_score"], 4)
        assert doc.meta["sure"] == "" and doc.meta["sure_score"] == doc.meta["topic_score"]
        assert doc.meta["language"] == "en"
    assert [(note.name, note.type, note.column, note.category) for note in asked_notes(params)][:2] == [
        ("topic", str, True, True),
        ("topic_score", float, True, False),
    ]


@pytest.mark.parametrize("text", ["", "\0", "</s> </s>", "__label__food " * 3, "\n\n"])
def test_texts_that_no_model_expects(model: str, text: str) -> None:
    for normalise in (True, False):
        params = LabelsParams(models=({"name": "topic", "model": model, "normalise": normalise},))
        meta = judge_labels(make_document(text), load_models(params), params).meta
        assert meta["topic"] in ("", *TOPICS) and 0 <= meta["topic_score"] <= 1


@pytest.mark.parametrize(
    ("models", "problem"),
    [
        ([], "models: a list of 0 values given, 1 or more are allowed"),
        ([{"name": "Topic", "model": "m"}], r"models\[0\].name: 'Topic' given, up to 40 small letters"),
        ([{"name": "t", "model": "m"}] * 2, "models: the name 't' given twice"),
    ],
)
def test_impossible_models(models: list[dict[str, str]], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        LabelsParams(models=models)


def test_files_are_checked(model: str, tmp_path: Path) -> None:
    (tmp_path / "foreign.bin").write_bytes(b"no model")
    params = LabelsParams(models=({"name": "a", "model": model}, {"name": "b", "model": str(tmp_path / "foreign.bin")}))
    assert list(LABELS.files(params)) == [model, str(tmp_path / "foreign.bin")]
    with pytest.raises(ValueError, match=r"^models\[1\].model: .* cannot be loaded"):
        load_models(params)
