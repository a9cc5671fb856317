"""Stages that do not keep what they promise are found by the test that is meant for it."""

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ConfigDict, model_validator

from refinery.testing import StageTests
from refinery.transforms.core.answers import Answer
from refinery.transforms.core.document import Document, Drop, FailClosed
from refinery.transforms.core.params import Count, Params, Share
from refinery.transforms.core.stage import Note, Reason, Stage


class DigitsParams(Params):
    """How many digits are too many."""

    max_ratio: Share = 0.3
    """share of a text's characters that may be digits"""


def judge_digits(doc: Document, params: DigitsParams) -> Document | Drop:
    if sum(map(str.isdigit, doc.text)) > params.max_ratio * len(doc.text):
        return Drop("digit-ratio")
    return replace(doc, meta={**doc.meta, "digits": sum(map(str.isdigit, doc.text))})


DIGITS = Stage(
    name="digits",
    version=1,
    summary="Drop documents that are mostly digits.",
    params=DigitsParams,
    judge=judge_digits,
    notes=(Note("digits", int, "how many there are"),),
    reasons=(Reason("digit-ratio", "more than `max_ratio` of the characters are digits"),),
)


class TestDigits(StageTests):
    stage = DIGITS

    def examples(self) -> Mapping[str, str]:
        return {"12 monkeys": "", "1234567": "digit-ratio"}


# --- parameters -----------------------------------------------------------------------------------------------------


class Undescribed(DigitsParams):
    least: Count = 0


class Unlimited(DigitsParams):
    least: int = 0
    """no limit"""


class Lenient(DigitsParams):
    """Takes any key."""

    model_config = ConfigDict(extra="ignore")


class Unnamed(DigitsParams):
    """Does not say which field is wrong."""

    @model_validator(mode="before")
    @classmethod
    def _any(cls, data: Any) -> Any:
        if data:
            raise ValueError("something is wrong")
        return data


class Forgetful(DigitsParams):
    """Records something else."""

    def plain(self) -> dict[str, Any]:
        return {"max_ratio": 0.5}


class Thawed(DigitsParams):
    model_config = ConfigDict(frozen=False)


class Needy(Params):
    path: str
    """a file"""


# --- judges ---------------------------------------------------------------------------------------------------------

CALLS = itertools.count()
WORDS = frozenset(f"word{number}" for number in range(64))


def counts_calls(doc: Document, params: Any) -> Document:
    return replace(doc, meta={**doc.meta, "digits": next(CALLS)})


def by_order_of_a_set(doc: Document, params: Any) -> Document:
    return replace(doc, meta={**doc.meta, "first": " ".join(WORDS)})


def changes_meta(doc: Document, params: Any) -> Document:
    doc.meta["digits"] = 1  # type: ignore[index]
    return doc


def another_origin(doc: Document, params: Any) -> Document:
    return replace(doc, origin="elsewhere@0")


def another_id(doc: Document, params: Any) -> Document:
    return replace(doc, text=f"{doc.text}!", id=bytes(16))


def makes_surrogates(doc: Document, params: Any) -> Document:
    return replace(doc, text=f"{doc.text}\ud800")


def forgets_to_return(doc: Document, params: Any) -> None:
    return None


def notes_something_else(doc: Document, params: Any) -> Document:
    return replace(doc, meta={**doc.meta, "letters": 1})


def notes_a_text(doc: Document, params: Any) -> Document:
    return replace(doc, meta={**doc.meta, "digits": "many"})


def notes_nan(doc: Document, params: Any) -> Document:
    return replace(doc, meta={**doc.meta, "ratio": float("nan")})


def drops_for_something_else(doc: Document, params: Any) -> Document | Drop:
    return Drop("too-short") if not doc.text else judge_digits(doc, params)


def measures_now_and_then(doc: Document, params: Any) -> Document | Drop:
    answer = judge_digits(doc, params)
    return Drop("digit-ratio", {"digits": 1}) if isinstance(answer, Drop) and len(doc.text) > 7 else answer


