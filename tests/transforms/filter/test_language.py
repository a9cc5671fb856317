"""The right part of a document is judged, thresholds mean what they say, and nothing is an error."""

import pickle
from pathlib import Path

import apache_beam as beam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.transforms.core.document import Document, Drop
from refinery.transforms.filter.language import (
    LANGUAGE,
    LanguageParams,
    judge_language,
    load_language,
    model_line,
    read_labels,
)
from refinery.transforms.filter.language_data import MACROLANGUAGES, RELATIVES, THRESHOLDS, UNIVERSAL
from refinery.transforms.native.classifier import mostly_capitals
from tests.beam import make_document, run_and_collect
from tests.sampling import examples
from tests.transforms.filter.fasttext_files import train_labelled

ENGLISH = (
    "The harbour master wrote down the name of every ship that came in before the storm, and of each that did not."
)
GERMAN = "Der Hafenmeister schrieb die Namen aller Schiffe auf, die vor dem Sturm einliefen, und auch die der anderen."
RUSSIAN = "Начальник порта записывал названия всех кораблей, которые пришли до бури, и тех, которые не пришли."
JAPANESE = "港長は、嵐の前に入港したすべての船の名前と、入港しなかった船の名前を書き留めた。"


def judged(text: str, **values: object) -> Document | str:
    params = LanguageParams(**values)  # type: ignore[arg-type]
    result = judge_language(make_document(text), load_language(params), params)
    return result.reason if isinstance(result, Drop) else result


@pytest.mark.parametrize(
    ("text", "code"), [(ENGLISH, "en"), (GERMAN, "de"), (RUSSIAN, "ru"), (JAPANESE, "ja"), (ENGLISH.upper(), "en")]
)
def test_languages_are_told_apart(text: str, code: str) -> None:
    kept = judged(text, threshold=0.3)
    assert isinstance(kept, Document)
    assert kept.meta["language"] == code
    score = kept.meta["language_score"]
    assert isinstance(score, float)
    assert 0.3 <= score <= 1
    assert score == round(score, 4)


def test_meta_is_added_to_and_the_document_is_not_touched() -> None:
    doc = make_document(ENGLISH, meta={"date": "2020"})
    params = LanguageParams()
    kept = judge_language(doc, load_language(params), params)
    assert isinstance(kept, Document)
    assert dict(doc.meta) == {"date": "2020"}
    assert list(kept.meta) == ["date", "language", "language_score"]


class FixedModel:
    """A model that knows the answer, and keeps to the threshold as fastText does."""

    def __init__(self, *found: tuple[float, str]) -> None:
        self.found = found
        self.labels = tuple(label for _, label in found)

    def predict(self, text: str, k: int, threshold: float, errors: str = "strict", /) -> list[tuple[float, str]]:
        """The same for every text."""
        return [pair for pair in self.found if pair[0] >= threshold][: k if k > 0 else None]


@pytest.mark.parametrize(
    ("languages", "score", "code", "outcome"),
    [
        ({}, 0.65, "en", "kept"),
        ({}, 0.64, "en", "language-score"),
        ({"en": None}, 0.65, "en", "kept"),
        ({"en": None}, 0.64, "en", "language-score"),
        ({"en": 0.9}, 0.89, "en", "language-score"),
        ({"en": 0.9}, 0.9, "en", "kept"),
        ({"en": 0.9}, 0.95, "de", "language-not-allowed"),
        ({"en": 0.9, "de": 0.2}, 0.3, "de", "kept"),
        ({"en": 0.9, "de": 0.2}, 0.3, "en", "language-score"),
        ({"en": 0.9, "de": 0.2}, 0.3, "fr", "language-not-allowed"),
        ({"en": 0.9, "de": 0.2}, 0.1, "fr", "language-not-allowed"),  # never a threshold that nobody gave
        ({"en": 0.9}, 0.02, "fr", "language-not-allowed"),
        ({"en": 0.0}, 0.0, "en", "kept"),
        ({}, 1.0000399, "en", "kept"),
        (("en", "de"), 0.65, "en", "kept"),
        (("en", "de"), 0.64, "en", "language-score"),
        (("en", "de"), 0.65, "fr", "language-not-allowed"),
        (("en", "sw"), 0.12, "sw", "kept"),
        (("en", "sw"), 0.12, "en", "language-score"),
        ({"sw": None}, 0.09, "sw", "language-score"),
    ],
)
def test_thresholds(languages: object, score: float, code: str, outcome: str) -> None:
    params = LanguageParams(languages=languages)  # type: ignore[arg-type]
    result = judge_language(make_document("x"), read_labels(FixedModel((score, f"__label__{code}"))), params)
    if isinstance(result, Drop):
        assert result.reason == outcome
    else:
        assert outcome == "kept"
        assert result.meta["language_score"] == min(score, 1.0)


