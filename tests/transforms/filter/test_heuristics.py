import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from hypothesis import given, settings

from refinery.transforms.core.document import Document, Drop, document_id
from refinery.transforms.core.params import Params
from refinery.transforms.filter.fasttext_model import LABEL, load_model
from refinery.transforms.filter.heuristics import (
    HEURISTICS,
    BasicParams,
    C4Params,
    FineWebParams,
    GopherParams,
    HeuristicsParams,
    RepetitionParams,
    asked_notes,
    judge_heuristics,
)
from refinery.transforms.filter.heuristics_data import STOP_WORDS, WORD_LENGTHS
from refinery.transforms.filter.heuristics_rules import FIGURES
from refinery.transforms.filter.language import bundled_model
from refinery.transforms.native import heuristics as kernel
from tests.beam import run_and_collect
from tests.docs.blocks import subject_text
from tests.sampling import examples
from tests.transforms.filter.heuristics_texts import PROSE, document, only
from tests.transforms.heuristics_oracle import TEXTS

ROOT = Path(__file__).parents[3]
WORDS = PROSE.split()
NUMBERED = [f"Note {i} says that item {i * 7} of the list has to be with group {i * 13}." for i in range(40)]


def repeat_ngram(n: int, times: int) -> str:
    """`times` occurrences of one run of n words, other words between them."""
    run = " ".join(f"w{i}w" for i in range(n))
    return " ".join(f"{run} single{i}" for i in range(times))


# reason, text, the set of its rule, the field of the rule, other fields of that set.
CASES: list[tuple[str, str, str, str, dict[str, Any]]] = [
    ("basic-too-few-characters", "The mill.", "basic", "min_chars", {}),
    ("basic-low-unique-word-ratio", "one two three " * 40, "basic", "min_unique_word_ratio", {}),
    ("basic-high-punctuation-ratio", " ".join(f"{w} !!?" for w in WORDS), "basic", "max_punctuation_ratio", {}),
    (
        "basic-code-like",
        "\n".join(f"value{i} = next(source);" for i in range(30)),
        "basic",
        "max_code_line_ratio",
        {},
    ),
    ("gopher-too-few-words", " ".join(WORDS[:49]), "gopher", "min_words", {}),
    ("gopher-too-many-words", "the mill and " * 33_334, "gopher", "max_words", {}),
    ("gopher-short-words", "a of to an the " * 20, "gopher", "min_mean_word_chars", {}),
    ("gopher-long-words", "the of internationalisation institutionalised " * 20, "gopher", "max_mean_word_chars", {}),
    ("gopher-hash-ratio", PROSE.replace(" a", " #a").replace(" t", " #t"), "gopher", "max_hash_ratio", {}),
    ("gopher-ellipsis-ratio", PROSE.replace("e ", "e… "), "gopher", "max_ellipsis_ratio", {}),
    ("gopher-bullet-lines", re.sub(r"(?m)^", "- ", PROSE), "gopher", "max_bullet_lines", {}),
    ("gopher-ellipsis-lines", re.sub(r"(?m)$", "...", PROSE), "gopher", "max_ellipsis_lines", {}),
    ("gopher-few-alphabetic-words", " ".join(f"{w} 1000" for w in WORDS), "gopher", "min_alphabetic_words", {}),
    ("gopher-few-stop-words", "Every single sentence here avoids common words " * 9, "gopher", "min_stop_words", {}),
    ("repetition-duplicate-lines", "Read on\n" * 5 + PROSE, "repetition", "max_duplicate_lines", {}),
    (
        "repetition-duplicate-paragraphs",
        "Read on\n\n" * 5 + PROSE.replace("\n", "\n\n"),
        "repetition",
        "max_duplicate_paragraphs",
        {"max_duplicate_lines": None},
    ),
    (
        "repetition-duplicate-line-chars",
        PROSE + "\n" + "\n".join(PROSE.split("\n")[:2]),
        "repetition",
        "max_duplicate_line_chars",
        {f"max_duplicate_{n}_grams": None for n in range(5, 11)},
    ),
    (
        "repetition-duplicate-paragraph-chars",
        PROSE.replace("\n", "\n\n") + "\n\n" + "\n\n".join(PROSE.split("\n")[:2]),
        "repetition",
        "max_duplicate_paragraph_chars",
        {f"max_duplicate_{n}_grams": None for n in range(5, 11)} | {"max_duplicate_line_chars": None},
    ),
    ("repetition-top-2-gram", repeat_ngram(2, 9), "repetition", "max_top_2_gram", {}),
    ("repetition-top-3-gram", repeat_ngram(3, 9), "repetition", "max_top_3_gram", {"max_top_2_gram": None}),
    (
        "repetition-top-4-gram",
        repeat_ngram(4, 9),
        "repetition",
        "max_top_4_gram",
        {"max_top_2_gram": None, "max_top_3_gram": None},
    ),
    *(
        (
            f"repetition-duplicate-{n}-grams",
            repeat_ngram(n, 3),
            "repetition",
            f"max_duplicate_{n}_grams",
            {f"max_top_{k}_gram": None for k in (2, 3, 4)} | {f"max_duplicate_{k}_grams": None for k in range(5, n)},
        )
        for n in range(5, 11)
    ),
    ("c4-lorem-ipsum", PROSE + "\nLorem Ipsum dolor sit amet.", "c4", "drop_lorem_ipsum", {}),
    ("c4-curly-bracket", PROSE + "\nThe set {1, 2} is small.", "c4", "drop_curly_brackets", {}),
    ("c4-no-lines-left", "Home\nAbout us\nContact", "c4", "min_words_per_line", {"min_sentences": None}),
    ("c4-too-few-sentences", "One day it rained. Then it stopped. All was well.", "c4", "min_sentences", {}),
    ("fineweb-few-terminal-lines", PROSE.replace(".", ""), "fineweb", "min_terminal_lines", {}),
    (
        "fineweb-short-lines",
        "\n".join(f"Line {i} is short." for i in range(9)),
        "fineweb",
        "max_short_lines",
        {},
    ),
    ("fineweb-duplicate-line-chars", PROSE + "\n" + PROSE[-99:], "fineweb", "max_duplicate_line_chars", {}),
    ("fineweb-newline-ratio", PROSE.replace("\n", "\n" * 9), "fineweb", "max_newline_ratio", {}),
]
SETS: dict[str, type[Params]] = {
    "basic": BasicParams,
    "gopher": GopherParams,
    "repetition": RepetitionParams,
    "c4": C4Params,
    "fineweb": FineWebParams,
}


