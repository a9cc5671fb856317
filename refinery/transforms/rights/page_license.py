"""The rule about licences of pages: which ones are kept, by what `extract` noted of them.

In phase 3, so another rule needs no new extraction. The note is there whether this stage is on or not.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, Self

from pydantic import model_validator

from refinery.transforms.core.answers import Answer
from refinery.transforms.core.document import Document, Drop
from refinery.transforms.core.params import Params
from refinery.transforms.core.read_table import read_column
from refinery.transforms.core.stage import Note, Reason, Stage
from refinery.transforms.core.wording import given
from refinery.transforms.extract.page_rights.page_notes import LICENSE

IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*")
CLASS = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
MAX_DETAIL = 200
LICENSE_CLASS = Note(
    "license_class", str, "class of the page's licence in the recipe's table", column=True, category=True
)


class PageLicenseParams(Params):
    """Under which licences pages are kept. An identifier without a version stands for all versions and ports: CC-BY for
    CC-BY-4.0 and CC-BY-3.0-DE, not for CC-BY-NC-4.0."""

    allow: tuple[str, ...] = ()
    """SPDX identifiers or classes to keep; if a page has several, each must be allowed; empty: all except
    `deny`"""
    deny: tuple[str, ...] = ()
    """identifiers or classes to drop, even if `allow` names them"""
    classes: str = ""
    """a CSV or TSV file, local, `gs://` or `s3://`, that assigns licences to classes: a header `license,class`, then
    one identifier a line; `allow` and `deny` may name the classes, and the column `license_class` holds them"""
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


@dataclass(frozen=True)
class LicenseRule:
    """The lists of a recipe, where a class stands for the identifiers that have it. classes: identifier in small
    letters -> class."""

    classes: Mapping[str, str]
    allow: frozenset[str]
    deny: frozenset[str]

    def class_of(self, identifier: str) -> str:
        """That of the entry which says most of the identifier; "" where none does."""
        known = [entry for entry in self.classes if covers(entry, identifier)]
        return self.classes[max(known, key=len)] if known else ""

    def among(self, identifier: str, names: frozenset[str]) -> bool:
        """Whether a list names the identifier, or its class."""
        return self.class_of(identifier) in names or any(covers(name, identifier) for name in names)


def prepare_rule(params: PageLicenseParams) -> LicenseRule:
    """The rule, with its table. Raises ValueError, one line, for a table that cannot be one."""
    classes: dict[str, str] = {}
    for where, name, value in read_column(params.classes, "license", "class") if params.classes else ():
        if not IDENTIFIER.fullmatch(name) or name.lower() in classes:
            raise ValueError(f"classes: {where}: {given(name)} given, an identifier that no line before has is needed")
        if not CLASS.fullmatch(value):
            raise ValueError(f"classes: {where}: {given(value)} given, small letters, digits, - and _ are allowed")
        classes[name.lower()] = value
    known = set(classes.values())
    for field in ("allow", "deny"):
        for name in getattr(params, field):
            if classes and name not in known and name == name.lower():
                told = ", ".join(sorted(known))
                raise ValueError(f"{field}: {name!r} given, a class of the table ({told}) or an identifier is allowed")
    return LicenseRule(classes, frozenset(params.allow), frozenset(params.deny))


def class_files(params: PageLicenseParams) -> tuple[str, ...]:
    """The table: its content decides the result."""
    return (params.classes,) if params.classes else ()


def judge_page_license(doc: Document, rule: LicenseRule, params: PageLicenseParams) -> Document | Drop | Answer:
    """`doc`, with the classes of its licences where there is a table, or Drop. Drops: license-undeclared,
    license-denied, license-not-allowed."""
    expression = str(doc.meta.get(LICENSE.name) or "")
    if not expression:
        return Drop("license-undeclared") if params.undeclared == "drop" else doc
    parts = expression.split(" AND ")
    if any(rule.among(part, rule.deny) for part in parts):
        return Answer(Drop("license-denied"), (), expression[:MAX_DETAIL])
    if rule.allow and not all(rule.among(part, rule.allow) for part in parts):
        return Answer(Drop("license-not-allowed"), (), expression[:MAX_DETAIL])
    if not rule.classes:
        return doc
    found = sorted({rule.class_of(part) for part in parts} - {""})
    return replace(doc, meta={**doc.meta, LICENSE_CLASS.name: " AND ".join(found)})


def asked_notes(params: PageLicenseParams) -> tuple[Note, ...]:
    """What a table notes."""
    return (LICENSE_CLASS,) if params.classes else ()


PAGE_LICENSE: Stage[PageLicenseParams] = Stage(
    name="page-license",
    version=1,
    summary="Keep pages by the licence that they declare, such as a Creative Commons licence.",
    params=PageLicenseParams,
    judge=judge_page_license,
    prepare=prepare_rule,
    files=class_files,
    asked_notes=asked_notes,
    concerns=("rights",),
    reasons=(
        Reason("license-undeclared", "no licence is declared, with `undeclared: drop`", "set `undeclared: keep`"),
        Reason("license-denied", "the licence that the page declares is in `deny`", "take it out of `deny`"),
        Reason("license-not-allowed", "the licence that the page declares is not in `allow`", "name it in `allow`"),
    ),
    on=False,
)
