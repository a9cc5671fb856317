"""Rows of opt-outs, and pages that declare what they may be used for."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from refinery.transforms.core.document import Document, RawDocument, document_id
from refinery.transforms.rights.build_table import Built, build_table
from refinery.transforms.rights.rule_rows import read_rows
from refinery.transforms.rights.rule_table import ALIGN, MAGIC


def row(host: str, kind: str, at: str, body: str | None = None, status: int | None = 200) -> dict[str, Any]:
    return {"host": host, "kind": kind, "fetched_at": at, "status": status, "body": body}


ROWS = (
    row("https://changed.example/robots.txt", "", "2026-01-05", "User-agent: GPTBot\nDisallow: /private\n"),
    row("https://changed.example/robots.txt", "", "2026-03-05T10:00:00Z", "User-agent: GPTBot\nDisallow: /\n"),
    row("every.example", "robots.txt", "2026-01-01", "User-agent: *\nDisallow: /\n"),
    row("signal.example:8080", "robots.txt", "20260101", "User-agent: *\nContent-Signal: search=yes, ai-train=no\n"),
    row("free.example", "robots.txt", "2026-01-01", "User-agent: *\nAllow: /\n"),
    row("down.example", "robots.txt", "2026-01-01", None, 503),
    row("was-up.example", "robots.txt", "2026-01-01", "User-agent: *\nDisallow: /closed\n"),
    row("was-up.example", "robots.txt", "2026-02-01", None, 0),
    row("tdm.example", "tdmrep.json", "2026-01-01", '[{"location": "/x", "tdm-reservation": 1}]'),
    row("ai.example", "ai.txt", "2026-01-01", "User-Agent: *\nDisallow: *.html\n"),
    row("listed.example", "host-list", "2026-01-01"),
    row("listed.example", "host-list", "2026-04-01", status=410),
)

# address -> reason as of 2026-03-31, "" for none; with 2026-02-01 and 2026-04-30 where that differs
CASES: tuple[tuple[str, str, Mapping[str, str]], ...] = (
    ("http://changed.example/a", "opt-out-robots", {"2026-02-01": ""}),
    ("https://changed.example/private?x", "opt-out-robots", {"2026-01-04": ""}),
    ("https://www.changed.example/", "", {}),
    ("https://every.example/", "opt-out-robots", {}),
    ("https://signal.example:8080/a", "opt-out-robots", {}),
    ("https://signal.example/a", "", {}),
    ("https://free.example/a", "", {}),
    ("https://down.example/a", "opt-out-robots", {"2025-12-31": ""}),
    ("https://was-up.example/closed/a", "opt-out-robots", {}),
    ("https://was-up.example/open", "", {}),
    ("https://tdm.example/xyz", "opt-out-tdm", {}),
    ("https://tdm.example/y", "", {}),
    ("https://ai.example/a.php?b=1", "opt-out-ai-txt", {}),
    ("https://deep.listed.example/a", "opt-out-host", {"2026-04-30": "", "2025-12-31": ""}),
    ("https://unlisted.example/a", "", {}),
    ("", "", {}),
)


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]] = ROWS) -> str:
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    return str(path)


def write_table(folder: Path, rows: Iterable[Mapping[str, Any]] = ROWS) -> str:
    """The path of a table of these rows."""
    make_table(folder, rows)
    return str(folder / "opt-outs.table")


def make_table(folder: Path, rows: Iterable[Mapping[str, Any]]) -> Built:
    folder.mkdir(exist_ok=True)
    (folder / "opt-outs.table").unlink(missing_ok=True)
    return build_table(read_rows([write_rows(folder / "rows.jsonl", rows)]), folder / "opt-outs.table")


def as_version_1(table: Path) -> Path:
    """Rewrite a table as the first version was: without checksums of blocks and of the header."""
    data = table.read_bytes()
    length = int.from_bytes(data[len(MAGIC) : len(MAGIC) + 8], "little")
    header = json.loads(data[len(MAGIC) + 8 : len(MAGIC) + 8 + length])
    end = header["sections"].pop("sums")[0]
    del header["sums_crc32c"], header["blocks"]
    old = json.dumps({**header, "version": 1}, sort_keys=True).encode()
    head = (MAGIC + len(old).to_bytes(8, "little") + old).ljust(ALIGN, b"\0")
    table.write_bytes(head + data[ALIGN:end])
    return table


def documents() -> Iterator[Document]:
    """One for each address of CASES, and some with words of their own."""
    notes = ({}, {"tdm_reservation": 1}, {"tdm_reservation": 0}, {"no_ai": "noai"}, {"license": "CC-BY-3.0-DE"})
    for number, (url, _, _) in enumerate(CASES):
        text = f"Page {number} of some words."
        yield Document(document_id(text), text, url, "s", f"f@{number}", number, notes[0])
        yield Document(document_id(text), text, url, "s", f"f@{number}", number, notes[1 + number % 4])


CC = "https://creativecommons.org/licenses"
NO_AI_TAG = '<meta name="robots" content="noai">'
PAGES: tuple[tuple[str, Mapping[str, Any]], ...] = (
    (f'<head><link rel="license" href="{CC}/by/4.0/"></head><p>text', {"license": "CC-BY-4.0", "license_from": "link"}),
    (
        '<head><link rel=copyright href="//creativecommons.org/licenses/by-sa/3.0/"></head><p>text',
        {"license": "CC-BY-SA-3.0", "license_from": "link"},
    ),
    ('<head><link rel="license" href="/terms"></head><p>text', {"license": "LicenseRef-other", "license_from": "link"}),
    (
        '<head><meta name="DC.rights" content="CC BY-NC 4.0"></head><p>text',
        {"license": "CC-BY-NC-4.0", "license_from": "meta"},
    ),
    ('<head><meta name="copyright" content="All rights reserved"></head><p>text', {}),
    (
        f'<head><script type="application/ld+json">{{"@graph":[{{"@type":"Article","license":"{CC}/by/2.0/uk/"}},'
        f'{{"@type":"ImageObject","license":"{CC}/by-nc/2.0/"}}]}}</script></head><p>text',
        {"license": "CC-BY-2.0-UK", "license_from": "json-ld"},
    ),
    (
        f'<body><p>text<p>under <a rel="license" href="{CC}/by-sa/4.0/deed.de">CC</a>',
        {"license": "CC-BY-SA-4.0", "license_from": "rel"},
    ),
    (
        f'<body><p>text<figure><img src=a><figcaption><a rel=license href="{CC}/by/2.0/">CC</a></figcaption></figure>',
        {},
    ),
    (f'<body><p>text<div class="wp-caption"><p><a rel="license" href="{CC}/by/2.0/">CC</a></div>', {}),
    (f'<body><p>text under <a href="{CC}/by/4.0/">CC BY</a>', {}),
    (
        f'<body><p>text<div id="site-footer"><p>under <a href="{CC}/by/4.0/">CC BY</a></div>',
        {"license": "CC-BY-4.0", "license_from": "footer"},
    ),
    (f'<body><p>text<footer><a href="{CC}/by/4.0/">1</a><a href="{CC}/by-nc/2.0/">2</a></footer>', {}),
    (
        f'<body><p>text<!-- <a rel="license" href="{CC}/by/4.0/"> -->'
        f'<script>var a = \'<a rel="license" href="{CC}/by/4.0/">\'</script>',
        {},
    ),
    (f'<body><ol class="comments"><li><a rel="license" href="{CC}/by/4.0/">CC</a></ol>text', {}),
    (
        f'<body>text<footer><a rel="license" href="{CC}/by-sa/3.0/">1</a> <a rel="license" '
        'href="https://creativecommons.org/publicdomain/zero/1.0/">2</a></footer>',
        {"license": "CC-BY-SA-3.0 AND CC0-1.0", "license_from": "footer"},
    ),
    ('<head><meta name="tdm-reservation" content="1"></head>text', {"tdm_reservation": 1}),
    ('<head><meta name="robots" content="noimageai, noai"></head>text', {"no_ai": "noai"}),
    ('<head><meta name="robots" content="noimageai"></head>text', {}),
    ("<p>the MIT license and creativecommons, said in words", {}),
    ("", {}),
    (f'<head><script>w("<body>")</script><!-- <body> -->{NO_AI_TAG}</head><body>text', {"no_ai": "noai"}),
    ('<head><!-- <body> --><meta name="tdm-reservation" content="1"></head><p>text', {"tdm_reservation": 1}),
    (f"<head></head><BODY>{NO_AI_TAG}<!-- <body> -->text", {}),
)


def pages() -> Iterator[RawDocument]:
    for number, (page, _) in enumerate(PAGES):
        yield RawDocument(page.encode(), True, "utf-8", "https://a.example/", "s", f"page@{number}", number)
    for given in ("cc-by-4.0", "https://creativecommons.org/licenses/by-nc/3.0/us/", "odd words", "Apache-2.0", " "):
        yield RawDocument("Some text.", False, "", "", "s", "row@0", 0, {"license": given})