@pytest.mark.parametrize(("reason", "text", "group", "name", "others"), CASES, ids=[case[0] for case in CASES])
def test_each_reason_is_one_rule(reason: str, text: str, group: str, name: str, others: dict[str, Any]) -> None:
    on = SETS[group](**others)
    assert judge_heuristics(document(text), only(**{group: on})) == Drop(reason)
    off = on.replace(**{name: False if isinstance(getattr(on, name), bool) else None})
    assert isinstance(judge_heuristics(document(text), only(**{group: off})), Document)


def test_every_reason_is_tested_and_documented() -> None:
    source = (ROOT / "transforms" / "filter" / "heuristics.py").read_text()
    reasons = set(re.findall(r'"((?:basic|gopher|repetition|c4|fineweb)-[a-z0-9-]+)"', source))
    reasons |= {rule[2] for rule in RepetitionParams().rules}
    assert reasons == {case[0] for case in CASES}
    table = subject_text("heuristics")
    assert [reason for reason in sorted(reasons) if f"`{reason}`" not in table] == []
    names = {name for params in SETS.values() for name in params.model_fields}
    assert [name for name in sorted(names) if f"`{name}`" not in table] == []


def test_good_text_passes_untouched() -> None:
    doc = document(PROSE, language="en")
    assert judge_heuristics(doc, HeuristicsParams()) is doc


def gopher(**fields: Any) -> GopherParams:
    """Gopher's rules, all off but the given ones."""
    off = {name: None for name in GopherParams.model_fields if name not in ("stop_words", "word_lengths")}
    return GopherParams(**off | fields)


