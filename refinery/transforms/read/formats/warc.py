"""Pages out of web archives. How records are found in the bytes: warc_records.py."""

import re
from collections.abc import Iterator, Mapping
from functools import partial

from refinery.transforms.core.address.page_address import page_address
from refinery.transforms.core.answers import NOT_SAMPLED, Damaged, Skipped
from refinery.transforms.core.document import RawDocument, Scalar
from refinery.transforms.core.safe_text import printable
from refinery.transforms.core.stage import Reason
from refinery.transforms.read.archives.http_body import NoPage
from refinery.transforms.read.archives.http_message import Payload, http_page, typed_page
from refinery.transforms.read.archives.warc_parts import BY_RECORD, part_of
from refinery.transforms.read.archives.warc_records import HASHED, NOWHERE, Damage, Record, read_records
from refinery.transforms.read.byte_source import ByteSource
from refinery.transforms.read.http.fields import content_type
from refinery.transforms.read.reader import COMPRESSION_LIBRARIES, Reader
from refinery.transforms.read.task import LimitParams, ReadTask

# Names that crawlers give to what is not a page. Schemes: look-ups of DNS and whois, ARC's own header, and "metadata",
# which wget and NetarchiveSuite use for logs, reports and settings (IIPC, harvest metadata guidelines).
_OWN_SCHEME = re.compile(r"(?:dns|whois|filedesc|metadata|warcinfo|youtube-dl):", re.IGNORECASE)
# URNs of no registered namespace: experimental ones ("X-", RFC 3406, section 3.1) such as wpull's and crocoite's logs,
# and those of qwarc, Browsertrix and pywb. With a page's address behind them they may name a copy of it.
_OWN_NAME = re.compile(
    r"urn:(?:x-|qwarc:|pageinfo:|embeds:|transclusions:|(?:crawl(?:er)?|heritrix|browsertrix|brozzler|warcprox|wpull)\b"
    r"|(?:logs?|reports?|crawl-?log)\b)",
    re.IGNORECASE,
)
_ABOUT_PAGE = re.compile(r"urn:(?:pageinfo|embeds|transclusions):", re.IGNORECASE)  # a crawler's data on its page
# Heritrix's logs and reports (its manual, "Analysis of Jobs"), where they were filed as resources; a server's answer of
# that name is a page like any other.
_REPORT = re.compile(
    r"/(?:crawl|progress-statistics|runtime-errors|local-errors|uri-errors|nonfatal-errors|alerts|heritrix(?:_out)?|job"
    r"|recover|scope|frontier\.recover)\.(?:log|out|gz)(?:[.-]?\d+)?(?:\.gz)?(?:[?#]|\Z)"
    r"|/(?:crawl|hosts|mimetype|processors|responsecode|seeds|source|frontier(?:-summary)?|threads|sourcetags"
    r"|archivefiles?|manifest)-report\.txt(?:\.gz)?(?:[?#]|\Z)"
    r"|/(?:crawl-manifest\.txt|crawler-beans\.cxml|order\.xml|harvestInfo\.xml)(?:[?#]|\Z)",
    re.IGNORECASE,
)
# 4.2 MB were extracted from 20.9 MB of .warc.gz, which hold four times as much (684 pages).
TEXT_SHARE = 0.05
NO_TEXT = "WAT: it holds links and headers, and no text; read the WARC or WET file of the same name"
REASONS = (
    Reason(
        "record-type",
        "not content: warcinfo, request, metadata, revisit, DNS, whois, a crawler's own logs, reports and notes",
        "nothing; often more than half of a crawl's records are of this kind",
    ),
    Reason("http-status", "not 200"),
    Reason(
        "content-type",
        "neither HTML nor plain text, by the declared type or by the first bytes",
        "nothing; images and PDF are not read",
    ),
    Reason(
        "content-encoding",
        "the coding has no decoder, there are more than three layers, or an undeclared coding is damaged",
    ),
)
_EMPTY_LINES = re.compile(rb"\A[\r\n]+(?=HTTP/)")  # to be ignored before a status line, as RFC 9112 (2.2) has it