def noted(model: FixedModel, **values: object) -> tuple[object, object] | str:
    result = judge_language(make_document("x"), read_labels(model), LanguageParams(**values))  # type: ignore[arg-type]
    return result.reason if isinstance(result, Drop) else (result.meta["language"], result.meta["language_score"])


def test_scores_of_relatives_are_added() -> None:
    """Croatian at 0.4 is sure to be Croatian, Serbian or Bosnian; another language's share is not added."""
    model = FixedModel((0.4, "__label__hr"), (0.2, "__label__sr"), (0.1, "__label__sl"), (0.05, "__label__sh"))
    assert noted(model, languages=("hr",)) == ("hr", 0.65)
    assert noted(model, languages={"hr": 0.66}) == "language-score"
    assert noted(model, languages=("sr",)) == "language-not-allowed"
    assert noted(model) == ("hr", 0.65)
    assert noted(FixedModel((0.6, "__label__en"), (0.3, "__label__de")), threshold=0.65) == "language-score"
    assert noted(FixedModel((0.7, "__label__no"), (0.4, "__label__da"))) == ("no", 1.0)


def test_a_macrolanguage_counts_as_a_member_that_is_wanted() -> None:
    model = FixedModel((0.5, "__label__sh"), (0.2, "__label__sr"), (0.1, "__label__hr"))
    assert noted(model, languages=("hr",)) == ("hr", 0.8)
    assert noted(model, languages=("hr", "sr")) == ("sr", 0.8)
    assert noted(model, languages=("hr", "sh")) == ("sh", 0.8)
    assert noted(model, languages=("bs", "en")) == "language-not-allowed"


def test_the_tables_hold_together() -> None:
    labels = {label.removeprefix("__label__") for label in load_language(LanguageParams()).model.labels}
    relatives = [code for group in RELATIVES for code in group]
    assert len(relatives) == len(set(relatives))
    assert set(relatives) <= labels
    assert set(THRESHOLDS) == labels
    assert all(0.1 <= least <= UNIVERSAL for least in THRESHOLDS.values())
    assert all({code, *members} <= set(dict.fromkeys(relatives)) for code, members in MACROLANGUAGES.items())


def test_all_labels_of_the_model_are_accepted() -> None:
    """Also those to which it gives a text without words less than one in 100,000."""
    codes = ("ug", "yue", "gn", "kw", "cbk", "jbo", "mrj", "xal")
    load_language(LanguageParams(languages=codes))
    load_language(LanguageParams(languages=tuple(THRESHOLDS)))


@pytest.mark.parametrize("text", [ENGLISH, GERMAN, RUSSIAN])
def test_capitals_are_read_as_small_letters(text: str) -> None:
    capitals, small = judged(text.upper()), judged(text)
    assert isinstance(capitals, Document)
    assert isinstance(small, Document)
    assert capitals.meta["language"] == small.meta["language"]
    assert model_line("NASA AND ESA met", 100) == "nasa and esa met\n"
    assert model_line("NASA, ESA meet again", 100) == "NASA, ESA meet again\n"


