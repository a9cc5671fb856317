"""What a page says about its own use, recorded while its HTML and HTTP header are available."""

import re
from collections.abc import Mapping
from typing import Any

from refinery.transforms.core.document import Scalar
from refinery.transforms.core.stage import Note

LICENSE = Note(
    "license",
    str,
    "SPDX expression of the licence that the page declares for itself",
    column=True,
    carried=True,
    category=True,
    given=True,
)
LICENSE_FROM = Note(
    "license_from",
    str,
    "where it was found: meta, link, json-ld, rel, footer, or the record's field",
    column=True,
    carried=True,
)
TDM_RESERVATION = Note("tdm_reservation", int, "TDM Reservation Protocol: 1 reserved, 0 not", carried=True)
NO_AI = Note("no_ai", str, "how the page says that no model may be trained on it: noai or train-ai=n", carried=True)

HEADER_NOTES = (TDM_RESERVATION, NO_AI)
PAGE_NOTES = (LICENSE, LICENSE_FROM)


def reservation_of(value: Any) -> int | None:
    """1 for what reserves rights, 0 for what does not, None for what says neither. Pages have it as text."""
    if isinstance(value, bool):
        return int(value)
    text = str(value).strip() if isinstance(value, (int, str)) else ""
    return int(text) if text in ("0", "1") else None


def header_notes(headers: Mapping[str, str]) -> dict[str, Scalar]:
    """Notes for the fields of an HTTP header, names in small letters: `tdm-reservation` (TDMRep), `x-robots-tag: noai`,
    `content-usage: train-ai=n` (IETF, draft-ietf-aipref-attach) and `content-signal: ai-train=no`."""
    notes: dict[str, Scalar] = {}
    said = map(reservation_of, headers.get("tdm-reservation", "").split(","))  # repeated fields are one list
    if reserved := [each for each in said if each is not None]:
        notes[TDM_RESERVATION.name] = max(reserved)
    usage = f"{headers.get('content-usage', '')},{headers.get('content-signal', '')}".lower()
    if set(re.split(r"[\s,;]+", usage)) & {"train-ai=n", "train-genai=n", "ai-train=no"}:
        notes[NO_AI.name] = "train-ai=n"
    if says_no_ai(headers.get("x-robots-tag", "")):
        notes[NO_AI.name] = "noai"
    return notes


def says_no_ai(directives: str) -> bool:
    """Whether directives for robots, of a page or its header, have "noai" among them."""
    return "noai" in re.split(r"[\s,:;]+", directives.lower())
