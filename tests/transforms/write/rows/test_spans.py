"""Labels with places: without them, a text is what the stage would have left."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.core.document import Document, document_id
from refinery.transforms.dedup.cut_lines import CUT_LINES, LineParams, cut_lines, cut_text
from refinery.transforms.dedup.cut_substrings import CUT_SUBSTRINGS, SubstringParams, cut_substrings
from refinery.transforms.filter.pii import PiiParams, judge_pii
from refinery.transforms.filter.secrets_stage import SecretsParams, redact_secrets
from refinery.transforms.write.rows.spans import SPAN_LABELS, Span, line_cuts, moved_spans, read_spans, spelt_spans
from refinery.transforms.write.rows.text_places import gaps

FIND = {label.name: label.find for label in SPAN_LABELS}
LINES = st.lists(st.sampled_from(["", "one", "two", "- three", "share this"]), min_size=1, max_size=14)


def doc(text: str, **meta: str) -> Document:
    return Document(document_id(text), text, "", "s", "a@0", 0, meta)


def without(text: str, spans: list[Span]) -> str:
    return "".join(text[start:end] for start, end in gaps([span[:2] for span in spans], len(text)))


@given(LINES, st.sets(st.integers(0, 13)))
def test_lines(lines: list[str], gone: set[int]) -> None:
    text, numbers = "\n".join(lines), {number for number in gone if number < len(lines)}
    assert without(text, [Span(*span) for span in line_cuts(text, numbers)]) == cut_text(text, numbers)


@given(st.integers(0, 10**6))
def test_repeated_passages(seed: int) -> None:
    """Alone, and before lines, whose numbers stay those of the text as it came."""
    draw = random.Random(seed)
    words = [draw.choice(["one", "two.", "three,", "four\n", "five\n\n", "-\n", "six "]) for _ in range(40)]
    text = " ".join(words).strip()
    edges = sorted(draw.sample(range(len(text)), 6))
    noted = ",".join(f"{start}-{end}" for start, end in zip(edges[::2], edges[1::2], strict=True))
    params = SubstringParams(min_chars=1)
    alone = doc(text, **{CUT_SUBSTRINGS: noted})
    left = cut_substrings(alone, params)
    spans = list(FIND["substring_spans"](alone, left, params))
    assert without(text, spans) == (left.text if isinstance(left, Document) else "")
    both = doc(text, **{CUT_SUBSTRINGS: noted, CUT_LINES: "0"})
    between = cut_substrings(both, params)
    if isinstance(between, Document):
        found = set(FIND["substring_spans"](both, between, params))
        whole = doc(text, **{CUT_LINES: str(between.meta[CUT_LINES])})
        lines = cut_lines(between, LineParams(min_chars=1))
        found |= set(FIND["line_spans"](whole, lines, None))
        chars = {at for span in found for at in range(span.start, span.end)}
        left_of_both = "".join(sign for at, sign in enumerate(text) if at not in chars)
        assert left_of_both == (lines.text if isinstance(lines, Document) else "")


def test_personal_data_and_credentials() -> None:
    """What stands between the spans is what stands between the placeholders."""
    text = "mail jane.doe@company-mail.org or +49 30 901820, key AKIAIOSFODNN7EXAMPLK twice AKIAIOSFODNN7EXAMPLK, end"
    for name, judge, placeholders in (
        ("pii_spans", lambda found: judge_pii(found, None, PiiParams()), ["<EMAIL>", "<PHONE>"]),
        ("secret_spans", lambda found: redact_secrets(found, SecretsParams()), ["API_KEY_REDACTED"]),
    ):
        params = PiiParams() if name == "pii_spans" else SecretsParams()
        left = judge(doc(text))
        spans = list(FIND[name](doc(text), left, params))
        assert len(spans) == 2 and not isinstance(left, type(None))
        for placeholder in placeholders:
            left = doc(left.text.replace(placeholder, ""))
        assert without(text, spans) == left.text


def test_spelling() -> None:
    spans = [Span(1, 5, "email"), Span(9, 12, "national_id")]
    assert spelt_spans(spans, True) == "1-5:email 9-12:national_id"
    assert read_spans(spelt_spans(spans, True)) == spans and read_spans("") == []
    assert read_spans(spelt_spans(spans, False)) == [Span(1, 5, "cut"), Span(9, 12, "cut")]
    assert moved_spans("1-5:email 9-12", lambda start, end: (start + 1, end + 2)) == "2-7:email 10-14:cut"


@pytest.mark.parametrize("label", SPAN_LABELS, ids=lambda label: label.name)
def test_nothing_is_noted_where_nothing_is_found(label: object) -> None:
    plain = doc("a text of no interest")
    params = {"pii_spans": PiiParams(), "secret_spans": SecretsParams()}.get(label.name)  # type: ignore[attr-defined] # a SpanLabel
    assert label.noted(plain, plain, params) == {}  # type: ignore[attr-defined] # a SpanLabel
