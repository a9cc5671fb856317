"""Pages with their main text, as evaluation sets give them.

Two formats, told apart by their fields:

- JSON lines with `html` in each row: `main_content` is the whole main text, `with` and `without` are snippets of it and
  of what is not (WCXB's; `page_type` is reported on);
- JSON lines without: `gold_text`, or `must_contain` and `must_not_contain`; the pages are records of a WARC file whose
  header X-Eval-Id names the row's `id`.
"""

import gzip
import io
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any
from urllib.parse import urlsplit

import zstandard
from fastwarc.warc import ArchiveIterator, WarcRecordType

from refinery.transforms.extract.charset import decode_page
from refinery.transforms.filter.url import registered_domain

EVAL_ID = "X-Eval-Id"


@dataclass(frozen=True)
class GoldPage:
    """A page and what is known of its main text.

    text: all of it, None where only snippets are known. kind: the page's type, or that of the set, for reports.
    domain: registered domain; pages of one domain are never both trained on and measured on.
    """

    name: str
    url: str
    html: str
    kind: str
    text: str | None
    wanted: tuple[str, ...]
    unwanted: tuple[str, ...]

    @property
    def domain(self) -> str:
        host = urlsplit(self.url).hostname or ""
        return registered_domain(host) or host or self.name


def read_gold(paths: Sequence[str]) -> list[GoldPage]:
    """The pages of all files (JSON lines and WARC, plain, .gz or .zst). Memory: all pages.

    Raises ValueError for a row of neither format, and for one whose page is in no file.
    """
    rows: list[dict[str, Any]] = []
    pages: dict[str, str] = {}
    for path in paths:
        if ".warc" in path:
            pages.update(_read_warc(path))
        else:
            rows.extend(_read_rows(path))
    return [_gold_page(row, pages) for row in rows]


def _gold_page(row: dict[str, Any], pages: dict[str, str]) -> GoldPage:
    name = str(row.get("id", ""))
    url = row.get("url") or ""
    if "html" in row:
        html, kind = row["html"], str(row.get("page_type", "page"))
        text, wanted, unwanted = row.get("main_content"), row.get("with"), row.get("without")
    elif name in pages:
        html, kind = pages[name], str(row.get("gold_type", "page"))
        text, wanted, unwanted = row.get("gold_text"), row.get("must_contain"), row.get("must_not_contain")
    else:
        raise ValueError(f"gold: the row {name!r} has no html, and no WARC file among those given has its page")
    if text is None and not wanted and not unwanted:
        raise ValueError(f"gold: the row {name!r} has no main text and no snippets")
    html = html.encode("utf-8", "ignore").decode()  # without lone surrogates
    return GoldPage(name, url, html, kind, text, tuple(wanted or ()), tuple(unwanted or ()))


def _read_rows(path: str) -> Iterator[dict[str, Any]]:
    with _open(path) as file:
        for number, line in enumerate(file, 1):
            try:
                row = json.loads(line)
            except ValueError:
                row = None
            if not isinstance(row, dict):
                raise ValueError(f"gold: {path}, line {number}: a JSON object is needed")
            yield row


def _read_warc(path: str) -> Iterator[tuple[str, str]]:
    with _open(path) as file:
        for record in ArchiveIterator(file, record_types=WarcRecordType.response, parse_http=True):
            if name := record.headers.get(EVAL_ID):
                yield name, decode_page(record.reader.read(), record.http_charset or "", True)


@contextmanager
def _open(path: str) -> Iterator[IO[bytes]]:
    with open(path, "rb") as raw:
        if path.endswith(".zst"):
            yield io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(raw))
        elif path.endswith(".gz"):
            with gzip.open(raw) as file:
                yield file  # type: ignore[misc]
        else:
            yield raw