def read_warc(task: ReadTask, source: ByteSource, limits: LimitParams) -> Iterator[RawDocument | Skipped | Damaged]:
    """Every record of the task's part of an archive, as a page, a reason why it is none, or damage; up to `task.cap`
    pages.

    origin and position use the record's byte offset in the file, or in the decompressed file if that is not
    compressed record by record. With `task.keep_truncated` the last record of a file that ends in its middle may be a
    page, too, with meta `truncated`; its damage follows. Memory: three times limits.max_decompressed_bytes at most.
    Raises PartsDoNotMeet, as warc_parts.py says.
    """
    part = (0, NOWHERE) if task.parts == 1 else part_of(task, source, limits)
    if part is None:
        return
    source.file.sum_from(part[0], min(part[1], task.size))
    taken = 0
    for record in read_records(source, limits.max_decompressed_bytes, task.format == "arc", *part):
        if taken == task.cap:
            return
        origin = task.origin(record.offset)
        if isinstance(record, Damage):
            if task.keep_truncated and record.begun and task.samples(origin):
                page = page_of(record.begun, limits) if is_content(record.begun) else None
                if isinstance(page, Payload):
                    yield document_of(record.begun, page, task, {"truncated": True})
            yield Damaged(record.error, origin, record.data, record.size)
            continue
        url = url_of(record)
        if not is_content(record):
            yield Skipped("record-type", origin, record.length, url)
        elif not task.samples(origin):
            yield Skipped(NOT_SAMPLED, origin, record.length, url)
        else:
            page = page_of(record, limits)
            if isinstance(page, Payload):
                taken += 1
                yield document_of(record, page, task, {})
            elif page.error:
                yield Damaged(page.error, origin, (record.block or b"")[:HASHED], record.length)
            else:
                yield Skipped(page.reason, origin, record.length, url)


def document_of(record: Record, page: Payload, task: ReadTask, notes: Mapping[str, Scalar]) -> RawDocument:
    """The page of a record, with the record's date and identity, what its header says, and `notes` as meta."""
    is_html = page.is_html if task.content == "auto" else task.content == "html"
    position, meta = task.position(record.offset), {**meta_of(record.headers), **page.notes, **notes}
    url = url_of(record)
    return RawDocument(page.body, is_html, page.charset, url, task.source, task.origin(record.offset), position, meta)


def url_of(record: Record) -> str:
    """The address that a record is about, "" if it names none: of a copy of a page, such as its text as a browser
    showed it (`urn:text:https://…`), the page's, so what is asked of a host holds for copies, too."""
    return page_address(name_of(record))


def name_of(record: Record) -> str:
    """What a record calls what it is about."""
    return printable(record.headers.get("warc-target-uri", "").removeprefix("<").removesuffix(">"))


def is_content(record: Record) -> bool:
    """Whether a record can hold a page: not what a crawler notes about itself, its requests and its name look-ups."""
    kind = record.headers.get("warc-type", "").lower()
    name = name_of(record)
    if kind not in ("response", "resource", "conversion") or _OWN_SCHEME.match(name):
        return False
    if _OWN_NAME.match(name):
        return page_address(name) != name and not _ABOUT_PAGE.match(name)
    return not (kind == "resource" and _REPORT.search(name))


def page_of(record: Record, limits: LimitParams) -> Payload | NoPage:
    """The page in a response, resource or conversion record."""
    if record.block is None:
        return NoPage("too-large")
    if not record.block:
        return NoPage("empty")
    headers = record.headers
    kind, charset = content_type(headers.get("content-type", ""))
    identified = headers.get("warc-identified-payload-type", "")
    if headers["warc-type"].lower() == "conversion":
        return typed_page(record.block, kind or "text/plain", charset or "utf-8", limits.max_record_bytes)
    is_http = kind == "application/http" and not record.is_arc
    response = _EMPTY_LINES.sub(b"", record.block, count=1)
    if is_http or (headers["warc-type"].lower() == "response" and response.startswith(b"HTTP/")):
        return http_page(response, identified, limits.max_record_bytes, limits.max_decompressed_bytes)
    return typed_page(record.block, identified.strip() or kind, charset, limits.max_record_bytes)


def meta_of(headers: Mapping[str, str]) -> dict[str, Scalar]:
    """Date and identity as the archive gives them."""
    names = (("date", "warc-date"), ("record_id", "warc-record-id"))
    return {key: printable(headers[name]) for key, name in names if headers.get(name)}


_declared = partial(
    Reader,
    version=1,
    summary="an archive record",
    offset="byte in the file; in the decompressed file if it is not compressed record by record",
    read=read_warc,
    enters=True,
    fields=("content", "keep_truncated"),
    reasons=REASONS,
    libraries=("brotli", *COMPRESSION_LIBRARIES),
)
WARC = _declared(
    name="warc",
    split=BY_RECORD,
    title="a WARC file",
    endings=(".warc",),
    refused=((".wat", NO_TEXT),),
    magic=(b"WARC/",),
    text_share=TEXT_SHARE,
)
WET = _declared(name="wet", split=BY_RECORD, title="a WARC file", endings=(".wet",), magic=(b"WARC/",))
ARC = _declared(name="arc", title="an ARC file", endings=(".arc",), magic=(b"filedesc:",), text_share=TEXT_SHARE)
