"""The rule about licences of pages."""

from typing import Any

import pytest

from refinery.transforms.core.document import Document, Drop, Finding
from refinery.transforms.rights.page_license import PageLicenseParams, judge_page_license


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
    answer = judge_page_license(doc, PageLicenseParams(**params))
    inner = answer.answer if isinstance(answer, Finding) else answer
    assert (inner.reason if isinstance(inner, Drop) else "") == reason
    if isinstance(answer, Finding):
        assert answer.summary == expression


def test_what_is_no_identifier() -> None:
    with pytest.raises(ValueError, match=r"deny: 'CC BY' given, an identifier such as CC-BY-4.0 is allowed"):
        PageLicenseParams(deny=("CC BY",))