def measures_a_list(doc: Document, params: Any) -> Document | Drop:
    answer = judge_digits(doc, params)
    return Drop("digit-ratio", {"digits": [1]}) if isinstance(answer, Drop) else answer  # type: ignore[dict-item]


def finds_no_group(doc: Document, params: Any) -> Answer:
    return Answer(judge_digits(doc, params), ("digits",))


def finds_twice(doc: Document, params: Any) -> Answer:
    return Answer(judge_digits(doc, params), ("a/b", "a/b"))


def scores_infinity(doc: Document, params: Any) -> Answer:
    return Answer(judge_digits(doc, params), series="all", value=float("inf"))


def ignores_its_threshold(doc: Document, params: Any) -> Document | Drop:
    return judge_digits(doc, DigitsParams())


def divides_by_the_length(doc: Document, params: Any) -> Document | Drop:
    return Drop("digit-ratio") if sum(map(str.isdigit, doc.text)) / len(doc.text) > params.max_ratio else doc


def fails_closed(doc: Document, params: Any) -> Document | Drop:
    if "\0" in doc.text:
        raise FailClosed("NUL")
    return judge_digits(doc, params)


def is_quadratic(doc: Document, params: Any) -> Document | Drop:
    text = doc.text
    while " " in text:
        text = text.replace(" ", "", 1)
    return judge_digits(doc, params)


def splits_into_nothing(doc: Document, params: Any) -> tuple[Document, ...]:
    return ()


def splits_with_one_id(doc: Document, params: Any) -> Iterator[Document]:
    yield from (doc, replace(doc, text=f"{doc.text} again"))


def inner() -> Callable[..., Any]:
    return lambda doc, params: judge_digits(doc, params)


SAME = "test_what_is_kept_is_the_same_document"
NOTES = "test_notes_are_declared"
REFUSALS = "test_refusals_are_declared"
HOSTILE = "test_hostile_texts_are_survived"
DESCRIBED = "test_parameters_are_described_and_limited"
WRONG = "test_wrong_parameters_are_refused_in_a_line"
RECORDED = "test_parameters_are_read_back_as_they_were_recorded"
DECLARATION = "test_the_declaration_says_what_it_is"
PROCESS = "test_another_process_gives_the_same_answers"
PIPELINE = "test_a_pipeline_accounts_for_every_document"
FIRST = (Note("first", str, "one of the words"),)

