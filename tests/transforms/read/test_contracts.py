"""Our own readers pass what `refinery.testing` asks of everybody's."""

import io
import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from refinery.testing import ReaderTests
from refinery.transforms.read.formats.delimited import CSV, TSV
from refinery.transforms.read.formats.jsonl import JSONL
from refinery.transforms.read.formats.parquet import DOCUMENTS, PARQUET
from refinery.transforms.read.formats.plain_text import TEXT
from refinery.transforms.read.formats.warc import ARC, WARC, WET
from refinery.transforms.read.registry import readers
from tests.sampling import one_commit_in_four
from tests.transforms.read_fixtures import arc_record, page, warc_record

TEXTS = [f"Otters keep their favourite stone in a pouch: number {at} {'x' * at}." for at in range(9)]
ROWS = [{"text": text, "url": f"https://a.example/{at}", "date": 2000 + at} for at, text in enumerate(TEXTS)]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
LONG = "otters hold hands " * 2_000  # mebibytes of lines, one of them so long, are hundreds of records, not thousands


def table(rows: list[dict[str, object]], **options: int) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), buffer, **options)
    return buffer.getvalue()


def archive(kind: str) -> bytes:
    texts = (
        warc_record(text.encode(), kind, f"http://a.example/{number}", ["Content-Type: text/plain"])
        for number, text in enumerate(TEXTS)
    )
    return b"".join(texts)


class TestJsonl(ReaderTests):
    reader = JSONL

    def files(self) -> Mapping[str, bytes]:
        lines = LINES + json.dumps({"text": LONG}).encode() + b"\n"
        return {"a.jsonl": lines, "b.jsonl": b"\xef\xbb\xbf" + lines.replace(b"\n", b"\r\n\r\n")}


class TestParquet(ReaderTests):
    reader = PARQUET

    def files(self) -> Mapping[str, bytes]:
        return {"a.parquet": table(ROWS, row_group_size=2), "b.parquet": table(ROWS)}


class TestDocuments(ReaderTests):
    reader = DOCUMENTS

    def files(self) -> Mapping[str, bytes]:
        earlier = ({"source": "s", "origin": f"in.jsonl@{at}", "position": at, "meta": "{}"} for at in range(9))
        rows = [{**row, **kept} for row, kept in zip(ROWS, earlier, strict=True)]
        return {"a.parquet": table(rows, row_group_size=2)}


class TestCsv(ReaderTests):
    reader = CSV

    def files(self) -> Mapping[str, bytes]:
        rows = "".join(f'"{row["text"]}\n""quoted""",{row["url"]}\n' for row in ROWS)
        return {"a.csv": f"text,url\n{rows}".encode()}


class TestTsv(ReaderTests):
    reader = TSV
    source: ClassVar[Mapping[str, Any]] = {"dialect": "plain"}

    def files(self) -> Mapping[str, bytes]:
        return {"a.tsv": ("text\turl\n" + "".join(f"{row['text']}\t{row['url']}\n" for row in ROWS)).encode()}


class TestText(ReaderTests):
    reader = TEXT
    least = 1

    def files(self) -> Mapping[str, bytes]:
        return {"a.txt": "\n".join(TEXTS).encode(), "b.html": b"<html><body><p>" + TEXTS[0].encode()}


class TestParagraphs(ReaderTests):
    reader = TEXT
    source: ClassVar[Mapping[str, Any]] = {"unit": "paragraph"}

    def files(self) -> Mapping[str, bytes]:
        return {"a.txt": "\n\n".join(f"{text}\nAnother line." for text in TEXTS).encode()}


class TestLines(ReaderTests):
    reader = TEXT
    source: ClassVar[Mapping[str, Any]] = {"unit": "line"}
    repeats = True

    def files(self) -> Mapping[str, bytes]:
        return {"a.txt": ("\n".join([*TEXTS, LONG]) + "\n").encode()}


class TestWarc(ReaderTests):
    reader = WARC

    def files(self) -> Mapping[str, bytes]:
        pages = b"".join(page(number) for number in range(9))
        return {"a.warc": warc_record(b"software: x", "warcinfo") + pages, "b.warc": archive("resource")}


class TestWet(ReaderTests):
    reader = WET

    def files(self) -> Mapping[str, bytes]:
        return {"a.wet": archive("conversion")}


class TestArc(ReaderTests):
    reader = ARC

    def files(self) -> Mapping[str, bytes]:
        first = arc_record(
            b"1 0 InternetArchive\nURL IP-address Archive-date Content-type Archive-length\n",
            "filedesc://a.arc",
            "text/plain",
        )
        pages = (arc_record(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n" + text.encode()) for text in TEXTS)
        return {"a.arc": first + b"".join(pages)}


def test_every_reader_of_ours_is_held_to_it() -> None:
    tested = {
        value.reader
        for value in globals().values()
        if isinstance(value, type) and issubclass(value, ReaderTests) and value is not ReaderTests
    }
    assert tested == set(readers().values())


@one_commit_in_four
def test_importing_it_needs_no_pytest() -> None:
    script = "import sys, refinery.testing\nassert not {'pytest', '_pytest'} & set(sys.modules)"
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True)
