from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.pipelines.training.train_toxicity import TrainToxicityParams, train_model, train_toxicity
from refinery.transforms.core.document import Document, Drop
from refinery.transforms.filter.toxic.lexicon import split_words
from refinery.transforms.filter.toxicity import (
    TOXICITY,
    ToxicityParams,
    judge_toxicity,
    load_lexicon,
    measure_toxicity,
)
from tests.beam import make_document, run_and_collect
from tests.sampling import scaled

LIST = ("darn", "heck of a", "Straße", "плохо", "ばか", "कमीना", "two-part", "x_y", "heck")


def only(*words: str, **values: Any) -> ToxicityParams:
    """These words alone, as they are written, wherever they stand."""
    return ToxicityParams(words=words, **{"builtin": False, "obfuscation": False, "quoted_weight": 1.0, **values})


def measure(text: str, *words: str) -> tuple[float, float]:
    return measure_toxicity(text, load_lexicon(only(*(words or LIST))))


@pytest.mark.parametrize(
    ("text", "hits"),
    [
        ("", 0),
        ("DARN it, darn! (darn)", 3),
        ("darned undarn darn_it", 0),
        ("heck", 1),
        ("a heck of a day", 1),
        ("heck of-a", 1),
        ("STRASSE und straße", 2),
        ("Очень ПЛОХО.", 1),
        ("あなたはばかだ。ばか", 2),
        ("वह कमीना है", 1),
        ("two part, two-part, twopart", 2),
        ("x_y x y", 1),
        ("éheck heck\u0301 heckñ", 0),
        ("«heck»“darn”", 2),
        ("\x00darn\x00", 1),
    ],
)
def test_hits(text: str, hits: int) -> None:
    assert measure(text)[0] == hits


def test_density_is_hits_per_thousand_words() -> None:
    assert measure("darn " + "word " * 199) == (1, 5.0)
    assert measure("word " * 200) == (0, 0.0)


def test_combining_marks_belong_to_words() -> None:
    assert split_words("e\u0301a हिन्दी x") == ["e\u0301a", "हिन्दी", "x"]
    assert split_words("ไทย 中文ab") == ["ไ", "ท", "ย", "中", "文", "ab"]


@given(
    st.lists(st.sampled_from(["darn", "heck", "of", "a", "x", "é", "ばか", "DARN", "straße"]), max_size=30),
    st.data(),
)
def test_equals_a_search_at_every_word(words: list[str], data: st.DataObject) -> None:
    """Independent: every position, every entry, no hint and no table."""
    text = "".join(word + data.draw(st.sampled_from([" ", ", ", "\n", "–"])) for word in words)
    tokens = [token for word in words for token in split_words(word.casefold())]
    entries = [split_words(entry.casefold()) for entry in LIST]
    expected = sum(any(tokens[i : i + len(entry)] == entry for entry in entries) for i in range(len(tokens)))
    assert measure(text)[0] == expected


@given(st.text(alphabet="dDaArRnN é_-'ſßば\u0301", max_size=30))
def test_the_hint_misses_nothing(text: str) -> None:
    words = split_words(text.casefold())
    assert measure(text, "darn", "an", "é", "ß", "ば")[0] == sum(
        word in ("darn", "an", "é", "ss", "ば") for word in words
    )


@pytest.mark.parametrize(
    ("text", "dropped"),
    [
        ("darn darn darn", True),
        ("darn darn", False),
        ("darn darn darn " + "word " * 197, False),
        ("darn darn darn " + "word " * 196, True),
        ("", False),
    ],
)
def test_a_document_needs_both_hits_and_density(text: str, dropped: bool) -> None:
    params = only("darn")
    result = judge_toxicity(make_document(text, meta={"a": 1}), load_lexicon(params), params)
    if dropped:
        assert result == Drop("toxic-density")
    else:
        assert isinstance(result, Document)
        assert result.meta["a"] == 1
        assert isinstance(result.meta["toxicity"], float)
        assert result.text == text