BROKEN: Mapping[str, tuple[dict[str, Any], str, str]] = {
    "no sentence": ({"summary": "digits"}, DECLARATION, "summary: 'digits' given, a sentence is needed"),
    "no meaning": ({"reasons": (Reason("digit-ratio", " "),)}, DECLARATION, "digit-ratio: no meaning given"),
    "no such library": ({"libraries": ("no-such",)}, DECLARATION, "libraries: 'no-such' given"),
    "a composite": ({"judge": None}, DECLARATION, "no judge given"),
    "on, and needs a file": ({"params": Needy}, DECLARATION, "required, and the stage is on"),
    "no description": ({"params": Undescribed}, DESCRIBED, "least: no docstring below the field"),
    "no limit": ({"params": Unlimited}, DESCRIBED, "least: no limit given"),
    "any key": ({"params": Lenient}, WRONG, "no_such_key: 1 given, and it is taken"),
    "no name": ({"params": Unnamed}, WRONG, "no line of .* begins with the name"),
    "another record": ({"params": Forgetful}, RECORDED, "max_ratio=0.5.* read back"),
    "not frozen": ({"params": Thawed}, RECORDED, "Thawed: not frozen"),
    "a wrong example": (
        {"judge": counts_calls},
        "test_examples_get_their_answers",
        "'1234567': kept, the example says digit-ratio",
    ),
    "a state": ({"judge": counts_calls}, "test_the_same_document_gives_the_same_answer", "another answer when"),
    "the order of a set": ({"judge": by_order_of_a_set, "notes": FIRST}, PROCESS, "another answer in another process"),
    "a function inside another": ({"judge": inner()}, PROCESS, "cannot be pickled"),
    "a document that is changed": ({"judge": changes_meta}, "test_documents_are_left_as_they_are", "changes the doc"),
    "another origin": ({"judge": another_origin}, SAME, "its origin is another one"),
    "another id": ({"judge": another_id}, SAME, "an id that is neither"),
    "surrogates": ({"judge": makes_surrogates}, SAME, "a lone surrogate is in the text"),
    "no return": ({"judge": forgets_to_return}, SAME, "NoneType returned"),
    "parts of one id": ({"judge": splits_with_one_id, "splits": True}, SAME, "an id that is neither"),
    "nothing kept": ({"judge": splits_into_nothing, "splits": True}, SAME, "no document is kept"),
    "another note": ({"judge": notes_something_else}, NOTES, "the note 'letters' is not declared"),
    "a note of another type": ({"judge": notes_a_text}, NOTES, "the note digits is 'many', int declared"),
    "a note that is no number": (
        {"judge": notes_nan, "notes": (Note("ratio", float, "of digits"),)},
        NOTES,
        "the note ratio is nan, float declared",
    ),
    "another reason": ({"judge": drops_for_something_else}, REFUSALS, "dropped for 'too-short', which is not"),
    "measured now and then": ({"judge": measures_now_and_then}, REFUSALS, "digit-ratio measures"),
    "a list measured": ({"judge": measures_a_list}, REFUSALS, r"digits of digit-ratio is \[1\]"),
    "found without a group": ({"judge": finds_no_group}, REFUSALS, "group/name is needed"),
    "found twice": ({"judge": finds_twice}, REFUSALS, "something is found twice"),
    "no finite score": ({"judge": scores_infinity}, REFUSALS, "inf scored"),
    "another threshold": (
        {"judge": ignores_its_threshold},
        "test_a_reason_that_names_a_threshold_follows_it",
        "dropped for digit-ratio whatever max_ratio is",
    ),
    "an empty text": ({"judge": divides_by_the_length}, HOSTILE, "empty: ZeroDivisionError raised"),
    "the end of the run": ({"judge": fails_closed}, HOSTILE, "NULs: FailClosed raised: NUL"),
    "no answer": ({"judge": forgets_to_return}, HOSTILE, "None returned, a document or a Drop is needed"),
    "quadratic": ({"judge": is_quadratic}, "test_time_grows_with_the_text", "s for 50,000 characters"),
    "a dead letter": ({"judge": divides_by_the_length}, PIPELINE, "dead letters: ZeroDivisionError"),
}


def broken(**changes: Any) -> Any:
    return type("Broken", (TestDigits,), {"stage": replace(DIGITS, **changes), "__test__": False})()


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_found(name: str, tmp_path: Path) -> None:
    changes, test, message = BROKEN[name]
    function = getattr(broken(**changes), test)
    with pytest.raises(AssertionError, match=message):
        function(*([tmp_path] if inspect.signature(function).parameters else []))


def test_every_contract_is_tried_on_a_broken_stage() -> None:
    contracts = {name for name in vars(StageTests) if name.startswith("test_")}
    assert {test for _, test, _ in BROKEN.values()} == contracts


@pytest.mark.parametrize(
    ("examples", "message"),
    [({"1234567": "digit-ratio"}, "no text that is kept"), ({"12 monkeys": ""}, "no text that is dropped")],
)
def test_examples_of_both_kinds_are_needed(examples: dict[str, str], message: str) -> None:
    made = type("Broken", (TestDigits,), {"examples": lambda self: examples, "__test__": False})()
    with pytest.raises(AssertionError, match=message):
        made.test_examples_get_their_answers()
