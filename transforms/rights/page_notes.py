"""What is noted of a page's own words about its use, while its HTML and HTTP header are at hand."""

from refinery.transforms.core.stage import Note

LICENSE = Note(
    "license",
    str,
    "SPDX expression of the licence that the page declares for itself",
    column=True,
    carried=True,
    category=True,
)
LICENSE_FROM = Note(
    "license_from", str, "where it was found: meta, link, json-ld, rel, or footer", column=True, carried=True
)
TDM_RESERVATION = Note("tdm_reservation", int, "TDM Reservation Protocol: 1 reserved, 0 not", carried=True)
NO_AI = Note("no_ai", str, "how the page says that no model may be trained on it: noai or train-ai=n", carried=True)

PAGE_NOTES = (LICENSE, LICENSE_FROM, TDM_RESERVATION, NO_AI)