def repetition(**fields: Any) -> RepetitionParams:
    """The repetition rules, all off but the given ones."""
    return RepetitionParams(**dict.fromkeys(RepetitionParams.model_fields) | fields)


def fineweb(**fields: Any) -> FineWebParams:
    """FineWeb's rules, all off but the given ones."""
    off = {name: None for name in FineWebParams.model_fields if name != "short_line_chars"}
    return FineWebParams(**off | fields)


# --- thresholds: at the threshold a document passes, one step beyond it does not


@pytest.mark.parametrize(
    ("params", "passes", "fails"),
    [
        (
            only(
                basic=BasicParams(
                    min_chars=10, min_unique_word_ratio=None, max_punctuation_ratio=None, max_code_line_ratio=None
                )
            ),
            "a" * 10,
            "a" * 9,
        ),
        (
            only(
                basic=BasicParams(
                    min_chars=None, min_unique_word_ratio=0.5, max_punctuation_ratio=None, max_code_line_ratio=None
                )
            ),
            "a a",
            "a a a",
        ),
        (
            only(
                basic=BasicParams(
                    min_chars=None, min_unique_word_ratio=None, max_punctuation_ratio=0.25, max_code_line_ratio=None
                )
            ),
            "abc.",
            "ab.",
        ),
        (
            only(
                basic=BasicParams(
                    min_chars=None, min_unique_word_ratio=None, max_punctuation_ratio=None, max_code_line_ratio=0.5
                )
            ),
            "a;\nb",
            "a;\nb;\nc",
        ),
        (only(gopher=gopher(min_words=3)), "aaa bbb ccc", "aaa bbb ---"),
        (only(gopher=gopher(max_words=2)), "aaa bbb ---", "aaa bbb ccc"),
        (only(gopher=gopher(min_mean_word_chars=3)), "aa bbbb", "aa bbb"),
        (only(gopher=gopher(max_mean_word_chars=3)), "aa bbbb", "aaa bbbb"),
        (only(gopher=gopher(max_hash_ratio=0.1)), "# " + "ab " * 9, "# " + "ab " * 8),
        (only(gopher=gopher(max_ellipsis_ratio=0.1)), "ab… " + "ab " * 9, "ab... " + "ab " * 8),
        (only(gopher=gopher(max_bullet_lines=0.9)), "- abc\n" * 9 + "abc\n", "- abc\n" * 10 + "abc\n"),
        (only(gopher=gopher(max_ellipsis_lines=0.3)), "a… \n" * 3 + "b\n" * 7, "a...\n" * 3 + "b\n" * 6),
        (only(gopher=gopher(min_alphabetic_words=0.8)), "aaa " * 4 + "1", "aaa " * 3 + "1"),
        (only(gopher=gopher(min_stop_words=2)), "with the", "with with"),
        (only(repetition=repetition(max_duplicate_lines=0.3)), "a\na\na\nb\nb\nc\nd\ne\nf\ng", "a\na\nb"),
        (only(repetition=repetition(max_duplicate_paragraphs=0.5)), "a\n\na", "a\n\na\n\na"),
        (only(repetition=repetition(max_duplicate_line_chars=0.4)), "ab\nab", "ab\nab\nab"),
        (only(repetition=repetition(max_duplicate_paragraph_chars=0.3)), "a\nb\n\na\nb\n\n", "a\nb\n\na\nb"),
        (only(repetition=repetition(max_top_2_gram=0.6)), "a b c a b ", "a b c a b"),
        (only(repetition=repetition(max_duplicate_5_grams=0.25)), "ab c d e f ab c d e f   ", "ab c d e f ab c d e f"),
        (only(c4=C4Params(min_sentences=2)), "It is so. It was.", "It is so, it was."),
        (only(fineweb=fineweb(min_terminal_lines=0.5)), "It is.\nIt is", "It is.\nIt is\nIt was"),
        (only(fineweb=fineweb(max_short_lines=0.5, short_line_chars=3)), "aaa\naaaa", "aaa\nbbb\naaaa"),
        (only(fineweb=fineweb(max_duplicate_line_chars=0.5)), "aa\naa", "aa\naa\naa"),
        (only(fineweb=fineweb(max_newline_ratio=0.5)), "a b\n", "a\n"),
    ],
)
def test_thresholds_are_inclusive(params: HeuristicsParams, passes: str, fails: str) -> None:
    assert isinstance(judge_heuristics(document(passes), params), Document)
    assert isinstance(judge_heuristics(document(fails), params), Drop)


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\t\r\n "])
def test_a_share_of_nothing_is_zero(text: str) -> None:
    off = only()
    assert judge_heuristics(document(text), off) == document(text)
    assert judge_heuristics(document(text), only(repetition=RepetitionParams())) == document(text)
    assert judge_heuristics(document(text), only(gopher=GopherParams())) == Drop("gopher-too-few-words")
    assert judge_heuristics(document(text), only(c4=C4Params())) == Drop("c4-too-few-sentences")
    assert judge_heuristics(document(text), only(fineweb=FineWebParams())) == Drop("fineweb-few-terminal-lines")


