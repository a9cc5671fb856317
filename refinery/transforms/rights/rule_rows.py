"""Collected files of hosts as rows: robots.txt, ai.txt, tdmrep.json, each with its host and the date it was fetched.

A row is a record of JSONL, Parquet, CSV or TSV with the fields `host` (a host or an address on it), `kind` (left out
where the address names the file), `fetched_at` (a date or time in ISO 8601, or of 14 digits), `status` (of HTTP; 0 or
none without a body: nothing answered) and `body`; or a response in a WARC file, such as Common Crawl's `robotstxt`. Who
writes rows can write anything: what is not a row is counted by what is wrong with it.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from refinery.transforms.core.address.host import site_of
from refinery.transforms.core.answers import Damaged
from refinery.transforms.core.document import RawDocument
from refinery.transforms.read.archives.http_body import NoPage, decompress, message_content
from refinery.transforms.read.archives.warc_records import Damage, Record, read_records
from refinery.transforms.read.byte_source import open_source
from refinery.transforms.read.http.fields import parse_headers
from refinery.transforms.read.params import LimitParams, SourceParams
from refinery.transforms.read.plan import ReadTask, plan_sources
from refinery.transforms.read.sources import read_task
from refinery.transforms.rights import robots, tdm_file
from refinery.transforms.rights.host_list import host_of_entry

KINDS = ("host-list", "robots.txt", "ai.txt", "tdmrep.json")  # by their number in a table
HOST_LIST, ROBOTS, AI_TXT, TDM_FILE = range(len(KINDS))
PATHS = {"/robots.txt": ROBOTS, "/ai.txt": AI_TXT, "/.well-known/ai.txt": AI_TXT, "/.well-known/tdmrep.json": TDM_FILE}

NOTHING, UNREACHABLE, LISTED = range(3)  # what a row says, where it is not a short form
EPOCH = date(1970, 1, 1)
LAST_DAY = (1 << 16) - 1  # 2149-06-06
LIMITS = LimitParams(max_meta_bytes=64_000_000)
ARCHIVES = ("warc", "arc")
CACHED = 4 << 10  # bytes of a body whose short form is remembered

_STATUS = re.compile(rb"HTTP/\d(?:\.\d)?[ \t]+(\d{3})(?!\d)")
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")
_DIGITS = re.compile(r"\d{14}")


class RuleRow(NamedTuple):
    """site: of `site_of` (of a host list, `host_of`). kind: its number in KINDS. day: since 1970. order: of rows of one
    day the one with the highest counts. says: a short form, or NOTHING, UNREACHABLE or LISTED."""

    site: str
    kind: int
    day: int
    order: int
    says: str | int


class BadRow(NamedTuple):
    """What is wrong with a row, in kebab-case, or as readers name damage."""

    problem: str


def read_rows(paths: Sequence[str], host_lists: Sequence[str] = ()) -> Iterator[RuleRow | BadRow]:
    """All rows of these files, and those of plain lists of hosts, which have no date and hold from the first day on.

    Raises ValueError for a path that matches nothing or has an unknown ending, OSError when the storage fails.
    """
    fields = ("kind", "fetched_at", "status", "body")
    if paths:
        source = SourceParams(
            name="rows", paths=tuple(paths), text_field="host", url_field="", date_field="", meta_fields=fields
        )
        for task in plan_sources([source]):
            yield from _archive_rows(task) if task.format in ARCHIVES else _record_rows(task)
    if host_lists:
        lists = SourceParams(name="lists", paths=tuple(host_lists), format="text", unit="line", content="text")
        for task in plan_sources([lists]):
            for record in read_task(task):
                if isinstance(record, RawDocument):
                    if line := re.sub(r"(^|\s)#.*", "", _text(record.content)).strip().removeprefix("\ufeff"):
                        host = host_of_entry(line)
                        yield RuleRow(host, HOST_LIST, 0, 0, LISTED) if host else BadRow("bad-host")
                elif isinstance(record, Damaged):
                    yield BadRow(record.error)


def _record_rows(task: ReadTask) -> Iterator[RuleRow | BadRow]:
    for record in read_task(task, LIMITS):
        if isinstance(record, RawDocument):
            meta = record.meta
            body = meta.get("body")
            data = None if body is None else str(body).encode("utf-8", "surrogatepass")
            given = _text(record.content)
            yield make_row(given, str(meta.get("kind", "")), meta.get("fetched_at"), meta.get("status"), data)
        else:
            yield BadRow(record.error if isinstance(record, Damaged) else record.reason)


def _text(content: bytes | str) -> str:
    return content.decode("utf-8", "replace") if isinstance(content, bytes) else content


def _archive_rows(task: ReadTask) -> Iterator[RuleRow | BadRow]:
    """Responses of an archive whose address is that of a file of rules; all others are passed over."""
    with open_source(task.path, task.size, task.version, payer=task.payer) as source:
        for record in read_records(source, LIMITS.max_decompressed_bytes, is_arc=task.format == "arc"):
            if isinstance(record, Damage):
                yield BadRow(record.error)
            elif record.headers.get("warc-type", "").lower() == "response":
                yield from _response_row(record)


def _response_row(record: Record) -> Iterator[RuleRow | BadRow]:
    url = record.headers.get("warc-target-uri", "").removeprefix("<").removesuffix(">")
    if kind_of_address(url) is None:
        return
    status = _STATUS.match(record.block or b"")
    if record.block is None or not status:
        yield BadRow("too-large" if record.block is None else "bad-http")
        return
    end = _BLANK_LINE.search(record.block)
    headers = parse_headers(record.block[: end.start()] if end else record.block, joined=True)
    body = record.block[end.end() :] if end else b""
    limits = LIMITS.max_record_bytes, LIMITS.max_decompressed_bytes
    decoded = message_content(body, headers, *limits, is_plain=True)
    decoded = decoded if isinstance(decoded, NoPage) else decompress(decoded, limits[0])
    if isinstance(decoded, NoPage):
        yield BadRow("bad-http")
    else:
        yield make_row(url, "", record.headers.get("warc-date"), int(status[1]), decoded)


def make_row(host: str, kind: str, fetched_at: Any, status: Any, body: bytes | None) -> RuleRow | BadRow:
    """A row of untrusted fields, or what is wrong with them. Never raises."""
    number = KINDS.index(kind) if kind in KINDS else None if kind else kind_of_address(host)
    if number is None:
        return BadRow("bad-kind")
    site = host_of_entry(host) if number == HOST_LIST else site_of(host)
    if not site:
        return BadRow("bad-host")
    when = parse_time(fetched_at)
    if when is None:
        return BadRow("bad-date")
    code = parse_status(status, body is not None)
    if code is None:
        return BadRow("bad-status")
    if 300 <= code < 400:
        return BadRow("redirect")  # the answer is in the row of where it leads to
    is_found, is_failed = 200 <= code < 300, code >= 500 or code < 200
    if is_failed and number != ROBOTS:
        return BadRow("unreachable")  # of robots.txt alone does it mean anything
    says: str | int | None = NOTHING
    if is_failed:
        says = UNREACHABLE
    elif is_found and number == HOST_LIST:
        says = LISTED
    elif is_found:
        says = short_form(number, body or b"") if len(body or b"") > CACHED else _remembered(number, body or b"")
    if says is None:
        return BadRow("bad-json")
    day, second = when
    # Of one day's rows: an answer before none, a file before its absence, then the latest, then that of https.
    order = (not is_failed) << 19 | is_found << 18 | second << 1 | (host[:6].lower() == "https:")
    return RuleRow(site, number, day, order, says or NOTHING)


def kind_of_address(url: str) -> int | None:
    """The kind of file that an address names, None for none."""
    path = re.sub(r"^[a-z][a-z0-9+.-]*://[^/]*", "", url.strip().lower())
    return next((kind for end, kind in PATHS.items() if path.partition("?")[0].endswith(end)), None)


def short_form(kind: int, body: bytes) -> str | None:
    """What a file says, in its module's form; None for other files."""
    return tdm_file.short_form(body) if kind == TDM_FILE else robots.short_form(body)


