"""What a record is by its name: a page, a copy of a page, or a crawler's note about itself."""

from pathlib import Path

import pytest

from refinery.transforms.core.answers import Skipped
from refinery.transforms.core.document import RawDocument
from tests.transforms.read_fixtures import HTML, arc_record, http, read, summary, warc_record

PAGE = "https://spam.example/x?y=z"
LOG = b"2026-05-01 10:00:00,123 - crawler - INFO - Fetching 'http://a.example/'.\n" * 9


def resource(name: str, kind: str = "text/plain", body: bytes = LOG, record: str = "resource") -> bytes:
    return warc_record(body, record, name, [f"Content-Type: {kind}"])


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (f"urn:text:{PAGE}", "text/plain"),
        (f"urn:textFinal:{PAGE}", "text/plain"),
        (f"<urn:text:{PAGE}>", "text/plain"),
        (f"urn:view:{PAGE}", "text/html"),
        (f"urn:fullPage:{PAGE}", "text/html"),
        ("urn:X-wpull:snapshot?url=https%3A%2F%2Fspam.example%2Fx%3Fy%3Dz", "text/html"),
        (f"urn:x-somebody:dom:{PAGE}", "text/html"),
    ],
)
def test_a_copy_of_a_page_is_a_document_under_the_pages_address(tmp_path: Path, name: str, kind: str) -> None:
    body = HTML if kind == "text/html" else b"Otters keep their favourite stone in a pouch."
    (doc,) = read(tmp_path / "crawl.warc", resource(name, kind, body))
    assert isinstance(doc, RawDocument)
    assert (doc.url, doc.content, doc.is_html) == (PAGE, body, kind == "text/html")


@pytest.mark.parametrize("record", ["resource", "response", "conversion"])
@pytest.mark.parametrize(
    "name",
    [
        "urn:X-wpull:log",
        "URN:x-wpull:LOG",
        "<urn:X-wpull:log>",
        "urn:X-crocoite:log",
        "urn:x-heritrix:crawl-report",
        "urn:heritrix:report:hosts",
        "urn:qwarc:log",
        "urn:crawl-log",
        "urn:log:2026",
        "metadata://gnu.org/software/wget/warc/wget.log",
        "metadata://netarkivet.dk/crawl/reports/crawl-report.txt?heritrixVersion=3.3.0&harvestid=1&jobid=2",
        "metadata://netarkivet.dk/crawl/logs/crawl.log?heritrixVersion=1.14.4&harvestid=2&jobid=4",
        "filedesc://3-metadata-1.arc",
        "dns:a.example",
        "whois:whois.iana.org/org",
        "whois://whois.example/a.example",
        f"urn:pageinfo:{PAGE}",
        f"urn:embeds:{PAGE}",
    ],
)
def test_a_crawlers_own_records_are_no_content(tmp_path: Path, name: str, record: str) -> None:
    outcomes = read(tmp_path / "crawl.warc", resource(name, record=record) + resource("http://a.example/"))
    assert summary(outcomes) == ["record-type", "text"]


@pytest.mark.parametrize(
    "name",
    [
        *("crawl.log", "progress-statistics.log", "runtime-errors.log", "uri-errors.log", "nonfatal-errors.log"),
        *("alerts.log", "job.log", "crawl.log.gz", "crawl.log.20260501", "local-errors.log"),
        *("crawl-report.txt", "hosts-report.txt", "mimetype-report.txt", "responsecode-report.txt"),
        *("seeds-report.txt", "processors-report.txt", "source-report.txt", "frontier-summary-report.txt"),
        *("crawl-manifest.txt", "crawler-beans.cxml", "order.xml"),
    ],
)
def test_heritrix_reports_are_no_content_where_a_crawler_filed_them(tmp_path: Path, name: str) -> None:
    for folder in ("http://crawler.example/logs/", "file:///crawls/1/reports/"):
        outcomes = read(tmp_path / "crawl.warc", resource(folder + name) + resource(folder + name + "?x=y"))
        assert summary(outcomes) == ["record-type"] * 2
    served = warc_record(http(LOG, ["Content-Type: text/plain"]), url=f"http://a.example/{name}")
    assert summary(read(tmp_path / "crawl.warc", served)) == ["text"]  # what a server answers is a page
    assert summary(read(tmp_path / "crawl.warc", resource(f"http://a.example/my-{name}"))) == ["text"]


@pytest.mark.parametrize(
    "name", ["urn:isbn:0262510871", "urn:uuid:1", "urn:nbn:de:1", "ftp://a.example/x", "file:///x.txt"]
)
def test_other_names_are_pages(tmp_path: Path, name: str) -> None:
    (doc,) = read(tmp_path / "crawl.warc", resource(name))
    assert isinstance(doc, RawDocument)
    assert doc.url == name


def test_names_in_arc_files(tmp_path: Path) -> None:
    own = arc_record(LOG, "metadata://netarkivet.dk/crawl/logs/crawl.log", "text/plain")
    (first, second) = read(tmp_path / "crawl.arc", own + arc_record(HTML, "http://a.example/"), "arc")
    assert isinstance(first, Skipped)
    assert summary([first, second]) == ["record-type", "html"]