# --- languages


def test_stop_words_go_by_language() -> None:
    lists = {"en": ("the", "of"), "de": ("der", "und"), "fr": ()}
    params = only(gopher=GopherParams(stop_words=lists, min_stop_words=2))
    german = "der Hund und die Katze " * 12
    assert judge_heuristics(document(german, language="de"), params) == document(german, language="de")
    assert judge_heuristics(document(german), params) == document(german)
    assert judge_heuristics(document(german, language="fr"), params) == document(german, language="fr")
    assert judge_heuristics(document(german, language="en"), params) == Drop("gopher-few-stop-words")
    assert judge_heuristics(document(german, language="xx"), params) == document(german, language="xx")
    assert judge_heuristics(document(german, language="it"), params) == Drop("gopher-few-stop-words")  # a built-in list


def test_the_tables_of_languages() -> None:
    """At least eight words for each of more than fifty languages of the model, each of them a word to the kernel."""
    labels = {label.removeprefix(LABEL) for label in load_model(bundled_model()).labels}
    assert len(STOP_WORDS) > 50
    assert set(STOP_WORDS) | set(WORD_LENGTHS) <= labels
    assert all(len(words) >= 8 for words in STOP_WORDS.values())
    GopherParams(stop_words=STOP_WORDS)  # checks each word
    assert all(0.5 < ratio < 2.5 for ratio in WORD_LENGTHS.values())
    assert {"th", "lo", "km", "my", "zh", "ja", "en"}.isdisjoint(WORD_LENGTHS)


def test_long_words_are_those_that_are_long_for_the_language() -> None:
    finnish = "kansainvälinen yhteistyöjärjestelmä on hyvä ja vakaa " * 10  # 8.0 characters on average
    rule = only(gopher=gopher(max_mean_word_chars=7))
    assert judge_heuristics(document(finnish, language="fi"), rule) == document(finnish, language="fi")
    assert judge_heuristics(document(finnish, language="en"), rule) == Drop("gopher-long-words")
    assert judge_heuristics(document(finnish), rule) == Drop("gopher-long-words")
    short = "em có đi về nhà người thân ở xa " * 10  # 2.8
    rule = only(gopher=gopher(min_mean_word_chars=3))
    assert judge_heuristics(document(short, language="vi"), rule) == document(short, language="vi")
    own = only(gopher=gopher(min_mean_word_chars=3, word_lengths={"vi": 1}))
    assert judge_heuristics(document(short, language="vi"), own) == Drop("gopher-short-words")
    assert judge_heuristics(document(short, language="en"), rule) == Drop("gopher-short-words")