_remembered = lru_cache(maxsize=4096)(short_form)  # most files are alike: those of popular site builders


def parse_status(status: Any, has_body: bool) -> int | None:
    """An HTTP status, 0 for no answer, None for what is neither."""
    if status is None or status == "":
        return 200 if has_body else 0
    try:
        code = int(status)
    except (ValueError, OverflowError):
        return None
    return code if code == 0 or 100 <= code <= 599 else None


def parse_time(given: Any) -> tuple[int, int] | None:
    """(days since 1970, seconds of the day) in UTC of a date or time; None for what is none or out of 1970 to 2149."""
    text = str(given).strip() if isinstance(given, (str, int)) else ""
    try:
        if _DIGITS.fullmatch(text):
            text = f"{text[:8]}T{text[8:]}"
        when = datetime.fromisoformat(text[:40])
        when = when.astimezone(UTC) if when.tzinfo else when
    except (ValueError, OverflowError):
        return None
    day = (when.date() - EPOCH).days
    return (day, when.hour * 3600 + when.minute * 60 + when.second) if 0 <= day <= LAST_DAY else None


def day_of(text: str) -> int:
    """Days since 1970 of a date like 2026-11-23. Raises ValueError for anything else."""
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text) or (found := parse_time(text)) is None:
        raise ValueError(f"{text[:40]!r} given, a date like 2026-11-23 is allowed")
    return found[0]