def test_lists_from_files(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_bytes("\ufeff# comment\r\nBlast\r\n\r\n  blast it all \n!!\n".encode())
    params = only(word_lists=(str(path),))
    assert tuple(TOXICITY.files(params)) == (str(path),)
    assert measure_toxicity("Blast it all, blast!", load_lexicon(params)) == (2, 500.0)
    assert measure_toxicity("comment !!", load_lexicon(params)) == (0, 0.0)
    with pytest.raises(FileNotFoundError):
        load_lexicon(only(word_lists=(str(tmp_path / "none"),)))


def test_an_empty_and_a_huge_list() -> None:
    assert measure_toxicity("darn", load_lexicon(only())) == (0, 0.0)
    huge = tuple(f"entry{i}" for i in range(scaled(50_000, 10_000)))
    assert measure_toxicity(f"a {huge[-1]} b", load_lexicon(only(*huge)))[0] == 1


def test_hostile_text_is_linear() -> None:
    phrases = tuple("a " * n + "b" for n in range(1, 40))
    assert measure("a " * scaled(60_000, 6_000), *phrases)[0] == 0
    assert measure("darn" * scaled(150_000, 30_000))[0] == 0
    assert measure("ば" * scaled(150_000, 30_000))[0] == 0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"max_density": -1}, "max_density: -1 given, "),
        ({"min_hits": 0}, "min_hits: 0 given, "),
    ],
)
def test_impossible_parameters(values: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ToxicityParams(**values)  # type: ignore[arg-type]


def test_a_pipeline_drops_dense_pages() -> None:
    docs = [make_document("darn " * 10, "f@0"), make_document("a fine day", "f@1")]
    [kept] = run_and_collect(lambda p: [p | beam.Create(docs) | TOXICITY(only("darn"))])
    assert [(doc.text, doc.meta) for doc in kept] == [("a fine day", {"toxicity": 0.0})]


def test_severe_words_weigh_more_and_mild_ones_less() -> None:
    weights = [measure_toxicity(text, load_lexicon(ToxicityParams()))[0] for text in ("a retard", "an idiot", "stupid")]
    assert weights == [3.0, 1.0, 0.5]


def test_density_can_be_switched_off() -> None:
    params = only("darn", max_density=None)
    assert isinstance(judge_toxicity(make_document("darn " * 9), load_lexicon(params), params), Document)


def test_the_language_chooses_the_list() -> None:
    tables = load_lexicon(ToxicityParams())
    assert measure_toxicity("Filmen är slut", tables, "sv")[0] == 0
    assert measure_toxicity("Filmen är slut", tables, "en")[0] == 1
    assert measure_toxicity("иди нахуй", tables, "ru")[0] == 1
    assert measure_toxicity("иди нахуй", tables)[0] == 1
    assert measure_toxicity("иди нахуй", tables, "en")[0] == 0


def test_what_is_quoted_counts_less() -> None:
    said, quoted = "You are idiots. " * 9, 'To write "you are idiots" is mean. ' * 9
    params = ToxicityParams()
    tables = load_lexicon(params)
    assert judge_toxicity(make_document(said), tables, params) == Drop("toxic-density")
    assert isinstance(judge_toxicity(make_document(quoted), tables, params), Document)
    assert measure_toxicity(quoted, load_lexicon(ToxicityParams(quoted_weight=1.0)))[0] == 9


def test_a_classifier_judges_by_its_share(tmp_path: Path) -> None:
    path = str(tmp_path / "model.bin")
    toxic = [f"the {word} people spoil number {i} of everything" for i in range(30) for word in ("bad", "rotten")]
    clean = [f"a {word} garden with {i} flowers in the sun" for i in range(30) for word in ("fine", "quiet")]
    train_toxicity(toxic, clean, path, TrainToxicityParams(buckets=500, held_out=0.0))
    params = only(model=path)
    tables = load_lexicon(params)
    bad, good = "The rotten people spoil everything. ", "A quiet garden in the sun with flowers. "
    assert judge_toxicity(make_document(bad * 5 + good * 5), tables, params) == Drop("toxic-score")
    assert isinstance(judge_toxicity(make_document(bad + good * 9), tables, params), Document)
    assert tuple(TOXICITY.files(params)) == (path,)
    TOXICITY.check(params)  # type: ignore[misc]


def test_a_classifier_of_other_labels_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(train_model([("__label__a", "x y"), ("__label__b", "z w")], TrainToxicityParams(min_count=1)))
    with pytest.raises(ValueError, match="has no label __label__toxic; refinery train-toxicity makes one"):
        TOXICITY.check(only(model=str(path)))  # type: ignore[misc]
    with pytest.raises(ValueError, match="cannot be loaded"):
        TOXICITY.check(only(model=str(tmp_path / "none")))  # type: ignore[misc]