@pytest.mark.parametrize(
    "text",
    [
        "".join(chr(0x4E00 + 37 * i % 5000) for i in range(300)) + "。",
        "ที่นี่มีโรงสีเก่าแก่ริมแม่น้ำ ผู้คนใช้มันโม่ข้าวมาหลายปีแล้ว เด็กมาดูกังหันหมุนทุกฤดูใบไม้ผลิ",
        "ここには古い水車小屋がある。人々は長い間それを使って穀物をひいてきた。春になると水が二段目まで上がる。子供たちが車輪を見に来る。",
    ],
)
def test_scripts_without_spaces_have_one_word_per_letter(text: str) -> None:
    found = kernel.measure(text, (), 0, 0, 0, 0, 0)
    assert found.words > 40
    assert found.alphabetic_words / found.words > 0.9
    assert judge_heuristics(document(text, language="xx"), only(gopher=GopherParams())) == document(text, language="xx")


@given(TEXTS)
@settings(max_examples=examples(100), deadline=None)
def test_judging_never_fails_and_is_stable(text: str) -> None:
    text = text.encode("utf-8", "ignore").decode()
    params = only(c4=C4Params(min_sentences=None, drop_curly_brackets=False, drop_lorem_ipsum=False))
    once = judge_heuristics(document(text), params)
    if isinstance(once, Document):
        assert once.id == document_id(once.text)
        assert judge_heuristics(once, params) is once
    full = judge_heuristics(document(text), HeuristicsParams())
    assert isinstance(full, Document | Drop)


# --- parameters and the transform


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BasicParams(min_chars=-1), "min_chars: -1 given"),
        (lambda: BasicParams(max_punctuation_ratio=1.5), "max_punctuation_ratio: 1.5 given"),
        (lambda: GopherParams(max_hash_ratio=float("nan")), "max_hash_ratio: nan (a number) given, a finite"),
        (lambda: GopherParams(min_words=9, max_words=8), "min_words: 9 given, at most max_words"),
        (lambda: GopherParams(stop_words={"en": ("of the",)}), "stop_words.en: 'of the' given"),
        (lambda: GopherParams(stop_words={"en": ("",)}), "stop_words.en: '' given"),
        (lambda: RepetitionParams(max_top_2_gram=-0.1), "max_top_2_gram: -0.1 given"),
        (lambda: C4Params(max_word_chars=0), "max_word_chars: 0 given"),
        (lambda: FineWebParams(short_line_chars=-1), "short_line_chars: -1 given"),
    ],
)
def test_impossible_values_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        make()


def test_params_pickle_also_after_use() -> None:
    params = HeuristicsParams()
    judge_heuristics(document(PROSE), params)
    assert pickle.loads(pickle.dumps(params)) == params == HeuristicsParams()  # noqa: S301


def test_transform_keeps_and_drops() -> None:
    docs = [document(PROSE), document("too short"), document(PROSE + "\nMenu")]
    (kept,) = run_and_collect(lambda pipeline: [pipeline | beam.Create(docs) | HEURISTICS(HeuristicsParams())])
    assert kept == [document(PROSE), document(PROSE)]


def test_figures_of_repetition_are_columns_where_a_recipe_asks_for_them() -> None:
    """Each is what its rule compares: at that threshold the rule keeps the text, a little below it drops it."""
    line = "The same line of words stands here again and again for the whole length of the page.\n"
    text = (line * 3 + "\n" + PROSE[:200] + "\n\n") * 2 + PROSE
    params = only(columns=tuple(FIGURES))
    kept = judge_heuristics(document(text), params)
    assert isinstance(kept, Document) and [note.name for note in asked_notes(params)] == list(kept.meta)
    for name, figure in FIGURES.items():
        value = kept.meta[f"repetition_{name}"]
        assert 0 < value < 1
        at = only(
            repetition=RepetitionParams(**dict.fromkeys(RepetitionParams.model_fields)).replace(
                **{f"max_{name}": value + 1e-4}
            )
        )
        assert judge_heuristics(document(text), at) == document(text)
        below = at.replace(repetition=at.repetition.replace(**{f"max_{name}": value - 1e-4}))
        assert judge_heuristics(document(text), below) == Drop(figure.reason)
    with pytest.raises(ValueError, match=r"columns: 'top_5_gram' \(text\) given, did you mean top_"):
        HeuristicsParams(columns=("top_5_gram",))
    assert "columns" not in HeuristicsParams().told()
