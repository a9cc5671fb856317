"""The rule about licences of pages."""

from pathlib import Path
from typing import Any

import pytest

from refinery.transforms.core.answers import Answer, answer_of
from refinery.transforms.core.document import Document, Drop
from refinery.transforms.rights.page_license import PageLicenseParams, asked_notes, judge_page_license, prepare_rule


@pytest.mark.parametrize(
    ("expression", "params", "reason"),
    [
        ("", {}, ""),
        ("", {"undeclared": "drop"}, "license-undeclared"),
        ("", {"allow": ("CC-BY",)}, ""),
        ("CC-BY-4.0", {"undeclared": "drop"}, ""),
        ("CC-BY-4.0", {"allow": ("CC-BY",)}, ""),
        ("CC-BY-3.0-DE", {"allow": ("cc-by-3.0",)}, ""),
        ("CC-BY-4.0", {"allow": ("CC-BY-4.0",)}, ""),
        ("CC-BY", {"allow": ("CC-BY",)}, ""),
        ("CC-BY-NC-4.0", {"allow": ("CC-BY", "CC-BY-SA")}, "license-not-allowed"),
        ("CC-BY-4.0", {"allow": ("CC-BY-3.0",)}, "license-not-allowed"),
        ("CC-BY-SA-3.0 AND CC0-1.0", {"allow": ("CC-BY-SA",)}, "license-not-allowed"),
        ("CC-BY-SA-3.0 AND CC0-1.0", {"allow": ("CC-BY-SA", "CC0")}, ""),
        ("CC-BY-SA-3.0 AND CC-BY-NC-2.0", {"deny": ("CC-BY-NC",)}, "license-denied"),
        ("CC-BY-NC-2.0", {"deny": ("CC-BY-NC",), "allow": ("CC-BY-NC",)}, "license-denied"),
        ("LicenseRef-other", {"deny": ("CC-BY-NC",)}, ""),
        ("LicenseRef-other", {"allow": ("CC-BY",)}, "license-not-allowed"),
    ],
)
def test_lists_of_licences(expression: str, params: dict[str, Any], reason: str) -> None:
    doc = Document(b"x" * 16, "text", "", "s", "o", 0, {"license": expression} if expression else {})
    given = PageLicenseParams(**params)
    answer = judge_page_license(doc, prepare_rule(given), given)
    inner = answer_of(answer).result
    assert (inner.reason if isinstance(inner, Drop) else "") == reason
    if isinstance(answer, Answer):
        assert answer.summary == expression


def test_what_is_no_identifier() -> None:
    with pytest.raises(ValueError, match=r"deny: 'CC BY' given, an identifier such as CC-BY-4.0 is allowed"):
        PageLicenseParams(deny=("CC BY",))


TABLE = """license,class
# whose pages may be sold
CC-BY,attribution
CC-BY-2.0-KR,odd
CC0,free
CC-BY-NC, non-commercial
"""


@pytest.mark.parametrize(
    ("expression", "params", "answer"),
    [
        ("CC-BY-4.0", {"deny": ("non-commercial",)}, "attribution"),
        ("CC-BY-2.0-KR", {}, "odd"),  # the entry that says most
        ("CC-BY-NC-4.0", {"deny": ("non-commercial",)}, "license-denied"),
        ("CC-BY-NC-4.0", {"deny": ("CC-BY-NC-4.0",)}, "license-denied"),
        ("CC-BY-NC-4.0", {"allow": ("free", "attribution")}, "license-not-allowed"),
        ("CC-BY-SA-4.0", {"allow": ("free", "CC-BY-SA")}, ""),
        ("CC0-1.0 AND CC-BY-4.0", {"allow": ("free", "attribution")}, "attribution AND free"),
        ("CC0-1.0 AND CC-BY-NC-4.0", {"deny": ("non-commercial",)}, "license-denied"),
        ("", {"allow": ("free",)}, None),
    ],
)
def test_classes_of_a_table(expression: str, params: dict[str, Any], answer: str | None, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TABLE)
    given = PageLicenseParams(classes=str(tmp_path / "t.csv"), **params)
    doc = Document(b"x" * 16, "text", "", "s", "o", 0, {"license": expression} if expression else {})
    found = judge_page_license(doc, prepare_rule(given), given)
    inner = answer_of(found).result
    assert (inner.reason if isinstance(inner, Drop) else inner.meta.get("license_class")) == answer
    assert [note.name for note in asked_notes(given)] == ["license_class"] and not asked_notes(PageLicenseParams())


@pytest.mark.parametrize(
    ("text", "params", "problem"),
    [
        ("licence,class\n", {}, "the header 'licence,class' (text) given, license and names of other columns"),
        ("license,klass\nMIT,a\n", {}, "column 'class' (text) given, did you mean klass?"),
        ("license,class\nCC BY,a\n", {}, "line 2: 'CC BY' (text) given, an identifier that no line before has"),
        ("license,class\nMIT,a\nmit,b\n", {}, "line 3: 'mit' (text) given, an identifier that no line before has"),
        ("license,class\nMIT,\n", {}, "line 2: '' (empty text) given, small letters"),
        (TABLE, {"deny": ("non-comercial",)}, "deny: 'non-comercial' given, a class of the table (attribution, free, "),
    ],
)
def test_tables_and_names_that_are_none(text: str, params: dict[str, Any], problem: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ValueError) as error:
        prepare_rule(PageLicenseParams(classes=str(tmp_path / "t.csv"), **params))
    assert problem in str(error.value) and "\n" not in str(error.value)