@given(st.text(max_size=50))
def test_mostly_capitals_is_what_python_counts(text: str) -> None:
    capitals, small = (sum(map(kind, text)) for kind in (str.isupper, str.islower))
    assert mostly_capitals(text) is (capitals > small)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "\n"),
        ("ab", "ab\n"),
        ("a\nb", "a b\n"),
        ("0123456789", "0123456789\n"),
        ("x0123456789", "0123456789\n"),
        ("0123456789abcd", "3456789abc\n"),
        ("0123456789" * 4, "0123456789\n"),
        ("a </s> b", "a   b\n"),
    ],
)
def test_the_model_sees_ten_characters_from_the_first_quarter_on(text: str, line: str) -> None:
    assert model_line(text, 10) == line


@given(st.text(max_size=60), st.integers(1, 20))
def test_as_much_as_allowed_is_seen(text: str, max_chars: int) -> None:
    text = text.replace("<", "").replace("İ", "")  # which has two small letters
    line = model_line(text, max_chars)
    assert len(line) == min(max_chars, len(text)) + 1
    assert line.count("\n") == 1
    assert line.endswith("\n")


@settings(max_examples=examples(200))
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
def test_no_text_is_an_error_and_a_threshold_changes_no_label(text: str) -> None:
    free, strict = judged(text, threshold=0.0), judged(text, threshold=0.65)
    assert isinstance(free, Document)
    if isinstance(strict, Document):
        assert strict.meta == free.meta
    else:
        assert strict == "language-score"
        assert float(free.meta["language_score"]) <= 0.65


