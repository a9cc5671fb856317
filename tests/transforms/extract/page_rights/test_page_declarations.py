"""What pages declare of their use: licences, reservations, "noai"."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.core.document import Document, RawDocument
from refinery.transforms.extract.extract import ExtractParams, extract_document
from refinery.transforms.extract.page_rights.license_ids import license_of_address, license_of_text
from refinery.transforms.extract.page_rights.page_declarations import page_declarations
from refinery.transforms.extract.page_rights.page_notes import header_notes
from tests.transforms.rights.rights_files import PAGES, pages

CC = "https://creativecommons.org"


@pytest.mark.parametrize(("page", "notes"), PAGES)
def test_declarations(page: str, notes: dict[str, Any]) -> None:
    assert page_declarations(page.encode()) == notes


@pytest.mark.parametrize(
    ("address", "license_"),
    [
        (f"{CC}/licenses/by/4.0/", "CC-BY-4.0"),
        (f"{CC}/licenses/by/4.0/deed.de", "CC-BY-4.0"),
        (f"{CC}/licenses/by/4.0/de/", "CC-BY-4.0"),  # there are no ports of 4.0
        ("http://www.creativecommons.org/licenses/by-nc-sa/2.5/it/legalcode", "CC-BY-NC-SA-2.5-IT"),
        (f"{CC}/licenses/by-sa/3.0/igo/", "CC-BY-SA-3.0-IGO"),
        (f"{CC}/licenses/by-sa/3.0/deed.en", "CC-BY-SA-3.0"),
        (f"{CC}/licenses/by-nd-nc/1.0/", "CC-BY-NC-ND-1.0"),
        (f"{CC}/licenses/by/", "CC-BY"),
        (f"{CC}/publicdomain/zero/1.0/", "CC0-1.0"),
        (f"{CC}/publicdomain/mark/1.0/", "CC-PDM-1.0"),
        (f"{CC}/licenses/publicdomain/", "CC-PDDC"),
        (f"https://web.archive.org/web/2016/{CC}/licenses/by-sa/3.0/de/", "CC-BY-SA-3.0-DE"),
        (f"{CC}/about/", ""),
        (f"{CC}/licenses/", ""),
        (f"{CC}/licenses/by-xx/4.0", ""),
        (f"{CC}/licenses/bypass/4.0", ""),
        ("https://www.gnu.org/licenses/fdl-1.3.html", "GFDL-1.3"),
        ("https://www.gnu.org/copyleft/fdl.html", "GFDL"),
        ("https://opensource.org/licenses/MIT", "MIT"),
        ("http://www.nationalarchives.gov.uk/doc/open-government-licence/version/2/", "OGL-UK-2.0"),
        ("http://www.nationalarchives.gov.uk/doc/open-government-licence/", "OGL-UK-3.0"),
        ("https://a.example/by/4.0/", ""),
    ],
)
def test_addresses_of_licences(address: str, license_: str) -> None:
    assert license_of_address(address) == license_


@pytest.mark.parametrize(
    ("text", "license_"),
    [
        ("CC BY-SA 4.0", "CC-BY-SA-4.0"),
        ("cc-by-nc-nd-3.0", "CC-BY-NC-ND-3.0"),
        ("© 2020 A. Licensed under CC BY.", "CC-BY"),
        ("Creative Commons Attribution-NonCommercial-ShareAlike 4.0 International", "CC-BY-NC-SA-4.0"),
        ("Creative Commons Attribution 2.5", "CC-BY-2.5"),
        ("CC0", "CC0-1.0"),
        (f"See {CC}/licenses/by/3.0/us/ for this", "CC-BY-3.0-US"),
        ("CC BY 4.0 or CC BY-NC 4.0", ""),
        ("All rights reserved", ""),
        ("cc: bye", ""),
    ],
)
def test_names_of_licences(text: str, license_: str) -> None:
    assert license_of_text(text) == license_


@pytest.mark.parametrize(
    ("headers", "notes"),
    [
        ({}, {}),
        ({"tdm-reservation": "1"}, {"tdm_reservation": 1}),
        ({"tdm-reservation": " 0 "}, {"tdm_reservation": 0}),
        ({"tdm-reservation": "yes"}, {}),
        ({"x-robots-tag": "noindex, noai"}, {"no_ai": "noai"}),
        ({"x-robots-tag": "otherbot: noai, noimageai"}, {"no_ai": "noai"}),
        ({"x-robots-tag": "noimageai"}, {}),
        ({"content-usage": "search=y, train-ai=n"}, {"no_ai": "train-ai=n"}),
        ({"content-signal": "ai-train=no"}, {"no_ai": "train-ai=n"}),
        ({"content-signal": "ai-train=yes"}, {}),
    ],
)
def test_headers(headers: dict[str, str], notes: dict[str, Any]) -> None:
    assert header_notes(headers) == notes


def test_extraction_notes_it_and_the_page_supersedes_the_header() -> None:
    notes = []
    for raw in pages():
        doc = extract_document(raw, ExtractParams())
        notes.append(dict(doc.meta) if isinstance(doc, Document) else {})
    assert [found for found, (page, _) in zip(notes, PAGES, strict=False)] == [found for _, found in PAGES]
    assert [found["license"] for found in notes[len(PAGES) :]] == [
        "CC-BY-4.0",
        "CC-BY-NC-3.0-US",
        "LicenseRef-other",
        "Apache-2.0",
        "",
    ]
    assert notes[len(PAGES)]["license_from"] == "field"


@pytest.mark.parametrize("engine", ["blocks", "trafilatura"])
@pytest.mark.parametrize("coding", ["utf-8", "utf-8-sig", "utf-16", "cp1252", ""])
def test_what_a_page_declares_does_not_depend_on_its_encoding(coding: str, engine: str) -> None:
    page = f'<html><head><link rel=license href="{CC}/licenses/by/4.0/"></head><body><p>{"Ein Satz für alle. " * 9}</p>'
    content = page.encode(coding) if coding else f"{page}\ud800"
    raw = RawDocument(content, True, "cp1252" if coding == "cp1252" else "", "https://a.example/", "s", "page@0", 0)
    doc = extract_document(raw, ExtractParams(engine=engine))  # type: ignore[arg-type]
    assert isinstance(doc, Document) and "Satz für" in doc.text
    assert doc.meta == {"license": "CC-BY-4.0", "license_from": "link"}


PIECES = [
    "<a rel=license href=",
    "creativecommons.org/licenses/by/4.0",
    "<!--",
    "-->",
    "<script>",
    "</script>",
    "<",
    ">",
]
PIECES += ["<div class=footer>", '"', "<head>", "</head>", "<meta name=dc.rights content=", '{"license": [', "license"]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.text())
def test_any_page_is_read(page: str) -> None:
    page_declarations(page.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize(
    "piece",
    ["<a rel=license ", "<!-- license ", "<script license", "<div ", "license ", "creativecommons.org/", "a" * 9 + "="],
)
def test_no_page_takes_quadratic_time(piece: str) -> None:
    """Two megabytes of what begins and does not end; a quadratic search would take hours."""
    page_declarations(b"<head>" + piece.encode() * (2_000_000 // len(piece)))
