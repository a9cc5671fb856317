"""The rule about licences of pages: which ones are kept, by what `extract` noted of them.

In phase 3, so that another rule needs no new extraction. The note is there whether this stage is on or not.
"""

import re
from typing import Literal, Self

from pydantic import model_validator

from refinery.transforms.core.document import Document, Drop, Finding
from refinery.transforms.core.params import Params
from refinery.transforms.core.stage import Reason, Stage
from refinery.transforms.page_rights.page_notes import LICENSE

IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*")
MAX_DETAIL = 200


class PageLicenseParams(Params):
    """Under which licences pages are kept. An identifier without a version stands for all versions and ports: CC-BY for
    CC-BY-4.0 and CC-BY-3.0-DE, not for CC-BY-NC-4.0."""

    allow: tuple[str, ...] = ()
    """identifiers of SPDX that are kept; of a page with several, each has to be allowed; empty: all but `deny`"""
    deny: tuple[str, ...] = ()
    """identifiers that are dropped, also where `allow` has them"""
    undeclared: Literal["keep", "drop"] = "keep"
    """pages that declare no licence, and sources that hold no pages"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        for field in ("allow", "deny"):
            for name in getattr(self, field):
                if not IDENTIFIER.fullmatch(name):
                    raise ValueError(f"{field}: {name!r} given, an identifier such as CC-BY-4.0 is allowed")
        return self


def covers(entry: str, identifier: str) -> bool:
    """Whether an entry of a list stands for an identifier.

    >>> covers("CC-BY", "CC-BY-4.0"), covers("CC-BY", "CC-BY-SA-4.0"), covers("CC-BY-3.0", "CC-BY-3.0-DE")
    (True, False, True)
    """
    entry, identifier = entry.lower(), identifier.lower()
    rest = identifier.removeprefix(entry)
    if rest == identifier and entry != identifier:
        return False
    return not rest or (rest[0] == "-" and (rest[1:2].isdigit() or entry[-1:].isdigit()))


def judge_page_license(doc: Document, params: PageLicenseParams) -> Document | Drop | Finding:
    """`doc`, or Drop. Drops: license-undeclared, license-denied, license-not-allowed."""
    expression = str(doc.meta.get(LICENSE.name) or "")
    if not expression:
        return Drop("license-undeclared") if params.undeclared == "drop" else doc
    parts = expression.split(" AND ")
    if any(covers(entry, part) for entry in params.deny for part in parts):
        return Finding(Drop("license-denied"), (), expression[:MAX_DETAIL])
    if params.allow and not all(any(covers(entry, part) for entry in params.allow) for part in parts):
        return Finding(Drop("license-not-allowed"), (), expression[:MAX_DETAIL])
    return doc


PAGE_LICENSE: Stage[PageLicenseParams] = Stage(
    name="page-license",
    version=1,
    summary="Keep pages by the licence that they declare for themselves, such as those of Creative Commons.",
    params=PageLicenseParams,
    judge=judge_page_license,
    reasons=(
        Reason("license-undeclared", "no licence is declared, with `undeclared: drop`", "set `undeclared: keep`"),
        Reason("license-denied", "the licence that the page declares is in `deny`", "take it out of `deny`"),
        Reason("license-not-allowed", "the licence that the page declares is not in `allow`", "name it in `allow`"),
    ),
    on=False,
)
