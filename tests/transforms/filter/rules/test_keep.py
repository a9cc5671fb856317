"""The rule of a recipe: what it can name, what it drops and why, chance, thresholds by language."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.core.document import Document, Drop, document_id
from refinery.transforms.core.languages.by_language import read_language_numbers
from refinery.transforms.core.stage import Note
from refinery.transforms.dedup.cut_lines import CUT_LINES, LINES, LineParams, cut_lines
from refinery.transforms.dedup.cut_substrings import CUT_SUBSTRINGS, SUBSTRINGS, SubstringParams, cut_substrings
from refinery.transforms.filter.pii import PII, PiiParams, redact_pii
from refinery.transforms.filter.quality import ClassifierParams, pareto_keeps
from refinery.transforms.filter.rules.keep import (
    FACTS,
    KEEP,
    NOT_MET,
    UNKNOWN,
    KeepParams,
    bind_notes,
    judge_keep,
    prepare_rule,
)
from refinery.transforms.filter.secrets_stage import SECRETS, SecretsParams, redact_secrets
from tests.beam import make_document, run_and_collect

NOTES = (
    Note("edu", float, "a score"),
    Note("dclm", float, "a score"),
    Note("pii", int, "matches"),
    Note("cut", int, "lines", counts=True),
    Note("language", str, "code"),
    Note("copy_sources", str, "sources"),
)
RULE = "edu > 0.3 or (dclm > 0.02 and language == 'en')"


def judge(rule: str, meta: dict[str, Any], text: str = "a text", **more: Any) -> Document | Drop:
    params = bind_notes(KeepParams(rule=rule, **more), NOTES)
    return judge_keep(make_document(text, meta=meta), prepare_rule(params), params)


def test_what_stages_only_counted_can_decide() -> None:
    """`action: note` of the stages that would cut or replace, then a rule over their counts."""
    text = "write to jane.doe@company-mail.org, password='hunter2hunter9Z'\nmenu"
    doc = make_document(text, meta={CUT_LINES: "1", CUT_SUBSTRINGS: "0-5"})
    for judge_one in (
        partial(redact_secrets, params=SecretsParams(action="note")),
        partial(cut_substrings, params=SubstringParams(action="note")),
        partial(cut_lines, params=LineParams(action="note")),
        partial(redact_pii, params=PiiParams(action="note")),
    ):
        doc = judge_one(doc)
        assert isinstance(doc, Document) and doc.text == text
    notes = [note for stage in (PII, SECRETS, LINES, SUBSTRINGS) for note in stage.notes]
    for rule, is_met in (
        ("pii < 2 and secrets == 1 and lines_cut == 1 and chars_cut == 5", True),
        ("contains(pii_types, 'phone')", False),
        ("secrets == 0", False),
    ):
        params = bind_notes(KeepParams(rule=rule), notes)
        assert isinstance(judge_keep(doc, prepare_rule(params), params), Document) is is_met


@pytest.mark.parametrize(
    ("rule", "meta", "reason"),
    [
        (RULE, {"edu": 0.4, "dclm": 0.0, "language": "de"}, ""),
        (RULE, {"edu": 0.1, "dclm": 0.03, "language": "en"}, ""),
        (RULE, {"edu": 0.1, "dclm": 0.03, "language": "de"}, NOT_MET),
        (RULE, {"dclm": 0.01, "language": "en"}, UNKNOWN),
        (RULE, {"dclm": 0.03, "language": "en"}, ""),  # the missing score decides nothing
        ("pii < 3", {"pii": 3}, NOT_MET),
        ("pii is null or pii < 3", {}, ""),
        ("text_bytes >= 6 and source == 's'", {}, ""),
        ("text_bytes > 6", {}, NOT_MET),
        ("pii < 3", {}, UNKNOWN),
        ("cut < 3", {}, ""),  # a count is 0 where nothing was found
        ("'books' in sources", {"copy_sources": "crawl,books"}, ""),
        ("starts_with(url, 'https://')", {}, NOT_MET),
    ],
)
def test_what_a_rule_decides(rule: str, meta: dict[str, Any], reason: str) -> None:
    answer = judge(rule, meta)
    assert (answer.reason if isinstance(answer, Drop) else "") == reason
    if not reason:
        assert answer == make_document("a text", meta=meta)


def test_a_drop_has_the_values_that_the_rule_names() -> None:
    answer = judge(RULE + " or starts_with(url, 'x')", {"edu": 0.1, "language": "de", "pii": 7})
    assert isinstance(answer, Drop)
    assert answer.measured == {"dclm": None, "edu": 0.1, "language": "de"}  # addresses are told beside it, redacted
    assert answer.summary == "dclm=null edu=0.1 language=de"


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"rule": "edux > 0.3"}, "rule: at character 1: edux is not a column, did you mean edu?"),
        ({"rule": "edu > 0.3 and"}, "rule: at character 14: the rule ends here"),
        (
            {"rule": "edu > t", "thresholds": {"edu": {"file": "x.csv"}}},
            "rule: the name 'edu' is already the name of a column",
        ),
        (
            {"rule": "lot", "draws": {"lot": {"score": "pii"}}},
            r"draws.lot.score: 'pii' given, a column",
        ),
        ({"rule": "lot", "draws": {"lot": {}}}, r"draws.lot.score: either a score or a share"),
        ({"rule": "lot", "draws": {"lot": {"score": "edu", "share": 0.1}}}, "either a score or a share"),
        ({"rule": "a > 1", "fields": {"a": "float"}, "draws": {"a": {"share": 0.5}}}, "the name 'a' given twice"),
        ({"rule": "B", "draws": {"B": {"share": 0.5}}}, "'B' given, up to 40 small letters"),
    ],
)
def test_rules_that_do_not_fit(more: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        bind_notes(KeepParams(**more), NOTES)


def kept(texts: Sequence[str], value: float, **draw: Any) -> list[bool]:
    params = bind_notes(KeepParams(rule="lot", draws={"lot": draw}), NOTES)
    judgement = prepare_rule(params)
    docs = (make_document(text, meta={"edu": value}) for text in texts)
    return [isinstance(judge_keep(doc, judgement, params), Document) for doc in docs]


def test_a_draw_is_gpt3s_and_that_of_the_quality_stage() -> None:
    texts = [str(number) for number in range(2000)]
    for score, alpha in ((0.0, 2), (0.5, 9), (0.9, 9), (1.0, 9)):
        found = kept(texts, score, score="edu", alpha=alpha, seed=7)
        expected = (2 - score) ** -alpha
        spread = (expected * (1 - expected) / len(texts)) ** 0.5
        assert sum(found) / len(found) == pytest.approx(expected, abs=4 * spread + 1e-9)
        like = ClassifierParams(name="lot", model="m", alpha=alpha, seed=7)
        assert found == [pareto_keeps(document_id(text), round(score * 10_000), like) for text in texts]
    assert kept(texts, 0.5, score="edu") == kept(texts, 0.5, score="edu") != kept(texts, 0.5, score="edu", seed=2)


def test_a_share_is_drawn_whatever_the_score() -> None:
    texts = [str(number) for number in range(2000)]
    assert sum(kept(texts, 0.0, share=0.25)) == pytest.approx(500, abs=80)
    assert not any(kept(texts, 0.0, share=0.0)) and all(kept(texts, 0.0, share=1.0))


@given(st.one_of(st.none(), st.floats(), st.integers(), st.text()))
def test_any_value_of_a_record_is_judged_or_missing(value: Any) -> None:
    answer = judge("field > 0.5", {"field": value}, fields={"field": "float"})
    if isinstance(value, float | int) and value == value:
        assert not isinstance(answer, Drop) or answer.reason == NOT_MET
    else:
        assert isinstance(answer, Drop) and answer.reason == UNKNOWN


def table(folder: Path, text: str, name: str = "t.csv") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def test_thresholds_by_language(tmp_path: Path) -> None:
    path = table(tmp_path, "\ufefflanguage, least, other\n# of a sample\nen,0.5,1\nno, 0.2 ,\nsrp_Cyrl,0.9,3\n\n")
    assert read_language_numbers(path, "least") == {"en": 0.5, "no": 0.2, "sr_Cyrl": 0.9, "sr": 0.9}
    assert read_language_numbers(path, "other") == {"en": 1.0, "sr_Cyrl": 3.0, "sr": 3.0}
    for default, language, score, reason in (
        (None, "en", 0.5, ""),
        (None, "en", 0.4, NOT_MET),
        (None, "no", 0.2, ""),
        (None, "de", 0.9, UNKNOWN),
        (0.8, "de", 0.9, ""),
        (0.8, "", 0.7, NOT_MET),
    ):
        entry = {"file": path, "column": "least", "default": default}
        answer = judge("edu >= least", {"edu": score, "language": language}, thresholds={"least": entry})
        assert (answer.reason if isinstance(answer, Drop) else "") == reason
    params = KeepParams(rule="edu > least", thresholds={"least": {"file": path, "column": "least"}})
    assert KEEP.files(params) == (path,)
    tabbed = table(tmp_path, "language\tleast\nen\t0.5\n", "t.tsv")
    assert read_language_numbers(tabbed) == {"en": 0.5}


def test_a_table_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"language,a\n\xff,1\n")
    for path in (tmp_path / "t.csv", tmp_path / "none.csv"):
        params = bind_notes(KeepParams(rule="edu > t", thresholds={"t": {"file": str(path)}}), NOTES)
        with pytest.raises(ValueError, match=r"^thresholds\.t: .*cannot be read"):
            prepare_rule(params)


def test_the_stage_needs_to_know_what_is_noted() -> None:
    with pytest.raises(TypeError, match="bind_notes"):
        prepare_rule(KeepParams(rule="edu > 1"))
    assert {"url", "origin", "source", "text_bytes", "sources"} == FACTS.keys()


def test_it_runs_in_a_pipeline_and_counts() -> None:
    docs = [make_document(f"text {number}", meta={"edu": number / 10}) for number in range(10)]
    params = bind_notes(KeepParams(rule="edu > 0.45"), NOTES)
    (kept,) = run_and_collect(lambda pipeline: [pipeline | beam.Create(docs) | KEEP(params)])
    assert sorted(doc.meta["edu"] for doc in kept) == [0.5, 0.6, 0.7, 0.8, 0.9]
