"""What a rule measured, found by moving its threshold, is what the kernel counted."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.pipelines.recipe.recipe import find_lane
from refinery.transforms.core.answers import Answer, answer_of
from refinery.transforms.core.document import Document, Drop, document_id
from refinery.transforms.core.last_call import LastCall
from refinery.transforms.core.measured_rules import (
    read_alone,
    readings,
    rules_alone,
    rules_of,
    threshold_range,
    with_value,
)
from refinery.transforms.core.params import Params
from refinery.transforms.core.stage import Reason, Stage
from refinery.transforms.filter.heuristics import HEURISTICS, judge_heuristics
from refinery.transforms.filter.heuristics_rules import C4Params, GopherParams, HeuristicsParams, RepetitionParams
from refinery.transforms.native.heuristics import measure

TEXT = "\n\n".join(
    [
        "The history of the river is that of the towns along it, and of those who have lived with its floods.",
        "- a first point # of a list",
        "- a second point of the list …",
        "In the autumn the river rises, and the meadows to the east of the town are under water. In the autumn the "
        "river rises, and nobody minds; the people have lived with that for as long as anybody can remember.",
    ]
    * 2
)


def doc(text: str) -> Document:
    return Document(document_id(text), text, "", "s", "f@0", 0, {"language": "en"})


def measured(text: str, params: HeuristicsParams) -> dict[str, tuple[float | None, bool]]:
    found = readings(HEURISTICS, params, lambda other: judge_heuristics(doc(text), other))
    return {reading.rule.key: (reading.value, reading.drops) for reading in found}


def test_values_are_those_of_the_kernel() -> None:
    params = HeuristicsParams()
    found = measured(TEXT, params)
    assert params.gopher is not None
    counts = measure(TEXT, params.gopher.lists_for("en"), *params.limits)
    chars, words = len(TEXT), counts.words
    for key, value in {
        "basic.min_chars": chars,
        "basic.max_punctuation_ratio": counts.punctuation / chars,
        "gopher.min_words": counts.alnum_words,
        "gopher.max_words": counts.alnum_words,
        "gopher.max_hash_ratio": counts.hashes / words,
        "gopher.max_bullet_lines": counts.bullet_lines / counts.lines,
        "gopher.min_alphabetic_words": counts.alphabetic_words / words,
        "gopher.min_stop_words": counts.stop_words,
        "repetition.max_duplicate_lines": counts.duplicate_lines / counts.lines,
        "repetition.max_top_2_gram": counts.top_2_gram_chars / chars,
        "repetition.max_duplicate_10_grams": counts.duplicate_10_gram_chars / chars,
        "c4.min_sentences": counts.kept_sentences,
        "fineweb.min_terminal_lines": counts.kept_terminal_lines / counts.kept_lines,
    }.items():
        assert found[key][0] == pytest.approx(value, abs=1e-8), key
    assert found["repetition.max_duplicate_lines"][1]


def test_every_rule_with_a_threshold_is_measured() -> None:
    keys = {rule.key for rule in rules_of(HEURISTICS, HeuristicsParams())}
    assert {key.partition(".")[0] for key in keys} == {"basic", "gopher", "repetition", "c4", "fineweb"}
    assert len(keys) >= 30
    off = HeuristicsParams(gopher=None)
    assert not [rule for rule in rules_of(HEURISTICS, off) if rule.key.startswith("gopher")]
    one = HeuristicsParams(gopher=GopherParams(min_words=None))
    assert "gopher.min_words" not in {rule.key for rule in rules_of(HEURISTICS, one)}


def test_a_rule_that_does_not_apply_measures_nothing() -> None:
    """Without a list of stop words for the language, that rule judges nothing."""
    page = Document(document_id(TEXT), TEXT, "", "s", "f@0", 0, {"language": "xx"})
    found = list(readings(HEURISTICS, HeuristicsParams(), lambda other: judge_heuristics(page, other)))
    assert [reading.value for reading in found if reading.rule.key == "gopher.min_stop_words"] == [None]


@given(
    st.lists(
        st.sampled_from(["the river", "# # #", "…", "and that is all.", "{", "\n", "\n\n", "a", "- x"]), max_size=80
    )
)
def test_what_is_kept_fails_no_rule_and_what_is_dropped_fails_one(parts: list[str]) -> None:
    text = " ".join(parts)
    reason = answer_of(judge_heuristics(doc(text), HeuristicsParams())).reason
    params = HeuristicsParams()
    failing = {
        reading.rule.reason
        for reading in readings(HEURISTICS, params, lambda other: judge_heuristics(doc(text), other))
        if reading.drops
    }
    if not reason:
        assert failing == set()
    elif reason not in ("c4-curly-bracket", "c4-no-lines-left"):  # these have no threshold
        assert reason in failing


def test_a_stage_of_ones_own_needs_to_say_nothing() -> None:
    class DigitsParams(Params):
        """How many digits are too many."""

        max_ratio: float = 0.3

    def judge(each: Document, params: DigitsParams) -> Document | Drop:
        many = sum(map(str.isdigit, each.text)) > params.max_ratio * len(each.text)
        return Drop("digit-ratio") if many else each

    stage = Stage(
        name="digits",
        version=1,
        summary="Drop tables.",
        params=DigitsParams,
        judge=judge,
        reasons=(Reason("digit-ratio", "more than `max_ratio` of the characters are digits"),),
    )
    (reading,) = readings(stage, DigitsParams(), lambda other: judge(doc("ab12345678"), other))
    assert reading.value == pytest.approx(0.8)
    assert reading.drops


@pytest.mark.parametrize("digits", [2, 6])
def test_values_that_will_be_rounded_are_asked_for_less(digits: int) -> None:
    asked = 0

    def judge(other: HeuristicsParams) -> Document | Drop:
        nonlocal asked
        asked += 1
        return judge_heuristics(doc(TEXT), other)

    params, shares = HeuristicsParams(), []
    for whole in readings(HEURISTICS, params, judge):
        before = asked
        for rule, alone in rules_alone(HEURISTICS, params, whole.rule.reason):
            reading = read_alone(rule, alone, judge, digits)
            if rule == whole.rule:
                assert (reading.value is None) == (whole.value is None)
                assert reading.value is None or round(reading.value, digits) == round(whole.value or 0, digits)
                assert reading.drops == whole.drops
        if isinstance(whole.rule.threshold, float) and whole.rule.threshold <= 1:
            shares.append(asked - before)
    assert sum(shares) / len(shares) <= 3 + 4 * digits  # a value on the edge between two takes more


@pytest.mark.parametrize("counting", ["own", "datatrove", "dclm", "dolma"])
def test_counts_kept_for_the_next_question_are_those_of_its_text(
    counting: Literal["own", "dclm"], monkeypatch: pytest.MonkeyPatch
) -> None:
    params = HeuristicsParams(counting=counting, c4=C4Params(remove_citations=True))
    asked = [with_value(params, rule.path, value) for rule in rules_of(HEURISTICS, params) for value in (0, 1)]
    docs = [doc(text) for text in (TEXT.replace("river", "river [1]"), TEXT[::-1], "It is a line.\n" + TEXT, "a " * 99)]
    by_text = {(each.id, n): judge_heuristics(each, other) for each in docs for n, other in enumerate(asked)}
    by_threshold = {(each.id, n): judge_heuristics(each, other) for n, other in enumerate(asked) for each in docs}
    monkeypatch.setattr(LastCall, "__call__", lambda last, *arguments: last._function(*arguments))
    assert by_text == {(each.id, n): judge_heuristics(each, other) for each in docs for n, other in enumerate(asked)}
    assert by_text == by_threshold
    assert len({answer_of(answer).reason for answer in by_text.values()}) >= 8


def test_of_other_values_nothing_is_left_that_was_computed() -> None:
    params = HeuristicsParams()
    assert params.repetition is not None and params.repetition.rules and params.limits[0] == 10
    other = with_value(params, ("repetition", "max_duplicate_10_grams"), None)
    assert other.repetition == RepetitionParams(max_duplicate_10_grams=None) and other.limits[0] == 9
    assert params.limits[0] == 10 and params.repetition.max_duplicate_10_grams == 0.1
    assert with_value(HeuristicsParams(gopher=None), ("gopher", "min_words"), 1) == HeuristicsParams(gopher=None)


def test_answers_of_every_form() -> None:
    drop = Drop("x")
    answers = (drop, Answer(drop, ("a/b",)), Answer(drop, series="en", value=1.0), doc("a"))
    assert [answer_of(each).reason for each in answers] == ["x", "x", "x", ""]


@pytest.mark.parametrize(
    ("section", "key", "limits"),
    [
        ("extract", "max_elements", (1, 1 << 27)),
        ("toxicity", "max_density", (0, 1000)),
        ("toxicity", "min_hits", (1e-12, 1 << 27)),
        ("toxicity", "max_toxic_share", (0, 1)),
        ("line_dup", "min_chars", (0, 1 << 27)),
    ],
)
def test_thresholds_stay_in_the_range_that_the_field_allows(
    section: str, key: str, limits: tuple[float, float]
) -> None:
    stage = next(each for each in find_lane("web").stages if each.key == section)
    assert stage.params is not None
    field = stage.params.model_fields[key]
    assert threshold_range(field, field.default) == pytest.approx(limits)
