import hashlib
from dataclasses import replace
from pathlib import Path

import apache_beam as beam
import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.pipelines.training.train_perplexity import TrainPerplexityParams, train_perplexity
from refinery.transforms.core.answers import Answer, answer_of
from refinery.transforms.core.document import Document, Drop
from refinery.transforms.filter.ngram_model import DIGITS, MAGIC, NgramModel, load_model, model_bytes, parse_model
from refinery.transforms.filter.perplexity import PERPLEXITY, PerplexityParams, judge_perplexity, load_models
from tests.beam import make_document, run_and_collect

TEXTS = [f"the miller of village {i % 7} keeps the wheel and the wheel keeps the miller {i}" for i in range(60)]
GARBAGE = "zq vx kk jj ww yy"
EASY = TEXTS[3]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    target = str(tmp_path_factory.mktemp("perplexity") / "en.ngrams")
    train_perplexity(TEXTS, target, TrainPerplexityParams(), sample=[*TEXTS[:3], "the wheel of the garden", GARBAGE])
    return target


def unscored(found: Document | Drop | Answer) -> Document | Drop:
    return answer_of(found).result


def answer(text: str, path: str, language: str = "en", **keys: object) -> Document | Drop:
    params = PerplexityParams(models={"en": path}, **keys)  # type: ignore[arg-type]
    return unscored(judge_perplexity(make_document(text, meta={"language": language}), load_models(params), params))


def test_buckets_and_reasons(path: str) -> None:
    easy = answer(EASY, path)
    assert isinstance(easy, Document)
    assert easy.meta["perplexity_bucket"] == "head" and easy.meta["language"] == "en"
    assert easy.meta["perplexity"] == load_model(path).perplexity(EASY)
    assert answer(GARBAGE, path) == Drop("perplexity-high")
    every = ("head", "middle", "tail")
    kept = answer(GARBAGE, path, keep=every)
    assert isinstance(kept, Document) and kept.meta["perplexity_bucket"] == "tail"
    assert answer(EASY, path, keep=("tail",)) == Drop("perplexity-low")
    assert answer(EASY, path, lowest=75.0, head=80.0, middle=90.0) == Drop("perplexity-low")


def test_texts_without_words_are_tail(path: str) -> None:
    assert answer(" … ", path) == Drop("perplexity-high")
    kept = answer(" … ", path, keep=("tail",))
    assert isinstance(kept, Document) and kept.meta["perplexity_bucket"] == "tail" and "perplexity" not in kept.meta


def test_languages(path: str) -> None:
    other = answer(GARBAGE, path, language="de")
    assert isinstance(other, Document) and "perplexity" not in other.meta
    params = PerplexityParams(models={"*": path})
    assert unscored(judge_perplexity(make_document(GARBAGE), load_models(params), params)) == Drop("perplexity-high")
    assert tuple(PERPLEXITY.files(PerplexityParams(models={"en": "a", "de": "a", "fr": "b"}))) == ("a", "b")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "models: .* required"),
        ({"models": {}}, "models: "),
        ({"models": {"en": "m"}, "head": 50, "middle": 40}, "middle: 40.0 given, head"),
        ({"models": {"en": "m"}, "keep": []}, "keep: "),
        ({"models": {"en": "m"}, "lowest": 101}, "lowest: 101 given, a number from 0 to 100 is allowed"),
    ],
)
def test_impossible_parameters(values: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PerplexityParams(**values)


def test_missing_and_foreign_files_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "junk").write_bytes(b"junk")
    for name in ("none", "junk"):
        with pytest.raises(ValueError, match=r"models\.en: '.*' given, which cannot be loaded") as error:
            load_models(PerplexityParams(models={"en": str(tmp_path / name)}))
        assert "\n" not in str(error.value)


@given(st.data())
def test_damage_anywhere_is_an_error_or_harmless(path: str, data: st.DataObject) -> None:
    whole = Path(path).read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    for damaged in (whole[:place], whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]):
        try:
            parse_model(damaged)
        except ValueError as error:
            assert "\n" not in str(error)
        else:  # a digit of a percentile or a fact
            assert place < whole.index(b"}\n")


def sealed(keys: np.ndarray, costs: np.ndarray, **changes: object) -> bytes:
    """A file whose digest is right, whatever it holds."""
    arrays = keys.tobytes() + costs.tobytes()
    header = {"facts": {}, "percentiles": [1.0] * 101, "sha256": hashlib.sha256(arrays).hexdigest(), "slots": len(keys)}
    line = orjson.dumps(header | changes)
    return MAGIC + b"%0*d" % (DIGITS, len(line)) + line + arrays


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"slots": 3}, "not a power of two"),
        ({"slots": 1 << 40}, "not a power of two"),
        ({"slots": "8"}, "not a power of two"),
        ({"slots": 16}, "bytes of n-grams are needed"),
        ({"percentiles": [1.0] * 100}, "101 ascending"),
        ({"percentiles": [2.0] + [1.0] * 100}, "101 ascending"),
        ({"percentiles": [-1.0] + [1.0] * 100}, "101 ascending"),
        ({"facts": 1}, "101 ascending"),
        ({"sha256": ""}, "their SHA-256 is not that of its header"),
    ],
)
def test_hostile_headers(changes: dict[str, object], message: str) -> None:
    keys = np.zeros(8, np.int64)
    keys[1] = 1
    assert parse_model(sealed(keys, np.zeros(16, np.int32))).perplexity("a b") == 1.0
    with pytest.raises(ValueError, match=message):
        parse_model(sealed(keys, np.zeros(16, np.int32), **changes))


def test_hostile_tables() -> None:
    with pytest.raises(ValueError, match="slots in a row are taken"):
        parse_model(sealed(np.full(8192, 7), np.zeros(16384, np.int32)))
    with pytest.raises(ValueError, match="no cost for unknown words"):
        parse_model(sealed(np.zeros(8, np.int64), np.zeros(16, np.int32)))
    for extreme in (-(2**31), 2**31 - 1):
        keys = np.zeros(8, np.int64)
        keys[1] = 1
        found = parse_model(sealed(keys, np.full(16, extreme, np.int32))).perplexity("a b " * 1000)
        assert found == (1.0 if extreme < 0 else 1e9)


@given(st.text())
def test_any_text_has_a_perplexity(path: str, text: str) -> None:
    found = load_model(path).perplexity(text)
    assert found is None or 1 <= found <= 1e9


def test_a_model_survives_its_file(path: str) -> None:
    model = load_model(path)
    assert model_bytes(model) == Path(path).read_bytes()
    assert isinstance(model, NgramModel) and model.at(0) == model.percentiles[0]
    middle = replace(model, percentiles=tuple(map(float, range(101))))
    assert middle.at(33.5) == 33.5 and middle.at(100) == 100.0


def test_a_pipeline_keeps_the_easy_ones(path: str) -> None:
    docs = [make_document(text, f"f@{i}") for i, text in enumerate([EASY, GARBAGE])]
    [kept] = run_and_collect(lambda p: [p | beam.Create(docs) | PERPLEXITY(PerplexityParams(models={"*": path}))])
    assert [doc.text for doc in kept] == [EASY]
