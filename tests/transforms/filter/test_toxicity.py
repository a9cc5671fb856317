import re
from pathlib import Path

import apache_beam as beam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.core.document import Document, Drop
from refinery.transforms.filter.toxicity import (
    TOXICITY,
    ToxicityParams,
    judge_toxicity,
    load_lexicon,
    measure_toxicity,
    split_words,
)
from tests.beam import make_document, run_and_collect

LIST = ("darn", "heck of a", "Straße", "плохо", "ばか", "कमीना", "two-part", "x_y", "heck")


def measure(text: str, *words: str) -> tuple[int, float]:
    return measure_toxicity(text, load_lexicon(ToxicityParams(words=words or LIST)))


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
    st.lists(st.sampled_from(["darn", "heck", "of", "a", "x", "é", "ば", "か", "DARN", "straße"]), max_size=30),
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
        ("darn darn darn " + "word " * 297, False),
        ("darn darn darn " + "word " * 296, True),
        ("", False),
    ],
)
def test_a_document_needs_both_hits_and_density(text: str, dropped: bool) -> None:
    params = ToxicityParams(words=("darn",))
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
    params = ToxicityParams(word_lists=(str(path),), words=())
    assert tuple(TOXICITY.files(params)) == (str(path),)
    assert measure_toxicity("Blast it all, blast!", load_lexicon(params)) == (2, 500.0)
    assert measure_toxicity("comment !!", load_lexicon(params)) == (0, 0.0)
    with pytest.raises(FileNotFoundError):
        load_lexicon(ToxicityParams(word_lists=(str(tmp_path / "none"),)))


def test_an_empty_and_a_huge_list() -> None:
    assert measure_toxicity("darn", load_lexicon(ToxicityParams(words=()))) == (0, 0.0)
    huge = tuple(f"entry{i}" for i in range(50_000))
    assert measure_toxicity("a entry49999 b", load_lexicon(ToxicityParams(words=huge)))[0] == 1


def test_hostile_text_is_linear() -> None:
    phrases = tuple("a " * n + "b" for n in range(1, 40))
    assert measure("a " * 200_000, *phrases)[0] == 0
    assert measure("darn" * 500_000)[0] == 0
    assert measure("ば" * 500_000)[0] == 0


def test_the_default_list_is_plain_words() -> None:
    assert all(re.fullmatch("[a-z]+", word) for word in ToxicityParams().words)
    assert list(ToxicityParams().words) == sorted(set(ToxicityParams().words))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"max_density": -1}, "max_density: -1 given, a number from 0 to 1000 is allowed"),
        ({"min_hits": 0}, "min_hits: 0 given, 1 or more is allowed"),
    ],
)
def test_impossible_parameters(values: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ToxicityParams(**values)  # type: ignore[arg-type]


def test_a_pipeline_drops_dense_pages() -> None:
    docs = [make_document("darn " * 10, "f@0"), make_document("a fine day", "f@1")]
    [kept] = run_and_collect(lambda p: [p | beam.Create(docs) | TOXICITY(ToxicityParams(words=("darn",)))])
    assert [(doc.text, doc.meta) for doc in kept] == [("a fine day", {"toxicity": 0.0})]
