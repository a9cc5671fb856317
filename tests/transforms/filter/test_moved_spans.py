"""Secrets and personal data in conversations: what is trained after redaction is what was trained, redacted by itself;
a match over the border of a span is refused, and never moves a border silently."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.transforms.core.document import Document, document_id
from refinery.transforms.core.spans.marks import Marks, SpanCut, marks_of, notes_of
from refinery.transforms.filter.pii import PiiParams, judge_pii
from refinery.transforms.filter.secrets_stage import SecretsParams, redact_secrets
from tests.beam import make_document
from tests.sampling import examples

END = "<|end|>"
KEY, MAIL = "AKIAIOSFODNN7EXAMPLQ", "jane.doe@company.com"
PART = st.lists(st.sampled_from(["word", KEY, MAIL, "ö", "password", "…"]), min_size=1, max_size=5).map(" ".join)


def make(parts: list[str], trained: list[bool]) -> Document:
    """Turns, each with its control token behind it."""
    text, spans, controls = "", [], []
    for part, is_trained in zip(parts, trained, strict=True):
        start, middle = len(text), len(text) + len(part)
        text += part + END
        controls.append((middle, len(text)))
        spans += [(start, len(text))] if is_trained else []
    marks = Marks(tuple(spans), tuple(controls))
    return replace(make_document(text), id=document_id(text), text=text, meta=notes_of(text, marks))


def trained_parts(doc: Document) -> list[str]:
    marks = marks_of(doc)
    assert marks is not None
    assert {doc.text[start:end] for start, end in marks.controls} <= {END}
    return [doc.text[start:end] for start, end in marks.trained]


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(PART, st.booleans()), min_size=1, max_size=4))
def test_what_is_trained_is_redacted_in_its_place(turns: list[tuple[str, bool]]) -> None:
    parts, trained = [part for part, _ in turns], [is_trained for _, is_trained in turns]
    found = redact_secrets(make(parts, trained), SecretsParams())
    assert isinstance(found, Document)
    found = judge_pii(found, None, PiiParams())
    assert isinstance(found, Document)
    clean = [part.replace(KEY, "API_KEY_REDACTED").replace(MAIL, "<EMAIL>") for part in parts]
    assert found.text == "".join(part + END for part in clean)
    assert trained_parts(found) == [part + END for part, is_on in zip(clean, trained, strict=True) if is_on]


def test_a_match_over_a_border_is_refused() -> None:
    text = f"key {KEY} end"
    doc = replace(make_document(text), text=text, meta=notes_of(text, Marks(((10, len(text)),))))
    with pytest.raises(SpanCut):
        redact_secrets(doc, SecretsParams())
    mail = f"mail {MAIL} end"
    doc = replace(make_document(mail), text=mail, meta=notes_of(mail, Marks(((10, len(mail)),))))
    with pytest.raises(SpanCut):
        judge_pii(doc, None, PiiParams())


def test_what_only_counts_changes_nothing() -> None:
    doc = make([f"a {KEY}", MAIL], [False, True])
    noted = redact_secrets(doc, SecretsParams(action="note"))
    assert isinstance(noted, Document)
    assert (noted.text, noted.meta["secrets"], trained_parts(noted)) == (doc.text, 1, [MAIL + END])
    assert redact_secrets(make(["a"], [True]), SecretsParams()).text == "a" + END  # type: ignore[union-attr]