@pytest.mark.parametrize(
    "text", ["", "123 456", "!?", "\0", "</s>", "😀" * 500, "a" * 1_000_000, "__label__xx __label__de"]
)
def test_texts_without_language(text: str) -> None:
    assert isinstance(judged(text, threshold=0.0), Document)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"threshold": 1.5}, "threshold: 1.5 given, a number from 0 to 1 or null is allowed"),
        ({"languages": {"en": -1}}, "languages.en: -1 given, a number from 0 to 1 or null is allowed"),
        ({"languages": ["en", 5]}, "languages: a list of 2 values given, a mapping of names to"),
        ({"languages": [["en"]]}, "languages: a list of 1 value given, a mapping of names to"),
        ({"max_chars": 0}, "max_chars: 0 given, 1 or more or null is allowed"),
    ],
)
def test_impossible_parameters(values: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LanguageParams(**values)  # type: ignore[arg-type]


def test_a_missing_model_and_an_unknown_language_are_named() -> None:
    with pytest.raises(ValueError, match=r"model: '/nowhere\.ftz' given, an existing file is allowed"):
        load_language(LanguageParams(model="/nowhere.ftz"))
    with pytest.raises(ValueError, match=r"^languages: eng given; did you mean en\?$"):
        load_language(LanguageParams(languages={"eng": 0.5, "de": None}))
    with pytest.raises(
        ValueError, match=r"^languages: english, zh-CN given; did you mean en for english, zh for zh-CN\?$"
    ):
        load_language(LanguageParams(languages=("zh-CN", "english", "de")))
    with pytest.raises(ValueError, match="languages: tlh given, af, als, am"):
        load_language(LanguageParams(languages=("tlh",)))
    assert tuple(LANGUAGE.files(LanguageParams())) == ()  # the bundled model is known by its library's version
    assert tuple(LANGUAGE.files(LanguageParams(model="a.bin"))) == ("a.bin",)
    assert (
        load_language(LanguageParams()).model is load_language(LanguageParams(threshold=0.1)).model
    )  # once per process


def test_a_pipeline_keeps_what_is_wanted() -> None:
    docs = [make_document(ENGLISH, "f@0"), make_document(GERMAN, "f@1")]
    params = pickle.loads(pickle.dumps(LanguageParams(languages={"de": None})))  # noqa: S301
    [kept] = run_and_collect(lambda pipeline: [pipeline | beam.Create(docs) | LANGUAGE(params)])
    assert [(doc.text, doc.meta["language"]) for doc in kept] == [(GERMAN, "de")]


SERBIAN = "Управник луке је записао имена свих бродова који су ушли пре олује и оних који нису."
LATIN = "Upravnik luke je zapisao imena svih brodova koji su ušli pre oluje i onih koji nisu."


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model with labels like GlotLID's."""
    path = tmp_path_factory.mktemp("language") / "scripts.bin"
    texts = {
        "eng_Latn": [ENGLISH],
        "deu_Latn": [GERMAN],
        "srp_Cyrl": [SERBIAN],
        "srp_Latn": [LATIN],
        "arz_Arab": ["مرحبا"],
    }
    train_labelled(path, texts)
    return str(path)


@pytest.mark.parametrize(
    ("text", "languages", "found"),
    [
        (ENGLISH, ["en"], ("en", "Latn")),
        (ENGLISH, ["eng_Latn", "de"], ("en", "Latn")),
        (ENGLISH, ["en_Cyrl", "de"], None),
        (SERBIAN, ["sr"], ("sr", "Cyrl")),
        (LATIN, ["sr"], ("sr", "Latn")),
        (LATIN, ["srp_Cyrl"], "language-not-allowed"),
        (SERBIAN, {"srp_Cyrl": 0.3, "sr": 1.0}, ("sr", "Cyrl")),
        (LATIN, {"srp_Cyrl": 0.3, "sr": 1.0}, "language-score"),
        (LATIN, [], ("sr", "Latn")),
        (SERBIAN, ["eng"], None),
    ],
)
def test_models_whose_labels_name_a_script(scripted: str, text: str, languages: object, found: object) -> None:
    values = {"model": scripted, "languages": languages, "threshold": 0.4}
    if found is None:
        with pytest.raises(ValueError, match=r"^languages: (en_Cyrl|eng) given; did you mean en\?$"):
            judged(text, **values)
        return
    kept = judged(text, **values)
    if isinstance(kept, Document):
        assert (kept.meta["language"], kept.meta["language_script"]) == found
        assert list(kept.meta) == ["language", "language_score", "language_script"]
    else:
        assert kept == found


def test_thresholds_of_a_table(tmp_path: Path, scripted: str) -> None:
    table = tmp_path / "least.csv"
    table.write_text("language,language_score,other\neng_Latn,0.7,9\nde,0.2,9\nsr_Cyrl,0.9,9\nsr_Latn,0.1,9\n")
    params = LanguageParams(languages={"en": None, "de": 0.5, "sr": None}, thresholds=str(table), threshold=0.6)
    assert [params.needed(*name) for name in (("en",), ("en", "Latn"), ("de", "Latn"))] == [0.7, 0.7, 0.5]
    assert [params.needed(*name) for name in (("sr", "Cyrl"), ("sr", "Latn"), ("sr",), ("fr",))] == [0.9, 0.1, 0.6, 0.6]
    assert params.least == 0.1
    assert params.replace(languages={}).least == 0.1
    assert LANGUAGE.files(params.replace(model=scripted)) == (scripted, str(table))
    assert "thresholds" not in LanguageParams().told() and LANGUAGE.files(LanguageParams()) == ()
    table.write_text("language,language_score\nen,1.2\n")
    with pytest.raises(ValueError, match=r"^thresholds: 1\.2 given for en, 0 to 1 is allowed"):
        load_language(LanguageParams(thresholds=str(table)))
    with pytest.raises(ValueError, match=r"^thresholds: .*cannot be read"):
        load_language(LanguageParams(thresholds=str(tmp_path / "none.csv")))
