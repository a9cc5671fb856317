"""The stage of licences: files under licences that a recipe allows, with what was found noted."""

from dataclasses import replace
from typing import Literal

from refinery.transforms.code.licences.license_files import class_of_file
from refinery.transforms.code.licences.license_rules import DENIED, KERNEL, WEAK
from refinery.transforms.code.licences.licenses import licence_of
from refinery.transforms.core.document import Document, Drop
from refinery.transforms.core.params import Params
from refinery.transforms.core.stage import Note, Reason, Stage


class LicenseParams(Params):
    """Under which licences files are kept."""

    weak_copyleft: bool = True
    """keep LGPL, MPL, EPL, CDDL, and GPL with an exception for users of the code"""
    kernel: Literal["keep", "drop"] = "keep"
    """GPL-2.0 with the Linux syscall note: kept files have `license_class` gpl-2.0-kernel, for a mix to choose by"""
    copies: Literal["drop", "keep"] = "drop"
    """copies and near copies of what is dropped for its licence, under whatever licence they are, since whoever copies
    a file cannot change its licence; not of files for which no licence is stated"""
    also: tuple[str, ...] = ()
    """further SPDX expressions that are allowed literally, such as GPL-3.0-only"""


def judge_license(doc: Document, params: LicenseParams) -> Document | Drop:
    """`doc` with its licence noted, or Drop. The note `repo_license` is the expression of the nearest licence file."""
    nearest = str(doc.meta.get("repo_license") or "")
    licence = licence_of(doc.text, nearest)
    if not licence.expression:
        return Drop("license-unrecognised" if licence.found else "license-unknown")
    found = class_of_file(licence, nearest)
    if found == DENIED and licence.expression not in params.also:
        return Drop("license-not-allowed")
    if found == WEAK and not params.weak_copyleft:
        return Drop("license-weak-copyleft")
    if found == KERNEL and params.kernel == "drop":
        return Drop("license-kernel")
    notes = {"license": licence.expression, "license_class": found, "license_from": licence.found}
    return replace(doc, meta=dict(doc.meta) | notes)


def withheld(params: LicenseParams) -> frozenset[str]:
    """The reasons for which copies are dropped, too."""
    return frozenset() if params.copies == "keep" else DENIALS


DENIALS = frozenset(("license-unrecognised", "license-not-allowed", "license-weak-copyleft", "license-kernel"))

LICENSE = Stage(
    name="license",
    version=3,
    summary="Keep source files under licences that are allowed, by SPDX tag, header, or nearest licence file.",
    concerns=("rights",),
    params=LicenseParams,
    judge=judge_license,
    withholds=withheld,
    notes=(
        Note("license", str, "SPDX expression of the file's licence", column=True, carried=True),
        Note(
            "license_class",
            str,
            "permissive, weak-copyleft, gpl-2.0-kernel or denied",
            column=True,
            carried=True,
            category=True,
        ),
        Note("license_from", str, "where it was found: tag, header or file", column=True, carried=True),
    ),
    reasons=(
        Reason(
            "license-unknown", "neither tag nor header nor licence file names a licence", "nothing: unknown is not free"
        ),
        Reason(
            "license-unrecognised",
            "the file states terms of its own that are not known; the licence of its repository says nothing of these",
            "nothing: unknown is not free",
        ),
        Reason(
            "license-not-allowed", "the licence is not on the list of allowed ones", "name it in `also`, if you may"
        ),
        Reason("license-weak-copyleft", "weak copyleft, with `weak_copyleft` off", "switch `weak_copyleft` on"),
        Reason("license-kernel", "GPL-2.0 with the Linux syscall note, with `kernel: drop`", "set `kernel: keep`"),
    ),
)
